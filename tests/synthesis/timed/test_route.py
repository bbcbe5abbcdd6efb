"""Chunks along trees: the trees are sound, and sent as their twin sends them."""

import random
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.model import Direction
from colsynth.synthesis.timed.demands import Lists, Wants
from colsynth.synthesis.timed.fabric import fabric_of
from colsynth.synthesis.timed.hops import hops_of, reverse
from colsynth.synthesis.timed.match import Tactic
from colsynth.synthesis.timed.phases import last_uses
from colsynth.synthesis.timed.progress import WorkMeter
from colsynth.synthesis.timed.route import route, send_along
from colsynth.topology.load import load
from tests.each import each
from tests.reference.matching import Sending
from tests.verify.timed_schedules import moves_of, random_fabric

PLAIN = Tactic("", False, 0)


def silent():
    return WorkMeter(0, Fraction(1), lambda *_: None)


def wants_of(holders, wanted):
    number = np.arange(len(holders), dtype=np.int32)
    return Wants(Direction.OUT, number, Lists.of(holders), Lists.of(wanted))


def random_wants(rng, gpus):
    """Return chunks for one, for some, for all, from one or several holders."""
    if rng.random() < 0.3:
        pairs = [(a, b) for a in range(gpus) for b in range(gpus) for _ in range(2)]
        return wants_of([(a,) for a, _ in pairs], [(b,) for _, b in pairs])
    holders, wanted = [], []
    for _ in range(rng.randint(1, 12)):
        most = 1 if rng.random() < 0.6 else gpus
        holders.append(tuple(sorted(rng.sample(range(gpus), rng.randint(1, most)))))
        wanted.append(tuple(sorted(rng.sample(range(gpus), rng.randint(1, most)))))
    return wants_of(holders, wanted)


def random_case(seed):
    rng = random.Random(seed)
    topology = random_fabric(seed)
    size = Fraction(rng.choice((960, 10_000, 10**6)))
    hops = hops_of(topology, size, choose_ticks(topology, size))
    hops = reverse(hops)[0] if rng.random() < 0.3 else hops
    return rng, topology, hops, random_wants(rng, topology.size)


def split(lists):
    return np.split(lists.items, lists.first[1:-1])


@each("seed", range(60))
def test_trees_reach_everyone_once_and_lead_nowhere_else(seed):
    _, topology, hops, wants = random_case(seed)
    network = hops, topology.size, len(topology.links)
    tactic = Tactic("", False, 0, order=seed % 3, short=seed % 4 == 0)
    trees = route(*network, wants, wants.wanted, tactic, silent())
    parts = np.split(trees.hop, trees.first[1:-1])
    for held, wanted, tree in zip(split(wants.holders), split(wants.wanted), parts, strict=True):
        reached = set(held.tolist())
        for h in tree.tolist():
            assert int(hops.source[h]) in reached
            assert int(hops.target[h]) not in reached
            reached.add(int(hops.target[h]))
        assert set(wanted.tolist()) <= reached
        sources = set(hops.source[tree].tolist())
        assert set(hops.target[tree].tolist()) - sources <= set(wanted.tolist())


@each("seed", range(60))
def test_the_same_transfers_as_the_twin(seed):
    rng, topology, hops, wants = random_case(seed)
    links, gpus = len(topology.links), topology.size
    trees = route(hops, gpus, links, wants, wants.wanted, PLAIN, silent())
    start = np.zeros(links, np.int64), np.zeros(len(wants.number), np.int64)
    if rng.random() < 0.5 and len(trees.hop):
        # What an earlier phase on the same hops leaves.
        busy = last_uses(send_along(hops, gpus, wants, trees, start, PLAIN, silent()), links)
        start = busy, np.array([rng.randint(0, int(busy.max())) for _ in wants.number])
    tactic = Tactic("", False, rng.randrange(5), rng.random() < 0.5)
    fabric = fabric_of(hops, gpus, links)
    times = start[0].tolist(), start[1].tolist()
    expected = Sending(hops, fabric, trees, times, tactic).run()
    meter = silent()
    phase = send_along(hops, gpus, wants, trees, start, tactic, meter)
    assert len(expected) == len(trees.hop) == meter.placed
    assert moves_of(phase) == sorted(expected)


def largest_load(hops, trees, links):
    load = np.zeros(links, np.int64)
    for h in trees.hop.tolist():
        used = slice(hops.first[h], hops.first[h + 1])
        load[hops.links[used]] += hops.end[used] - hops.begin[used]
    return int(load.max())


def test_chunks_go_around_what_is_full():
    """Two chunks for each: of those that go straight across a ring, half should go each way."""
    topology = load("ring:8")
    size = Fraction(10**6)
    hops = hops_of(topology, size, choose_ticks(topology, size))
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b for _ in range(2)]
    wants = wants_of([(a,) for a, _ in pairs], [(b,) for _, b in pairs])
    trees = route(hops, 8, len(topology.links), wants, wants.wanted, PLAIN, silent())
    # Distances 1, 2 and 3 both ways, 4 either way: 2 * 8 * (2 * 6 + 4) uses of 16 links.
    least, one = 16, int(hops.duration[0])
    assert least * one <= largest_load(hops, trees, len(topology.links)) <= (least + 1) * one


def test_shortest_ways_are_shortest_however_full_they_are():
    topology = load("mi250")
    size = Fraction(10**6)
    hops = hops_of(topology, size, choose_ticks(topology, size))
    gpus = topology.size
    pairs = [(a, b) for a in range(gpus) for b in range(gpus) if a != b]
    wants = wants_of([(a,) for a, _ in pairs], [(b,) for _, b in pairs])
    short = replace(PLAIN, short=True)
    trees = route(hops, gpus, len(topology.links), wants, wants.wanted, short, silent())
    graph = nx.DiGraph()
    for source, target, time in zip(hops.source, hops.target, hops.duration, strict=True):
        graph.add_edge(int(source), int(target), weight=int(time))
    least = dict(nx.all_pairs_dijkstra_path_length(graph))
    taken = np.add.reduceat(hops.duration[trees.hop], trees.first[:-1])
    assert taken.tolist() == [least[a][b] for a, b in pairs]
