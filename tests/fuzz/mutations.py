"""Valid texts and plain values, made hostile; every choice comes from one seeded generator."""

import json
import re

NUMBERS = (
    *("0", "-1", "1", "2", "3", "7", "64", "128", "1024", "32768", "65536", "1000000"),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "1e3", "1e99", "1e400", "1e999999999", "-0", "+1", "00", "010"),
    *("0x10", "0o17", "1_000", "1:30", "59:59:59", "1/3", "1/0", "0.1", ".5", "5.", "1e-99"),
    *("nan", "NaN", ".nan", "inf", "-inf", ".inf", "Infinity", "٣", "9" * 60, "9" * 5000),
    "0x" + "f" * 5000,
)
SCRAPS = (
    *("", " ", "\n", "\t", "\r", "\0", "\x1b[31m", "\x07", "\u202e", "é", "漢", "\ufeff", "\x85"),
    *(":", "- ", "[]", "{}", "[", "]", "{", "}", "null", "~", "true", "yes", "'", '"', "\\", "#"),
    *(
        "&a ",
        "*a",
        "!!int ",
        "!!python/object:os.system ",
        "<<: ",
        "? ",
        "| ",
        "---\n",
        "%YAML 9\n",
    ),
    *("<", ">", "</", "/>", "<!--", "-->", "<?xml?>", "<![CDATA[", "]]>", "&amp;", "&#x41;", "="),
    *("<algo ", "<gpu ", "<tb ", "<step ", "</algo>", "25 GB/s", "700 ns", "50%", "64MiB", "$nic"),
    *("gpu0", "0-7", "0-999999999", ";", ",", "->", "..", "../", "/dev/null", "%s", "{0}", "$(x)"),
)
MOST_REPEATS = 2000


def pick(rng, values):
    """Return one of several values."""
    return values[rng.randrange(len(values))]


def mutated_text(rng, text, scraps=SCRAPS + NUMBERS):
    """Return a text with one change or a few."""
    for _ in range(pick(rng, (1, 1, 1, 2, 4))):
        text = pick(rng, _CHANGES)(rng, text, scraps)
    return text


def _span(rng, text, most=40):
    begin = rng.randint(0, len(text))
    return begin, min(len(text), begin + rng.randint(0, most))


def _replaced(rng, text, scraps):
    begin, end = _span(rng, text, 8)
    return text[:begin] + pick(rng, scraps) + text[end:]


def _cut(rng, text, _scraps):
    begin, end = _span(rng, text)
    return text[:begin] + text[end:]


def _ended(rng, text, _scraps):
    return text[: rng.randint(0, len(text))]


def _moved(rng, text, _scraps):
    begin, end = _span(rng, text, 200)
    place = rng.randint(0, len(text))
    return text[:place] + text[begin:end] + text[place:]


def _repeated(rng, text, scraps):
    begin, end = _span(rng, text, 20)
    part = pick(rng, (text[begin:end], pick(rng, scraps)[:20]))
    return text[:end] + part * rng.randint(2, MOST_REPEATS) + text[end:]


def _number(rng, text, _scraps):
    """Replace a run of digits."""
    places = [i for i, c in enumerate(text) if c.isdigit()]
    if not places:
        return text
    begin = end = pick(rng, places)
    while end < len(text) and text[end].isdigit():
        end += 1
    return text[:begin] + pick(rng, NUMBERS) + text[end:]


def _character(rng, text, _scraps):
    place = rng.randint(0, max(len(text) - 1, 0))
    return (
        text[:place]
        + chr(pick(rng, (rng.randrange(256), rng.randrange(0xD800))))
        + text[place + 1 :]
    )


_CHANGES = (
    _replaced,
    _replaced,
    _cut,
    _ended,
    _moved,
    _repeated,
    _number,
    _number,
    _number,
    _character,
)

VALUES = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        1.5,
        -0.5,
        2**31,
        2**63,
        2**64,
        10**40,
        "",
        "x",
        "1/0",
        "0",
    ),
    *("-3", "1e9999999999", "9" * 5000, [], {}, [[]], [0, 0], {"a": 1}, "\x1b[31m", "../../x"),
)
"""What a value of JSON may be replaced by."""


_SCALARS = (
    *VALUES,
    *(f"!{number}" for number in NUMBERS),
    *(
        "0 GB/s",
        "1e99 GB/s",
        "1/0 GB/s",
        f"{'9' * 90} GB/s",
        "1e-99 us",
        "gpu0",
        "gpu",
        "nic",
        "ib",
    ),
    *("$nic", "nic * nic", "nic / 0", "(" * 50, "1-2", "0-7", "all", "blocks", "fastest", "reduce"),
)


def mutated_value(rng, value, others=VALUES):
    """Return plain values with one of them replaced or taken out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = pick(rng, sorted(value))
        kept = {k: v for k, v in value.items() if k != key}
        return kept if rng.random() < 0.1 else {**kept, key: mutated_value(rng, value[key], others)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        new = [] if rng.random() < 0.1 else [mutated_value(rng, value[place], others)]
        return [*value[:place], *new, *value[place + 1 :]]
    return pick(rng, others)


def mutated_document(rng, value):
    """Return the text of a document of which a value or two are others, without quotes or in them.

    It is JSON, and so YAML: what is wrong is then seldom the syntax.
    """
    for _ in range(pick(rng, (1, 1, 2))):
        value = mutated_value(rng, value, _SCALARS)
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r'"!(.*?)"', r"\1", text)


def mutated_bytes(rng, data):
    """Return bytes of which some are others, or which end early."""
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    if rng.random() < 0.3:
        del damaged[rng.randrange(len(damaged)) :]
    return bytes(damaged)
