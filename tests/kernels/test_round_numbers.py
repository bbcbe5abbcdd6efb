"""Rounds of transfers against a slow twin that recomputes every load."""

from __future__ import annotations

import random

import numpy as np

from colsynth.kernels.round_numbers import least_loaded
from colsynth.lowering.columns import rows
from tests.each import each


def drawn(seed):
    """Return prerequisites, pairs, chunks and links of random transfers."""
    draw = random.Random(seed)
    before = [
        {draw.randrange(t): draw.randrange(2) for _ in range(draw.randrange(3))} if t else {}
        for t in range(draw.randrange(1, 40))
    ]
    wires = [
        {link: draw.randrange(1, 9) for link in draw.sample(range(6), draw.randrange(1, 4))}
        for _ in range(5)
    ]
    pairs = [draw.randrange(-1, len(wires)) for _ in before]
    return before, wires, pairs, [draw.randrange(1, 4) for _ in before]


def slow(before, wires, pairs, counts):
    """Return the rounds, one transfer after the other."""
    earliest = []
    for needs in before:
        earliest.append(max((earliest[u] + apart for u, apart in needs.items()), default=0))
    latest = [max(earliest)] * len(before)
    for t in reversed(range(len(before))):
        for u, apart in before[t].items():
            latest[u] = min(latest[u], latest[t] - apart)
    taken = []

    def carried(link, place):
        there = [u for u, row in enumerate(taken) if row == place and pairs[u] >= 0]
        return sum(counts[u] * wires[pairs[u]].get(link, 0) for u in there)

    for t, needs in enumerate(before):
        first = max((taken[u] + apart for u, apart in needs.items()), default=0)
        if pairs[t] < 0:
            taken.append(first)
            continue

        def cost(place, mine=wires[pairs[t]], count=counts[t]):
            busiest = max(carried(link, place) for link in range(6))
            after = max(carried(link, place) + count * time for link, time in mine.items())
            return max(0, after - busiest), after, place

        taken.append(min(range(first, latest[t] + 1), key=cost))
    return taken


@each("seed", range(40))
def test_rounds_are_those_of_the_slow_twin(seed):
    before, wires, pairs, counts = drawn(seed)
    begins, other = rows([list(needs) for needs in before])
    _, apart = rows([list(needs.values()) for needs in before])
    wire_begins, link = rows([list(ends) for ends in wires])
    _, time = rows([list(ends.values()) for ends in wires])
    found = least_loaded(
        *(begins, other, apart, np.array(pairs), np.array(counts), wire_begins, link, time, 6)
    ).tolist()
    assert found == slow(before, wires, pairs, counts)
    for t, needs in enumerate(before):
        assert all(found[t] >= found[u] + apart for u, apart in needs.items())
