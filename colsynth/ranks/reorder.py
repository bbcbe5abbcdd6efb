"""The order of hosts in which an allreduce of the library, or a schedule, is fastest.

After Cloud Collectives (arXiv 2105.14088): of a cloud only measurements between hosts are known,
and the order of ranks is all that a user can choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from colsynth.cost.pair_routes import pair_routes
from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.model import Collective, Problem, Program, Topology
from colsynth.pipeline.target import aim
from colsynth.ranks.matrix import Network
from colsynth.ranks.patterns import seconds_of, stages_of, stages_of_program
from colsynth.ranks.search import best_orders, bound_of
from colsynth.runtimes.catalog import profile
from colsynth.search.wish import configured
from colsynth.simulate import simulate

LIBRARY = "msccl"
"""A runtime that fuses receiving, adding and sending, as libraries do."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """An order of hosts.

    Parameters
    ----------
    order : tuple of int
        By new place, the number of the host in the list.
    before, after : float
        Predicted seconds: by the simulator with a topology, else by latencies and bandwidths.
    bound : float
        Seconds that no order beats, in the model of latencies and full links.
    model_after : float
        Seconds of the order in that model: with `bound`, the gap.
    latency, bandwidth : bool
        Whether these are known; a time counts only what is.
    """

    order: tuple[int, ...]
    before: float
    after: float
    bound: float
    model_after: float
    latency: bool = True
    bandwidth: bool = True

    @property
    def gap(self) -> float | None:
        """How far the order may be from the best one, as a share of the bound; None: unknown."""
        return self.model_after / self.bound - 1 if self.bound > 0 else None


def reorder(
    network: Network, pattern: str | Program, size: int, per_host: int = 1, seed: int = 0
) -> Reordered:
    """Return the order of hosts for a measured network.

    Parameters
    ----------
    network : Network
    pattern : str or Program
        Of `PATTERNS`, or a schedule whose ranks are `per_host` on each host, in order.
    size : int
        Bytes of the message.
    per_host : int
    seed : int

    Raises
    ------
    InputError
        CS210: the seed is below 0. CS635: no order can be found for the pattern.
    """
    return _candidates(network, pattern, size, per_host, seed)[0]


def _candidates(
    network: Network, pattern: str | Program, size: int, per_host: int, seed: int
) -> list[Reordered]:
    """Return orders by latencies and full links, the fastest first."""
    require_least("--seed", seed, 0)
    if network.size < 2:
        phrase = "a single host has no order"
        raise InputError(Diagnostic("CS635", phrase, help="list two hosts or more"))
    if isinstance(pattern, str):
        stages = stages_of(pattern, network.size)
    else:
        stages = stages_of_program(pattern, per_host)
        if pattern.header.ranks != per_host * network.size:
            ranks = f"{pattern.header.ranks} ranks, {network.size} hosts have {per_host} each"
            raise InputError(Diagnostic("CS635", f"the schedule is for {ranks}"))
    orders = best_orders(stages, network, size, seed)
    before, *after = seconds_of(
        np.stack([np.arange(network.size), *orders]), stages, network, size
    ).tolist()
    bound = min(bound_of(stages, network, size), *after)
    known = network.knows_latency, network.knows_bandwidth
    return [
        Reordered(tuple(order.tolist()), before, seconds, bound, seconds, *known)
        for order, seconds in zip(orders, after, strict=True)
    ]


def reorder_topology(
    topology: Topology,
    pattern: str | Program,
    size: int,
    seed: int = 0,
    runtime: str = LIBRARY,
) -> Reordered:
    """Return the order of the boxes of a topology; times are predicted by the simulator.

    `runtime` is the one whose constants the simulator takes.

    Raises
    ------
    InputError
        CS210: the seed is below 0. CS635: the topology has no equal boxes, or no order can be
        found for the pattern.
    """
    boxes = _boxes(topology)
    network = _network(topology, boxes)
    candidates = _candidates(network, pattern, size, len(boxes[0]), seed)
    before = _predicted(topology, pattern, size, runtime)
    tried = [
        replace(
            found,
            before=before,
            after=_predicted(reordered(topology, order), pattern, size, runtime),
        )
        for order, found in {found.order: found for found in candidates}.items()
    ]
    best = min(tried, key=lambda found: found.after)
    if best.after >= before:  # the simulator knows better than latencies and links
        return replace(best, order=tuple(range(len(boxes))), after=before)
    return best


def reordered(topology: Topology, order: Sequence[int]) -> Topology:
    """Return a topology whose boxes, and the ranks in them, are numbered in another order."""
    boxes = _boxes(topology)
    old_box = [topology.gpu_boxes[ranks[0]] for ranks in boxes]
    place: dict[int | None, int] = {old_box[old]: new for new, old in enumerate(order)}
    nodes = tuple(replace(node, box=place.get(node.box, node.box)) for node in topology.nodes)
    ranks = tuple(topology.ranks[rank] for old in order for rank in boxes[old])
    return replace(topology, nodes=nodes, ranks=ranks, whole=None)


def _boxes(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of each box; refuse boxes that are not alike."""
    boxes = topology.ranks_by_box
    if -1 in topology.gpu_boxes or len(boxes) < 2 or len(set(map(len, boxes))) > 1:
        phrase = f"{topology.name} has no boxes of equal size to put into an order"
        advice = "choose a topology of several boxes, with --nodes"
        raise InputError(Diagnostic("CS635", phrase, help=advice))
    return boxes


def _network(topology: Topology, boxes: Sequence[Sequence[int]]) -> Network:
    """Return the links between boxes: each GPU sends its part to its counterpart elsewhere."""
    hosts, each = len(boxes), len(boxes[0])
    pairs = [
        (a[i], b[i]) for a in boxes for b in boxes if a is not b for i in range(each)
    ]  # fmt: skip
    ways = pair_routes(topology, pairs)
    delays = [float(link.latency) for link in topology.links]
    longest = each * max(len(route) for choice in ways.values() for route in choice)
    links = np.full((hosts, hosts, longest), -1, np.int64)
    share = np.zeros(links.shape)
    latency = np.full((hosts, hosts), 1.0)
    for a, first in enumerate(boxes):
        for b, second in enumerate(boxes):
            if a == b:
                continue
            routes = [ways[pair][0] for pair in zip(first, second, strict=True)]
            taken = [link for route in routes for link in route]
            links[a, b, : len(taken)] = taken
            share[a, b, : len(taken)] = 1 / each
            latency[a, b] = max(sum(delays[link] for link in route) for route in routes)
    capacity = np.array([float(link.bandwidth) for link in topology.links])
    return Network(latency, links, share, capacity)


def _predicted(topology: Topology, pattern: str | Program, size: int, runtime: str) -> float:
    """Return the seconds that the simulator predicts for an allreduce, or for a schedule."""
    program = pattern
    if isinstance(program, str):
        problem = Problem(topology, Collective.ALLREDUCE)
        program = configured(program, {}).run(problem, aim(problem, profile(LIBRARY)))
    (point,) = simulate(program, topology, profile(runtime), [size])
    return point.seconds
