"""Text from outside, such as names in files, made fit for a terminal; long lists made short."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = 12
"""Words of a list that are shown where a message lists them."""

_LONGEST = 200
"""Characters of one word that a message shows; names of machines have fewer."""


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters spelt out, as in ``\x1b``.

    Terminals execute them: a name from a file could move the cursor, hide what follows, or
    set the title of the window. Characters that change the direction of writing are spelt out
    too, and bytes of file names that are no UTF-8.

    Parameters
    ----------
    text : str
    keep : str
        Characters that stay as they are, such as line breaks of our own.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _spelt(c) for c in text)


def _spelt(character: str) -> str:
    byte = ord(character) - 0xDC00  # how Python holds bytes that are no UTF-8
    if 0x80 <= byte <= 0xFF:
        return f"\\x{byte:02x}"
    return character.encode("unicode_escape").decode("ascii")


def listed(words: Iterable[str], most: int = SHOWN, comma: str = ", ", what: str = "") -> str:
    """Return words separated by commas; of many, the first and how many more there are.

    Parameters
    ----------
    words : iterable of str
    most : int
        Words that are shown.
    comma : str
        What separates them.
    what : str
        What the words are, to follow the number of those that are not shown.
    """
    every = list(words)
    rest = len(every) - most
    shown = comma.join(map(shortened, every[:most]))
    return f"{shown} and {rest} more {what}".rstrip() if rest > 0 else shown


def shortened(word: str) -> str:
    """Return a word, of a long one its beginning."""
    return word if len(word) <= _LONGEST else f"{word[: _LONGEST - 3]}..."
