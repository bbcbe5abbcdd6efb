"""Symbolic execution agrees with its slow twin, also where sums are wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest

from colsynth.kernels.sums import execute
from colsynth.verify.contents import Outcome, _kinds
from colsynth.verify.table import OPS
from tests.reference.contents import SENT
from tests.reference.contents import execute as slow

CELLS = 12


def _place(rng, count):
    return -1 if rng.random() < 0.05 else rng.randrange(CELLS - count)


def _steps(rng, many):
    """Return steps that take messages of earlier ones, of any length."""
    steps = []
    for _ in range(many):
        op, count = rng.choice(OPS[:8]), rng.randint(0, 3)
        senders = [n for n, step in enumerate(steps) if step[0] in SENT]
        match = rng.choice(senders) if senders and rng.random() < 0.9 else -1
        match = -1 if op in ("s", "cpy", "re") else match
        steps.append((op, count, _place(rng, count), _place(rng, count), match))
    return steps


@pytest.mark.parametrize("seed", range(60))
def test_memory_holds_what_the_twin_says(seed):
    rng = random.Random(seed)
    ranks = rng.choice([1, 2, 5, 64, 65, 130])
    inputs = [(rng.randrange(2), rng.randrange(ranks)) for _ in range(rng.randint(1, 20))]
    memory = [rng.randint(0, len(inputs)) for _ in range(CELLS)]
    steps = _steps(rng, rng.choice([5, 30, 2000]))
    kinds, count, source, target, match = map(np.array, zip(*steps, strict=True))
    held = np.array(memory)
    chunk, rank = np.array([(-1, 0), *inputs]).T.copy()
    does = _kinds()[[OPS.index(op) for op in kinds]]
    order = np.arange(len(steps))
    found = execute(order, does, count, source, target, match, chunk, rank, -(-ranks // 64), held)
    outcome = Outcome(found[0], held, *found[1:], ranks)
    values, undefined, sent = slow(steps, inputs, memory)
    assert held.tolist() == memory
    assert outcome.undefined.tolist() == undefined
    assert len(values.chunk) == len(outcome.numbers.chunk)
    for number, (chunk, mask) in enumerate(zip(values.chunk, values.mask, strict=True)):
        assert outcome.numbers.chunk[number] == chunk
        assert outcome.ranks(number) == mask
        assert outcome.describe(number) == values.describe(number)
    for (begin, end), message in zip(outcome.span.tolist(), sent, strict=True):
        part = outcome.sent[begin:end].tolist()
        assert part + [0] * (len(message) - len(part)) == message


def test_what_is_wanted_may_be_of_one_rank_or_of_all():
    chunk, rank = np.array([-1, 7, 7, 7]), np.array([0, 0, 1, 2])
    nothing = np.zeros(0, np.int64)
    steps = [("re", 1, 1, 0, -1), ("re", 1, 2, 0, -1)]
    kinds, count, source, target, match = map(np.array, zip(*steps, strict=True))
    memory = np.array([1, 2, 3, 0])
    does = _kinds()[[OPS.index(op) for op in kinds]]
    order = np.arange(2)
    found = execute(order, does, count, source, target, match, chunk, rank, 1, memory)
    outcome = Outcome(found[0], memory, nothing, found[2], found[3], 3)
    who = np.array([-1, 1, -1, -1])
    assert outcome.right(memory, np.array([7, 7, 7, 7]), who).tolist() == [True, True, False, False]
    assert not outcome.right(memory, np.array([6, 6, 7, 7]), np.array([-1, 1, 0, 0])).any()
