"""Seeded random topologies, small enough for slow exact references."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from colsynth.model import Kind, Link, Node, Topology

GIGA = 10**9


def random_topology(
    seed: int, *, most_gpus: int = 8, switches: int = 3, directed: bool = False
) -> Topology:
    """Return a connected topology of GPUs and switches with uneven bandwidths.

    Parameters
    ----------
    seed : int
        Equal seeds give equal topologies.
    most_gpus, switches : int
        Upper limits.
    directed : bool
        Whether the two directions of a link may differ.
    """
    rng = random.Random(seed)
    gpus = rng.randint(2, most_gpus)
    others = rng.randint(0, switches)
    nodes = [Node(f"gpu{i}", Kind.GPU, i % 2 if rng.random() < 0.5 else None) for i in range(gpus)]
    nodes += [Node(f"sw{i}", Kind.SWITCH, rng.choice((None, 0))) for i in range(others)]
    bandwidth: dict[tuple[int, int], Fraction] = {}

    def join(a: int, b: int) -> None:
        rate = Fraction(rng.choice((1, 2, 3, 5, 8)), rng.choice((1, 1, 1, 2, 3)))
        back = Fraction(rng.choice((1, 2, 3, 5, 8))) if directed else rate
        bandwidth[a, b], bandwidth[b, a] = rate, back

    order = list(range(len(nodes)))
    rng.shuffle(order)
    for place in range(1, len(order)):
        join(order[place], order[rng.randrange(place)])
    for _ in range(rng.randint(0, 2 * len(nodes))):
        a, b = rng.sample(range(len(nodes)), 2)
        join(a, b)
    links = tuple(Link(a, b, rate * GIGA) for (a, b), rate in sorted(bandwidth.items()))
    return Topology(f"random{seed}", tuple(nodes), links, tuple(range(gpus)))


def forwarding_topology(seed: int) -> Topology:
    """Return a strongly connected topology whose switches pass on all they receive.

    Made of one-way paths from GPU to GPU through chains of switches, so that every switch
    has as much ingress as egress while GPUs need not have.
    """
    rng = random.Random(seed)
    gpus, switches = rng.randint(2, 8), rng.randint(1, 5)
    nodes = [Node(f"gpu{i}", Kind.GPU, rng.choice((None, 0, 1))) for i in range(gpus)]
    nodes += [Node(f"sw{i}", Kind.SWITCH, rng.choice((None, 0))) for i in range(switches)]
    bandwidth: dict[tuple[int, int], int] = {}
    around = rng.sample(range(gpus), gpus)
    ends = list(zip(around, (*around[1:], around[0]), strict=True))
    ends += [tuple(rng.sample(range(gpus), 2)) for _ in range(rng.randint(1, 8))]
    for start, end in ends:
        relays = rng.sample(range(gpus, gpus + switches), rng.randint(0, switches))
        path, rate = [start, *relays, end], rng.randint(1, 3)
        for hop in pairwise(path):
            bandwidth[hop] = bandwidth.get(hop, 0) + rate
    links = tuple(Link(a, b, Fraction(rate * GIGA)) for (a, b), rate in sorted(bandwidth.items()))
    return Topology(f"forwarding{seed}", tuple(nodes), links, tuple(range(gpus)))


def three_tiers() -> Topology:
    """Return nine GPUs under three leaves, three spines and two cores, oddly tapered."""
    gpus = [Node(f"gpu{i}", Kind.GPU, i // 3) for i in range(9)]
    tiers = [
        Node(f"{tier}{i}", Kind.SWITCH) for tier in ("leaf", "spine", "core") for i in range(3)
    ]
    up = {(i, 9 + i // 3): Fraction(127, 5) for i in range(9)}
    up |= {(9 + i, 12 + j): Fraction(11 + i, 7) for i in range(3) for j in range(3)}
    up |= {(12 + i, 15 + j): Fraction(7 + j, 3 + i) for i in range(3) for j in range(3)}
    both = up | {(b, a): rate for (a, b), rate in up.items()}
    links = tuple(Link(a, b, rate * GIGA) for (a, b), rate in sorted(both.items()))
    return Topology("three tiers", (*gpus, *tiers), links, tuple(range(9)))


def clustered_topology(seed: int, *, boxes: int = 6, per_box: int = 7) -> Topology:
    """Return boxes of GPUs on a fabric of one or two planes, every link of its own bandwidth.

    Boxes are switched, meshed or sparse; a tenth of the GPUs has no way to the fabric, and
    the machine may fall apart. All links have a reverse of the same bandwidth.
    """
    rng = random.Random(seed)
    nodes: list[Node] = []
    up: dict[tuple[int, int], Fraction] = {}
    members = []
    size, planes = rng.randint(1, per_box), rng.randint(1, 2)
    for box in range(rng.randint(2, boxes)):
        gpus = [len(nodes) + i for i in range(size)]
        members.append(gpus)
        nodes += [Node(f"gpu{box}.{i}", Kind.GPU, box) for i in range(size)]
        up |= _box_links(rng, gpus, len(nodes))
        if any(b == len(nodes) for _, b in up):
            nodes.append(Node(f"switch{box}", Kind.SWITCH, box))
    fabric = [len(nodes) + i for i in range(planes)]
    nodes += [Node(f"ib{i}", Kind.SWITCH) for i in range(planes)]
    for gpus in members:
        for place, gpu in enumerate(gpus):
            rate = Fraction(rng.choice((1, 2, 2, 2)))
            if rng.random() < 0.1:
                continue
            port = gpu
            if rng.random() < 0.5:
                port = len(nodes)
                nodes.append(Node(f"nic{gpu}", Kind.NIC, nodes[gpu].box))
                up[gpu, port] = rate
            up[port, fabric[place % planes]] = rate
    both = up | {(b, a): rate for (a, b), rate in up.items()}
    links = tuple(Link(a, b, rate * GIGA) for (a, b), rate in sorted(both.items()))
    ranks = tuple(gpu for gpus in members for gpu in gpus)
    return Topology(f"clustered{seed}", tuple(nodes), links, ranks)


def _box_links(rng: random.Random, gpus: list[int], switch: int) -> dict[tuple[int, int], Fraction]:
    """Return links inside a box, one way; `switch` is the node that a switch would be."""
    style = rng.choice(("switched", "meshed", "sparse"))
    if style == "switched" and len(gpus) > 1:
        return {(gpu, switch): Fraction(rng.choice((10, 20, 20))) for gpu in gpus}
    pairs = [(a, b) for b in gpus for a in gpus if a < b]
    if style == "sparse":
        chain = list(pairwise(gpus))
        pairs = chain + rng.sample(pairs, min(len(pairs), len(gpus)))
    return {pair: Fraction(rng.choice((3, 5, 5, 10))) for pair in pairs}


def damaged(topology: Topology, seed: int, part: Fraction = Fraction(1, 20)) -> Topology:
    """Return a topology with a part of its links, both ways, missing or halved."""
    rng = random.Random(seed)
    pairs = sorted({(min(x.source, x.target), max(x.source, x.target)) for x in topology.links})
    hit = rng.sample(pairs, int(len(pairs) * part))
    gone = set(hit[::2])
    links = []
    for link in topology.links:
        pair = (min(link.source, link.target), max(link.source, link.target))
        if pair not in gone:
            rate = link.bandwidth / 2 if pair in hit else link.bandwidth
            links.append(replace(link, bandwidth=rate))
    return replace(topology, name=f"{topology.name} damaged{seed}", links=tuple(links))


def lopsided(topology: Topology, seed: int, part: Fraction = Fraction(1, 20)) -> Topology:
    """Return a topology with a part of its links missing or halved, in one direction only."""
    rng = random.Random(seed)
    links = []
    for link in topology.links:
        lot = rng.random()
        if lot < part / 2:
            continue
        links.append(replace(link, bandwidth=link.bandwidth / 2) if lot < part else link)
    return replace(topology, name=f"{topology.name} lopsided{seed}", links=tuple(links))
