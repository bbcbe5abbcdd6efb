"""Random problems with all that the issue asks for, feasible or not, and what they want."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import networkx as nx

from colsynth.model import Collective, Kind, Link, Node, Problem, Topology
from tests.reference.timed import conditions
from tests.verify.timed_schedules import random_demand

LATENCIES = (Fraction(0), Fraction(1, 10**7), Fraction(3, 10**7), Fraction(1, 10**6))


def network(links, boxes=(), stores=()) -> Topology:
    """Return a small topology by hand; names that begin with "s" are switches.

    Parameters
    ----------
    links : dict
        ``{"a b": (GB/s, microseconds)}``, or GB/s alone for no latency.
    boxes : tuple of str
        Names of the nodes of each box, such as ``("a b s", "c d")``.
    stores : tuple of str
        Switches that store and forward.
    """
    names = sorted({name for ends in links for name in ends.split()})
    box_of = {name: i for i, inside in enumerate(boxes) for name in inside.split()}
    nodes = tuple(
        Node(
            name,
            Kind.SWITCH if name.startswith("s") else Kind.GPU,
            box_of.get(name),
            ("store-and-forward",) if name in stores else (),
        )
        for name in names
    )
    costs = {
        tuple(map(names.index, ends.split())): cost if isinstance(cost, tuple) else (cost, 0)
        for ends, cost in links.items()
    }
    made = tuple(
        Link(*ends, Fraction(rate) * 10**9, Fraction(late) / 10**6)
        for ends, (rate, late) in sorted(costs.items())
    )
    ranks = tuple(i for i, node in enumerate(nodes) if node.kind is Kind.GPU)
    return Topology("by hand", nodes, made, ranks)


def both_ways(*ends, cost=1):
    """Return links there and back."""
    turned = [" ".join(reversed(pair.split())) for pair in ends]
    return dict.fromkeys((*ends, *turned), cost)


def wild_topology(seed: int) -> Topology:
    """Return GPUs, switches and NICs in and between boxes, joined by one-way links.

    Two in three are strongly connected: a ring of GPUs, some of it through forwarders.
    """
    rng = random.Random(f"wild {seed}")
    gpus, others = rng.randint(2, 7), rng.randint(0, 4)
    boxes = rng.choice(((None,), (0, 1), (0, 1, None)))
    nodes = [Node(f"gpu{i}", Kind.GPU, rng.choice(boxes)) for i in range(gpus)]
    for i in range(others):
        abilities = ("store-and-forward",) if rng.random() < 0.4 else ()
        kind = rng.choice((Kind.SWITCH, Kind.NIC))
        nodes.append(Node(f"{kind}{i}", kind, rng.choice((*boxes, None)), abilities))
    pairs = set()
    if rng.random() < 0.65:
        ring = rng.sample(range(gpus), gpus)
        for a, b in zip(ring, (*ring[1:], ring[0]), strict=True):
            relays = rng.sample(range(gpus, gpus + others), rng.randint(0, min(2, others)))
            pairs |= set(pairwise((a, *relays, b)))
    for _ in range(rng.randint(1, 2 * len(nodes))):
        a, b = rng.sample(range(len(nodes)), 2)
        pairs |= {(a, b)} | ({(b, a)} if rng.random() < 0.6 else set())
    links = tuple(
        Link(a, b, Fraction(rng.choice((1, 2, 3, 5, 8)) * 10**9, rng.choice((1, 1, 2, 3))), late)
        for a, b in sorted(pairs)
        for late in [rng.choice(LATENCIES)]
    )
    return Topology(f"wild {seed}", tuple(nodes), links, tuple(range(gpus)))


def wild_problem(seed: int) -> Problem:
    """Return a random collective on a random network: groups, transit, custom demands."""
    rng = random.Random(f"problem {seed}")
    topology = wild_topology(seed)
    ranks = topology.size
    collective = list(Collective)[seed % len(Collective)]
    if collective is Collective.CUSTOM:
        demands = tuple(random_demand(rng, ranks) for _ in range(rng.randint(1, 3)))
        return Problem(topology, collective, demands=demands)
    groups: tuple[tuple[int, ...], ...] = ()
    if rng.random() < 0.4:
        order = rng.sample(range(ranks), ranks)
        size = rng.randint(1, max(1, ranks // 2))
        count = rng.randint(1, ranks // size)
        groups = tuple(tuple(order[i * size : (i + 1) * size]) for i in range(count))
    root = rng.randrange(len(groups[0]) if groups else ranks) if collective.rooted else None
    return Problem(topology, collective, root, groups, bool(groups) and rng.random() < 0.5)


def roads(problem: Problem, members: tuple[int, ...]) -> nx.DiGraph:
    """Return the nodes and links that data of one group may pass."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(problem.topology.nodes)))
    graph.add_edges_from((link.source, link.target) for link in problem.topology.links)
    if problem.groups and not problem.transit:
        allowed = {problem.topology.ranks[rank] for rank in members}
        graph.remove_nodes_from(set(problem.topology.ranks) - allowed)
    return graph


def can_pass(problem: Problem, source: int, target: int) -> bool:
    """Whether data can pass between two ranks of one group."""
    members = next(group for group in problem.members if source in group)
    ends = problem.topology.ranks[source], problem.topology.ranks[target]
    return target in members and nx.has_path(roads(problem, members), *ends)


def is_feasible(problem: Problem) -> bool:
    """Whether every chunk can reach all who want it, and every sum be added up."""
    for kinds, holders, wanted in conditions(problem, 1):
        if "sum" in kinds:
            (end,) = wanted
            if not all(can_pass(problem, rank, end) for rank in holders):
                return False
        if "spread" in kinds:
            (end,) = wanted
            if not all(can_pass(problem, end, rank) for rank in holders):
                return False
        if "copy" in kinds and not all(
            any(can_pass(problem, a, b) for a in holders) for b in wanted
        ):
            return False
    return True


def is_idle(problem: Problem) -> bool:
    """Whether everybody has all they want."""
    return all(
        holders == wanted if "sum" in kinds else wanted <= holders
        for kinds, holders, wanted in conditions(problem, 1)
    )
