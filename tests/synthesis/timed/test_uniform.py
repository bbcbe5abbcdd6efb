"""Round-by-round matching against its twin: the same transfers at the same times."""

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.model import Direction, Kind, Link, Node, Topology
from colsynth.synthesis.timed import uniform as module
from colsynth.synthesis.timed.demands import Lists, Wants
from colsynth.synthesis.timed.hops import hops_of
from colsynth.synthesis.timed.progress import WorkMeter
from colsynth.synthesis.timed.uniform import is_uniform, match_rounds
from tests.reference.matching import rounds
from tests.verify.timed_schedules import moves_of


def random_direct_hops(rng, uniform=True):
    """Return hops of a strongly connected network of links between GPUs."""
    n = rng.randint(2, 9)
    around = rng.sample(range(n), n)
    pairs = set(zip(around, (*around[1:], around[0]), strict=True))
    pairs |= {tuple(rng.sample(range(n), 2)) for _ in range(rng.randint(0, 2 * n))}
    speed = Fraction(10**9)
    links = tuple(
        Link(a, b, speed if uniform else speed * rng.randint(1, 2)) for a, b in sorted(pairs)
    )
    nodes = tuple(Node(f"gpu{i}", Kind.GPU) for i in range(n))
    topology = Topology("random", nodes, links, tuple(range(n)))
    size = Fraction(10**6)
    return n, hops_of(topology, size, choose_ticks(topology, size))


def wants_of(holders):
    items = np.array(holders, np.int32)
    lists = Lists(np.arange(len(items) + 1), items)
    return Wants(Direction.OUT, np.arange(len(items), dtype=np.int32), lists, None)


def random_holders(rng, n):
    """Return who has each chunk: everybody as many, or one root, or anything."""
    kind = rng.randrange(3)
    if kind == 0:
        return sorted(list(range(n)) * rng.randint(1, 3))
    if kind == 1:
        return [rng.randrange(n)] * rng.randint(1, 70)
    return [rng.randrange(n) for _ in range(rng.randint(1, 80))]


def silent():
    return WorkMeter(0, Fraction(1), lambda *_: None)


@pytest.mark.parametrize("cells", [2**22, 1])
@pytest.mark.parametrize("seed", range(40))
def test_the_same_transfers_as_the_twin_however_many_rounds_a_call_plays(seed, cells, monkeypatch):
    monkeypatch.setattr(module, "_CELLS", cells)
    rng = random.Random(seed)
    n, hops = random_direct_hops(rng)
    holders, turn = random_holders(rng, n), rng.randrange(4)
    own = [[c for c, v in enumerate(holders) if v == u] for u in range(n)]
    expected = rounds(hops.source.tolist(), hops.target.tolist(), own, turn)
    meter = silent()
    phase = match_rounds(hops, n, wants_of(holders), turn, meter)
    tick = int(hops.end[0])
    assert moves_of(phase) == sorted((h, r * tick, c) for r, h, c in expected)
    assert len(expected) == meter.placed == len(holders) * (n - 1)


def test_threads_do_not_change_what_is_sent(threads):
    rng = random.Random(5)
    n = 300  # more than a thread matches at a time
    nodes = tuple(Node(f"gpu{i}", Kind.GPU) for i in range(n))
    pairs = {((i + d) % n, i) for i in range(n) for d in (1, 2, n - 1, rng.randrange(3, n))}
    links = tuple(Link(a, b, Fraction(10**9)) for a, b in sorted(pairs))
    topology = Topology("random", nodes, links, tuple(range(n)))
    hops = hops_of(topology, Fraction(10**6), choose_ticks(topology, Fraction(10**6)))
    found = []
    for most in (1, 2):
        threads(most)
        found.append(match_rounds(hops, n, wants_of(range(n)), 0, silent()))
    one, other = found
    assert (one.chunk == other.chunk).all()
    assert (one.run_start == other.run_start).all()
    arrived = Counter(zip(hops.target[one.hop_of()].tolist(), one.chunk.tolist(), strict=True))
    assert len(arrived) == one.transfers == n * (n - 1)


def test_rounds_are_for_direct_links_that_all_take_equally_long():
    rng = random.Random(1)
    assert is_uniform(random_direct_hops(rng)[1])
    assert not is_uniform(random_direct_hops(rng, uniform=False)[1])
