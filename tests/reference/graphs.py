"""Seeded random topologies, small enough for slow exact references."""

from __future__ import annotations

import random
from fractions import Fraction

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
