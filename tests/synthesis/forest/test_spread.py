"""Pairings of a switch: dealt in turns, with work that does not grow with the bandwidths."""

import random

from colsynth import api
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.synthesis.forest import spread
from tests.each import each


def ports(units, groups):
    ends = range(len(units))
    return spread._ports(ends, units, dict(zip(ends, groups, strict=True)))


def one_turn_after_the_other(sources, sinks, rounds):
    """Return what dealing means: a turn at a time, until nothing moves."""
    left = [port.units for port in sources]
    room = [port.units for port in sinks]
    pairing = {}
    moved = True
    while moved:
        moved = False
        share = max(1, min((x for x in (*left, *room) if x), default=0) // max(1, len(rounds)))
        for i, j in (pair for pairs in rounds for pair in pairs):
            units = min(share, left[i], room[j])
            if units:
                pairing[i, j] = pairing.get((i, j), 0) + units
                left[i] -= units
                room[j] -= units
                moved = True
    return pairing


@each("seed", range(100))
def test_turns_dealt_at_once_are_those_dealt_one_by_one(seed):
    rng = random.Random(seed)
    size = rng.randint(2, 9)
    groups = sorted(rng.randrange(size) for _ in range(size))
    groups = [sorted(set(groups)).index(group) for group in groups]
    most = rng.choice((1, 20, 3000))
    sources, sinks = (
        ports([rng.randint(0, rng.choice((3, most))) for _ in groups], groups) for _ in "ab"
    )
    for make in (spread._rail_rounds, spread._spread_rounds):
        rounds = make(sources, sinks, max(groups) + 1)
        dealt = spread._dealt(sources, sinks, rounds)
        assert list(dealt.items()) == list(one_turn_after_the_other(sources, sinks, rounds).items())


def test_the_work_does_not_grow_with_the_ratio_of_bandwidths(monkeypatch):
    """A unit that finds no partner keeps shares small while the wide ports are dealt."""
    taken = []
    monkeypatch.setattr(
        spread, "min", lambda *x, **y: taken.append(x) or min(*x, **y), raising=False
    )
    for wide in (10**4, 10**16):
        taken.clear()
        sources, sinks = (ports([wide, 1, much], (0, 0, 1)) for much in (wide, 2 * wide))
        rounds = spread._rail_rounds(sources, sinks, 2)
        assert spread._dealt(sources, sinks, rounds) == {(0, 2): wide, (2, 0): wide}
        assert len(taken) < 100


def test_trees_do_not_pass_from_gpu_to_gpu_through_a_nic():
    """Runtimes send between two GPUs of a box over their own links, whatever trees say."""
    topology = api.load_topology("dgx-1v", nodes=2)
    problem = api.make_problem(topology, "allgather")
    forest = Pipeline.from_text("pack-trees{trees=1}").run(problem, Target(profile("rccl")))
    boxes = [topology.nodes[node].box for node in topology.ranks]
    edges = [edge for tree in forest.phases[0].trees for edge in tree.edges]
    assert forest.gap == 0
    assert all(len(e.route) == 1 for e in edges if boxes[e.parent] == boxes[e.child])
