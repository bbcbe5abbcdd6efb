"""Happens-before by vector clocks, beside sets of everything that came before."""

from __future__ import annotations

import random
from itertools import chain

import numpy as np
import pytest

from colsynth.kernels.precedence import known_before, together
from tests.each import each
from tests.reference.precedence import pasts


def _program(seed):
    """Return random steps, each after those it needs: block, ordinal, causes, match, weak."""
    rng = random.Random(seed)
    steps, blocks = rng.randint(2, 60), rng.randint(2, 9)
    block, ordinal, causes, match, count = [], [], [], [], [0] * blocks
    for step in range(steps):
        block.append(rng.randrange(blocks))
        ordinal.append(count[block[-1]])
        count[block[-1]] += rng.randint(1, 2)
        wanted = rng.choice([0, 0, 1, 1, 3])
        causes.append([rng.randrange(-1, step) for _ in range(wanted)] if step else [])
        match.append(rng.randrange(-1, step) if step and rng.random() < 0.4 else -1)
    weak = [rng.random() < 0.2 for _ in range(steps)]
    return block, ordinal, causes, match, weak


def _ask(group, program, pairs, most, kind=np.int16):
    """Return what the kernel knows of pairs, with steps in some groups."""
    block, ordinal, causes, match, weak = program
    group = np.array(group)
    steps = np.argsort(group, kind="stable")
    pairs = np.array(sorted(pairs, key=lambda pair: group[pair[1]]))
    places = np.arange(len(block) + 1)
    cause_first = np.concatenate([[0], np.cumsum([len(found) for found in causes])])
    known = known_before(
        np.searchsorted(group[steps], places),
        steps,
        np.searchsorted(group[pairs[:, 1]], places),
        pairs[:, 0].copy(),
        pairs[:, 1].copy(),
        np.array(block),
        np.array(ordinal),
        np.array(weak),
        cause_first,
        np.array(list(chain(*causes)), dtype=np.int64),
        np.array(match),
        max(block) + 1,
        most,
        np.empty(0, kind),
    )
    return dict(zip(map(tuple, pairs.tolist()), known.tolist(), strict=True))


def _pairs(block):
    """Return all pairs of steps of different threadblocks."""
    return [
        (first, second)
        for second in range(len(block))
        for first in range(second)
        if block[first] != block[second]
    ] or [(0, 0)]


@each("seed", range(60))
@pytest.mark.parametrize("most", [1, 40, 10**6])
def test_one_group_of_all_steps_knows_exactly_what_came_before(seed, most):
    program = block, _, causes, match, weak = _program(seed)
    before = pasts(range(len(block)), block, causes, match, weak)
    # A flag that says nothing of its own step may still be followed by news of it, so what
    # the twin counts by steps the kernel counts by the last step known of a threadblock.
    found = _ask([0] * len(block), program, _pairs(block), most)
    assert most > 1 or found == _ask([0] * len(block), program, _pairs(block), most, np.int32)
    for (first, second), known in found.items():
        later = {s for s in before[second] if block[s] == block[first] and s >= first}
        assert known == bool(later), (first, second)


@each("seed", range(60))
def test_what_a_group_knows_is_true(seed):
    program = block, _, causes, match, weak = _program(seed)
    before = pasts(range(len(block)), block, causes, match, weak)
    rng = random.Random(seed)
    group = [rng.randrange(4) for _ in block]
    for (first, second), known in _ask(group, program, _pairs(block), 10**6).items():
        later = {s for s in before[second] if block[s] == block[first] and s >= first}
        assert not known or later, (first, second)


@each("seed", range(20))
def test_steps_are_together_where_pairs_join_them(seed):
    rng = random.Random(seed)
    steps = rng.randint(1, 30)
    pairs = [(rng.randrange(steps), rng.randrange(steps)) for _ in range(rng.randint(0, 30))]
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    found = together(steps, one, other).tolist()
    expected = [{step} for step in range(steps)]
    for _ in pairs:
        for a, b in pairs:
            whole = expected[a] | expected[b]
            for step in sorted(whole):
                expected[step] = whole
    for a in range(steps):
        assert {b for b in range(steps) if found[b] == found[a]} == expected[a]
