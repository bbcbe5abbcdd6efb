"""Local search for an order of hosts, and what no order beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from colsynth.bounds.solver import silent
from colsynth.ranks.matrix import Floats, Ints, Network
from colsynth.ranks.patterns import Stage, seconds_of

_BATCH = 2**22
"""Places of all orders that are judged at once; 32 MB of each array."""

_WORK = 2 * 10**8
"""Places of all orders that a search judges at most: some seconds."""

_MOVES = 4096
"""Pairs of places tried for each step at most; drawn by the seed if there are more."""

_MISSES = 5
"""Steps without gain that end a descent: blocks are drawn anew in each."""

_STARTS = 4
"""Orders that the search starts from: as it is, from host to nearest host, and random ones."""


def best_orders(stages: Sequence[Stage], network: Network, size: int, seed: int = 0) -> list[Ints]:
    """Return the ends of several descents by exchanges and reversals, the fastest first.

    Parameters
    ----------
    stages, network, size
        As for `seconds_of`.
    seed : int

    Returns
    -------
    list of int64 (H,)
        Hosts by place; the first is never slower than as they are.
    """
    rng = np.random.default_rng(seed)
    hosts = network.size

    def judge(orders: Ints) -> Floats:
        step = max(1, _BATCH // hosts)
        parts = (orders[i : i + step] for i in range(0, len(orders), step))
        return np.concatenate([seconds_of(part, stages, network, size) for part in parts])

    starts = [np.arange(hosts), *_nearest(network, size)]
    starts += [rng.permutation(hosts) for _ in range(_STARTS - len(starts))]
    left = _WORK
    found: list[tuple[float, int, Ints]] = []
    for number, start in enumerate(starts):
        order, cost, used = _descended(start, judge, rng, left // (len(starts) - number))
        left -= used
        found.append((cost, number, order))
    return [order for _, _, order in sorted(found, key=lambda item: item[:2])]


def _descended(
    start: Ints, judge: Callable[[Ints], Floats], rng: np.random.Generator, work: int
) -> tuple[Ints, float, int]:
    """Return the end of a steepest descent, its seconds, and the work that it took."""
    order, cost, used, misses = start, float(judge(start[None])[0]), 0, 0
    while used < work:
        tried = _neighbours(order, rng)
        used += tried.size
        costs = judge(tried)
        best = int(np.argmin(costs))
        if costs[best] >= cost * (1 - 1e-12):
            misses += 1
            if misses == _MISSES:
                break
            continue
        misses = 0
        order, cost = tried[best], float(costs[best])
    return order, cost, used


def _neighbours(order: Ints, rng: np.random.Generator) -> Ints:
    """Return orders with two hosts exchanged, those between reversed, or two blocks exchanged."""
    hosts = len(order)
    first, second = np.triu_indices(hosts, 1)
    if len(first) > _MOVES:
        kept = rng.choice(len(first), _MOVES, replace=False)
        first, second = first[kept], second[kept]
    rows = np.arange(len(first))
    swapped = np.repeat(order[None], len(first), axis=0)
    swapped[rows, first], swapped[rows, second] = order[second], order[first]
    places, low, high = np.arange(hosts)[None], first[:, None], second[:, None]
    inside = (places >= low) & (places <= high)
    turned = np.where(inside, low + high - places, places)
    # Two neighbouring blocks change places: the second one begins at `middle`.
    middle = low + 1 + (rng.random(len(first))[:, None] * (high - low)).astype(np.int64)
    moved = places + np.where(places <= low + high - middle, middle - low, middle - high - 1)
    blocks = np.where(inside, moved, places)
    return np.concatenate([swapped, order[turned], order[blocks]])


def _nearest(network: Network, size: int) -> list[Ints]:
    """Return an order from each host to the nearest that is left, for this message size."""
    ways = network.capacity[network.links]
    slow = np.where(network.links < 0, 0.0, network.share / ways).max(axis=2)
    far = network.latency + size / max(1, network.size) * slow
    order = [0]
    left = set(range(1, network.size))
    while left:
        here = order[-1]
        order.append(min(left, key=lambda host: (far[here, host], host)))
        left.remove(order[-1])
    return [np.array(order)]


def bound_of(stages: Sequence[Stage], network: Network, size: int) -> float:
    """Return seconds that no order beats in this model.

    Every host that sends in a stage takes at least its shortest latency and, on the link where
    its nearest host would take longest, its bytes. In a stage where each host has one successor,
    as in a ring, the mean of latencies is at least that of the best assignment without circles
    smaller than all hosts (a linear program, with cuts added while any is violated).
    """
    apart = network.latency + np.diag(np.full(network.size, np.inf))
    total = 0.0
    for stage in stages:
        everyone = len(np.unique(stage.source)) == network.size
        if stage.mean and _is_circle(stage, network.size):
            total += stage.times * _assignment(network.latency) / network.size
        elif stage.mean or not everyone:
            total += stage.times * float(apart.min())
        else:
            total += stage.times * float(apart.min(axis=1).max())
    ways = network.capacity[network.links]
    slow = np.where(network.links < 0, 0.0, network.share / ways).max(axis=2)
    np.fill_diagonal(slow, np.inf)
    for stage in stages:
        everyone = len(np.unique(stage.source)) == network.size
        least = float(slow.min(axis=1).max()) if everyone else float(slow.min())
        alone = 1 if len(stages) == 1 or stages[0].share[0] != 0.5 else 0
        total += alone * size * float(stage.share.min()) * least if len(stage.share) else 0.0
    return total


def _is_circle(stage: Stage, hosts: int) -> bool:
    """Whether each host sends to one other, and all are on one circle."""
    after = dict(zip(stage.source.tolist(), stage.target.tolist(), strict=True))
    here, seen = 0, 0
    while here in after and seen < hosts:
        here, seen = after[here], seen + 1
        if here == 0:
            break
    return len(stage.source) == hosts == seen and here == 0


def _assignment(latency: Floats) -> float:
    """Return the sum of latencies that no circle through all hosts beats."""
    hosts = len(latency)
    solver = silent()
    many = hosts * hosts
    cost = latency.reshape(-1).copy()
    upper = np.ones(many)
    upper[:: hosts + 1] = 0.0  # no host follows itself
    solver.addVars(many, np.zeros(many), upper)
    solver.changeColsCost(many, np.arange(many, dtype=np.int32), cost)
    numbers = np.arange(many, dtype=np.int32).reshape(hosts, hosts)
    for line in (*numbers, *numbers.T):
        solver.addRow(1.0, 1.0, hosts, np.ascontiguousarray(line), np.ones(hosts))
    for _ in range(_CUTS):
        solver.run()
        value = np.array(solver.getSolution().col_value).reshape(hosts, hosts)
        parts = _parts(value)
        if len(parts) < 2:
            break
        for part in parts:
            out = numbers[np.ix_(part, np.setdiff1d(np.arange(hosts), part))].reshape(-1)
            solver.addRow(1.0, float(hosts), len(out), out, np.ones(len(out)))
    return float(solver.getInfo().objective_function_value)


_CUTS = 30
"""Rounds of cuts; each makes the bound stronger, and none is needed for it to hold."""


def _parts(value: Floats) -> list[Ints]:
    """Return the hosts of each part that a solution leaves without a way to the others."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(value)))
    graph.add_edges_from(np.argwhere(value > 1e-6).tolist())
    return [np.array(sorted(part)) for part in nx.connected_components(graph)]
