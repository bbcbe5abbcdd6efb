"""Lists of hosts: Slurm's ranges (``tux[0-3,07-09]``), and files with a host per line."""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

from colsynth.errors import Span
from colsynth.topology.importers.machine import Source, refusal

MOST_HOSTS = 2**16
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_HOST = re.compile(r"[A-Za-z0-9][\w.-]*")
_SLOTS = re.compile(r"(?::|\s+slots\s*=\s*)(\d{1,9})$")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class Host(NamedTuple):
    """A host of a file.

    Parameters
    ----------
    name : str
    slots : int or None
        Processes that it takes; None where the file does not say.
    at : Span
    """

    name: str
    slots: int | None
    at: Span


def expand(text: str, at: Span) -> list[str]:
    """Return the names that a list means; zeros in front of numbers stay.

    Raises
    ------
    InputError
        CS152: a bracket or a range is wrong; CS125: there are too many names.
    """
    names: list[str] = []
    for word in _split(text):
        names += _expand_word(word, at)
        if len(names) > MOST_HOSTS:
            raise refusal(f"more than {MOST_HOSTS} names", at, code="CS125")
    return names


def _split(text: str) -> list[str]:
    """Return the words between commas that stand outside of brackets."""
    words, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            words.append(text[begin:i])
            begin = i + 1
    return [word.strip() for word in (*words, text[begin:]) if word.strip()]


def _expand_word(word: str, at: Span) -> list[str]:
    if set("[]") & set(re.sub(r"\[[^\[\]]*\]", "", word)):
        raise refusal(f"a bracket of {word[:40]!r} has no other end", at)
    pieces: list[list[str]] = []
    size = 1
    for inner, plain in _PIECE.findall(word):
        pieces.append([plain] if plain else _numbers(inner, at))
        size *= len(pieces[-1])
        if size > MOST_HOSTS:
            raise refusal(f"more than {MOST_HOSTS} names", at, code="CS125")
    return ["".join(parts) for parts in product(*pieces)]


def _numbers(text: str, at: Span) -> list[str]:
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise refusal(f"{part.strip()[:40]!r} is no number and no range", at)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > MOST_HOSTS:
            raise refusal(f"range {part.strip()} is empty or too long", at)
        found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return found


def read_hosts(source: Source) -> tuple[Host, ...]:
    """Return the hosts of a file, one per line or as Slurm lists them.

    Lines are such as ``node17``, ``node17:8``, ``node17 slots=8`` or ``node[1-8]``.

    Raises
    ------
    InputError
        CS152: a line is wrong, a host is there twice, or there is none; CS125: too many.
    """
    hosts: dict[str, Host] = {}
    for number, line in enumerate(source.text.split("\n"), 1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        at = source.span(number)
        slots = _SLOTS.search(words)
        for host in expand(_SLOTS.sub("", words), at):
            if not _HOST.fullmatch(host):
                advice = "write one host in a line, such as node17 or node17:8"
                raise refusal(f"no host: {host[:40]!r}", at, advice=advice)
            if host in hosts:
                phrase = f"host {host!r} is there twice"
                raise refusal(phrase, at, f"first at line {hosts[host].at.line}")
            hosts[host] = Host(host, None if slots is None else int(slots[1]), at)
    if not hosts:
        raise refusal("the file names no host", source.span(1))
    return tuple(hosts.values())
