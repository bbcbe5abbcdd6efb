"""Phases from lists of transfers, turned around, and what they leave behind."""

import random
from fractions import Fraction

import numpy as np

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.model import Direction
from colsynth.synthesis.timed.hops import hops_of, reverse
from colsynth.synthesis.timed.phases import (
    backwards,
    chunk_type,
    delayed,
    last_arrivals,
    last_end,
    last_uses,
    phase_of,
)
from tests.each import each
from tests.reference.timed import transfers
from tests.verify.timed_schedules import moves_of, random_fabric

SEEDS = range(40)


def random_transfers(seed):
    """Return links and random transfers in order of start, each hop's apart by its stride."""
    rng = random.Random(seed)
    topology = random_fabric(seed)
    hops = hops_of(topology, Fraction(960), choose_ticks(topology, Fraction(960)))
    stride = hops.stride.tolist()
    found = []
    for h in range(len(hops)):
        start = rng.randrange(50)
        for _ in range(rng.choice((0, 0, 1, 2, 7))):
            found.append((start, h, rng.randrange(9)))
            start += stride[h] + rng.choice((0, 0, 0, rng.randint(1, 99)))
    return topology, hops, sorted(found)


def phase_from(hops, moves, direction=Direction.OUT):
    start, hop, chunk = np.array(moves, np.int64).reshape(-1, 3).T
    return phase_of(direction, hops, start, hop, chunk)


@each("seed", SEEDS)
def test_a_phase_holds_the_transfers_it_was_made_of(seed):
    _, hops, moves = random_transfers(seed)
    phase = phase_from(hops, moves)
    assert moves_of(phase) == sorted((h, start, chunk) for start, h, chunk in moves)
    assert phase.starts().tolist() == [start for _, start, _ in moves_of(phase)]
    assert last_end(phase) == max((t.end for t in transfers(phase)), default=0)
    # Runs are as long as can be.
    stride = hops.stride.tolist()
    for h in range(len(hops)):
        runs = range(phase.run_first[h], phase.run_first[h + 1])
        ends = [int(phase.run_start[r] + phase.run_length[r] * stride[h]) for r in runs]
        assert all(
            end < int(phase.run_start[r + 1]) for end, r in zip(ends, runs[:-1], strict=False)
        )


@each("seed", SEEDS)
def test_time_turned_around_swaps_senders_and_receivers(seed):
    _, hops, moves = random_transfers(seed)
    turned, was = reverse(hops)
    phase = phase_from(turned, [(s, int(np.flatnonzero(was == h)[0]), c) for s, h, c in moves])
    ticks = last_end(phase) + seed
    back = backwards(phase, hops, was, ticks)
    assert back.direction is Direction.IN
    expected = [
        (ticks - t.end, ticks - t.start, t.target, t.source, t.chunk) for t in transfers(phase)
    ]
    assert sorted(expected) == sorted(
        (t.start, t.end, t.source, t.target, t.chunk) for t in transfers(back)
    )
    assert {h for h, _, _ in moves_of(back)} == {h for _, h, _ in moves}
    assert back.chunk.dtype == phase.chunk.dtype


@each("seed", SEEDS)
def test_what_is_left_for_the_next_phase(seed):
    topology, hops, moves = random_transfers(seed)
    phase = phase_from(hops, moves)
    owner = np.array([chunk % topology.size for chunk in range(9)], np.int32)
    arrived, used = [0] * 9, [0] * len(topology.links)
    for t in transfers(phase):
        if t.target == owner[t.chunk]:
            arrived[t.chunk] = max(arrived[t.chunk], t.end)
        for i in range(hops.first[t.hop], hops.first[t.hop + 1]):
            link = int(hops.links[i])
            used[link] = max(used[link], t.start + int(hops.end[i]))
    assert last_arrivals(phase, owner).tolist() == arrived
    assert last_uses(phase, len(topology.links)).tolist() == used
    later = delayed(phase, 17)
    assert moves_of(later) == [(h, start + 17, chunk) for h, start, chunk in moves_of(phase)]


def test_chunks_are_kept_in_as_few_bytes_as_hold_them():
    assert chunk_type(2**16 - 1) is np.uint16
    assert chunk_type(2**16) is np.uint32
    _, hops, _ = random_transfers(1)
    assert phase_from(hops, [(0, 0, 2**16)]).chunk.tolist() == [2**16]
