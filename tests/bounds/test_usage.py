"""Links whose bytes are worth less at the beginning, and at the end."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest

from colsynth.bounds.usage import ALWAYS, least_use
from tests.each import each

PARTS = 20000


def levels(rng):
    """Return up to four levels that rise to 1."""
    many = rng.randint(0, 3)
    times = sorted(rng.uniform(0, 2) for _ in range(many))
    return tuple(zip((0.0, *times), sorted([*(rng.random() for _ in times), 1.0]), strict=True))


def worth(found, time):
    return found[bisect_right([begin for begin, _ in found], time) - 1][1]


def test_bytes_that_are_worth_all_take_their_time():
    assert least_use(3.0, ALWAYS) == 3.0
    assert least_use(0.0, ((0.0, 0.5), (1.0, 1.0))) == 0.0
    assert least_use(3.0, ((0.0, 0.5), (1.0, 1.0))) == 3.5


@each("seed", range(30))
def test_what_passes_in_that_time_is_worth_as_much_as_is_needed(seed):
    """The sum over small parts of the time, each with what it is worth at both ends."""
    rng = random.Random(seed)
    first, last, once = levels(rng), levels(rng), rng.uniform(0.1, 3)
    used = least_use(once, first, last)
    part = used / PARTS
    moments = [(place + 0.5) * part for place in range(PARTS)]
    got = sum(worth(first, x) * worth(last, used - x) for x in moments) * part
    assert got == pytest.approx(once, rel=1e-3)
