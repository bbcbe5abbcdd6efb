"""Records of text, beside Python's own formatting and regular expressions."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from colsynth.kernels.records import scan, spell

PIECES = ('<a x="', '" kind="', '" y="', '"/>')
NAMES = ("r", "rcs", "s")
CHOICES = np.array([(0, 0), (0, 3), (0, 0)])
NUMBER = r"(0|-?[1-9]\d{0,8})"
RECORD = re.compile(rf'[ \n\r]*<a x="{NUMBER}" kind="(r|rcs|s)" y="{NUMBER}"/>')


def _joined(texts):
    ends = np.cumsum([0, *map(len, texts)])
    return np.frombuffer("".join(texts).encode(), np.uint8).copy(), ends


FORM = *_joined(PIECES), *_joined(NAMES), CHOICES


def _scanned(text, at=0, line=1, room=50):
    values, places = np.zeros((3, room), np.int64), np.zeros((2, room), np.int64)
    data = np.frombuffer(text.encode(), np.uint8)
    end, last, row = scan(data, at, line, *FORM, values, places, 0)
    return int(end), int(last), values[:, :row].T.tolist(), places[:, :row].T.tolist()


def _matched(text, at=0, line=1):
    rows, places = [], []
    while match := RECORD.match(text, at):
        begin = text.index("<", at)
        line += text.count("\n", at, begin)
        at = match.end()
        rows.append([int(match[1]), NAMES.index(match[2]), int(match[3])])
        places.append([begin, line])
    return at, line, rows, places


@pytest.mark.parametrize("seed", range(20))
def test_what_is_spelt_is_read_again(seed):
    rng = random.Random(seed)
    numbers = [0, 1, 9, 10, 99, 100, 999_999_999, -1, -10, -999_999_999]
    rows = [[rng.choice(numbers), rng.randrange(3), rng.choice(numbers)] for _ in range(20)]
    found, begin = spell(*FORM, np.array(rows).T.copy())
    texts = [f'<a x="{x}" kind="{NAMES[kind]}" y="{y}"/>' for x, kind, y in rows]
    assert found.tobytes().decode() == "".join(texts)
    assert begin.tolist() == np.cumsum([0, *map(len, texts)]).tolist()
    assert _scanned("".join(texts))[2] == rows


def test_long_numbers_are_spelt():
    found, _ = spell(*FORM, np.array([[2**63 - 1], [2], [-(2**63 - 1)]]))
    assert found.tobytes() == b'<a x="9223372036854775807" kind="s" y="-9223372036854775807"/>'


@pytest.mark.parametrize("seed", range(300))
def test_reading_ends_where_the_pattern_does(seed):
    rng = random.Random(seed)
    rows = [f'<a x="{rng.randint(-12, 12)}" kind="{rng.choice(NAMES)}" y="7"/>' for _ in range(4)]
    text = "".join(rng.choice(["", " ", "\n", "\r\n  ", "\n\n"]) + row for row in rows) + "\n"
    for _ in range(rng.randint(0, 2)):
        at = rng.randrange(len(text))
        text = (
            text[:at] + rng.choice(["", *'0123456789-+<>"=\t rcs']) + text[at + rng.randint(0, 1) :]
        )
    assert _scanned(text) == _matched(text)


@pytest.mark.parametrize("number", ["00", "01", "-0", "", "-", "1234567890", "+1", "1.0", "x"])
def test_only_plain_numbers_are_read(number):
    assert _scanned(f'<a x="{number}" kind="r" y="1"/>') == (0, 1, [], [])


def test_reading_ends_where_there_is_no_room():
    text = '<a x="1" kind="r" y="1"/>\n' * 3
    end, line, rows, _ = _scanned(text, room=2)
    assert (end, line, len(rows)) == (51, 2, 2)
