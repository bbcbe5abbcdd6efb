"""Chunks are numbered as the model says, and asked for as the collective says."""

from fractions import Fraction

import pytest

from colsynth.model import Collective, Demand, Direction, Problem
from colsynth.synthesis.timed.demands import chunk_size, count_chunks, count_transfers, wants
from colsynth.topology.load import load
from tests.each import each
from tests.reference.timed import conditions
from tests.synthesis.timed.problems import wild_problem


def spelt_out(problem, item):
    """Return {chunk: (holders, wanted)} of a phase, outwards."""
    found = {}
    for place, number in enumerate(item.number.tolist()):
        lists = [
            set(part.items[part.first[place] : part.first[place + 1]].tolist())
            for part in (item.holders, item.wanted)
            if part is not None
        ]
        if item.wanted is None:
            (holder,) = lists[0]
            lists.append(set(next(group for group in problem.members if holder in group)))
        found[number] = tuple(lists)
    return found


@each("seed", range(90))
def test_chunks_of_every_collective(seed):
    problem, each = wild_problem(seed), seed % 3 + 1
    expected = {Direction.IN: {}, Direction.OUT: {}}
    found = conditions(problem, each)
    for chunk, (kinds, holders, wanted) in enumerate(found):
        if "sum" in kinds:
            expected[Direction.IN][chunk] = wanted, holders
        if "spread" in kinds:
            expected[Direction.OUT][chunk] = wanted, holders
        if "copy" in kinds and not (
            # What a rank keeps for itself never moves.
            problem.collective in (Collective.ALLTOALL, Collective.SCATTER, Collective.GATHER)
            and holders == wanted
        ):
            expected[Direction.OUT][chunk] = holders, wanted
    asked = {item.direction: spelt_out(problem, item) for item in wants(problem, each)}
    assert asked == {way: chunks for way, chunks in expected.items() if chunks or way in asked}
    assert count_chunks(problem, each)[0] == len(found)
    moves = [
        len(kinds) * len(holders - wanted if "sum" in kinds else wanted - holders)
        for kinds, holders, wanted in found
    ]
    assert count_transfers(problem, each) == sum(moves)


GROUPS = ((0, 1, 2), (5, 4, 3))


@pytest.mark.parametrize(
    ("collective", "chunks", "parts"),
    [
        ("allgather", 12, 6),
        ("reduce-scatter", 12, 6),
        ("allreduce", 12, 6),
        ("alltoall", 36, 6),
        ("scatter", 12, 6),
        ("gather", 12, 6),
        ("broadcast", 4, 2),
        ("reduce", 4, 2),
    ],
)
def test_numbers_and_sizes_of_chunks(collective, chunks, parts):
    collective = Collective(collective)
    root = 1 if collective.rooted else None
    problem = Problem(load("ring:6"), collective, root, GROUPS)
    assert count_chunks(problem, 2) == (chunks, parts)
    assert chunk_size(problem, 1000, 2) == Fraction(1000, parts)


def test_places_of_an_alltoall_and_owners_of_an_allgather():
    ring = load("ring:6")
    (item,) = wants(Problem(ring, Collective.ALLTOALL, None, GROUPS), 2)
    # Group 1, member 0 (rank 5) to member 2 (rank 3): (9 + 0 * 3 + 2) * 2 and the next.
    found = spelt_out(Problem(ring, Collective.ALLTOALL, None, GROUPS), item)
    assert found[22] == found[23] == ({5}, {3})
    assert not {0, 1, 8, 9, 16, 17} & set(found)
    (item,) = wants(Problem(ring, Collective.ALLGATHER, None, GROUPS), 2)
    assert item.holders.items.tolist() == [0, 0, 1, 1, 2, 2, 5, 5, 4, 4, 3, 3]


def test_sums_of_a_custom_collective_come_before_copies():
    demands = (Demand((0, 1), (2,), 1), Demand((0, 1, 2), (1,), 2, reduces=True))
    problem = Problem(load("ring:3"), Collective.CUSTOM, demands=demands)
    sums, copies = wants(problem, 2)
    assert (sums.direction, sums.number.tolist()) == (Direction.IN, [2, 3, 4, 5])
    assert (copies.direction, copies.number.tolist()) == (Direction.OUT, [0, 1])
    assert spelt_out(problem, sums)[2] == ({1}, {0, 1, 2})
    assert count_chunks(problem, 2) == (6, 6)
