"""What an all-to-all can reach at most, and how that is proven.

Every ordered pair of N GPUs exchanges M / N bytes, M being what each GPU sends in all.
With L(S) pairs from S to the rest, a cut allows a rate of B+(S) / L(S) per pair. A price
on every link proves more: a unit from u to v pays at least the least price of a way,
d(u, v), and no more can be paid than sum(bandwidth * price), so the rate per pair is at
most sum(bandwidth * price) / sum(d) (linear programming duality; a cut prices its own
links one). Both are worked out exactly. Up to `_MOST_FLOWS` a linear program proposes the
prices and tells whether flows reach what they allow; larger machines have cuts, and the
price of one on every link, alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.concurrent_flow import Concurrent, solve
from colsynth.bounds.cuts import cut_of
from colsynth.bounds.network import refuse_unreachable
from colsynth.bounds.timed.gpu_sets import sets_of, sweeps, tightest
from colsynth.bounds.timed.wires import Wires, csr
from colsynth.kernels.distances import FAR, spread, total_distance
from colsynth.model import Cut, Direction, FlowBound, Problem, Topology

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_MOST_FLOWS = 60_000
"""GPUs times links up to which the linear program is solved: its variables. Time grows with
their square, most on meshes: 10x10 GPUs (36,000) take 2.5 s, 12x12 (76,000) would take 12 s. 12 DGX
A100 (55,000) take 2.6 s, cliques less than a second."""
_SLOWEST = 2**40
"""Time of a link, 1024 being the fastest, beyond which slower ones are alike; sums stay exact."""
_PRICED_WORK = 100_000_000
"""GPUs times links up to which the distances of all pairs are added up."""
_MULTIPLES = (*range(1, 61), 10**6, 10**9)
"""The highest price, as a whole number, when prices are rounded to whole numbers."""
_REACHED = Fraction(1, 10**6)
"""Relative tolerance of the solver's flow."""
_TIGHTENED = 16_000_000
"""GPUs times links up to which the narrowest cut around each GPU is searched, through switches: two
flows for each. 128 DGX A100 (6 million) take 0.2 s."""
_UNPRICED: tuple[int, ...] = ()


def alltoall_bound(problem: Problem) -> FlowBound:
    """Return the least bound found on the algorithm bandwidth of an all-to-all.

    Raises
    ------
    InfeasibleError
        Some GPU cannot be reached (CS302).
    """
    topology = problem.topology
    wires = _wires(topology)
    _refuse_islands(topology, wires)
    cut, cut_rate = _best_cut(topology, wires)
    work = topology.size * len(topology.links)
    solved = None
    if work <= _MOST_FLOWS:
        solved = solve(_concurrent(topology, wires))
    candidates = _rounded(np.ones(len(topology.links)) if solved is None else solved[1])
    rate, prices = cut_rate, _UNPRICED
    for tried in candidates if work <= _PRICED_WORK else ():
        found = _priced_rate(topology, wires, tried)
        if found < rate:
            rate, prices = found, tuple(int(x) for x in tried)
    algbw, reached = topology.size * rate, None
    if solved is not None:
        widest = float(max(link.bandwidth for link in topology.links))
        reached = topology.size * solved[0] * widest
        if not 0 < reached <= algbw * (1 + _REACHED):  # widths too far apart for the solver
            reached = None
    return FlowBound(
        algbw=algbw,
        cut=cut,
        cut_algbw=topology.size * cut_rate,
        prices=prices,
        reached=reached,
        exact=reached is not None and reached >= algbw * (1 - _REACHED),
    )


def _wires(topology: Topology) -> Wires:
    """Return the links with times in proportion to their slowness, for the choice of sets."""
    widest = max((link.bandwidth for link in topology.links), default=Fraction(1))
    slowness = [round(widest / link.bandwidth * 2**10) for link in topology.links]
    busy = np.array([min(time, _SLOWEST) for time in slowness], np.int64)
    tail = np.array([link.source for link in topology.links], np.int64)
    head = np.array([link.target for link in topology.links], np.int64)
    return Wires(len(topology.nodes), tail, head, busy, np.zeros(len(tail), np.int64))


def _concurrent(topology: Topology, wires: Wires) -> Concurrent:
    rates = np.array([float(link.bandwidth) for link in topology.links])
    gpus = np.array(topology.ranks, np.int64)
    return Concurrent(wires.nodes, wires.tail, wires.head, rates / rates.max(), gpus)


def _refuse_islands(topology: Topology, wires: Wires) -> None:
    """Refuse GPUs that the first one cannot reach, or that cannot reach it."""
    ones = np.ones(len(wires.tail), np.int64)
    for tail, head, forward in (
        (wires.tail, wires.head, True),
        (wires.head, wires.tail, False),
    ):
        label = np.full(wires.nodes, FAR)
        label[topology.ranks[0]] = 0
        spread(*csr(wires.nodes, tail, head, ones), label)
        if (label[list(topology.ranks)] == FAR).any():
            refuse_unreachable(topology, label < FAR, forward)


def _best_cut(topology: Topology, wires: Wires) -> tuple[Cut, Fraction]:
    """Return the tried cut with the least bandwidth per pair across it, and that rate."""
    rates = np.array([link.bandwidth for link in topology.links], object)
    ranks = np.array(topology.ranks, np.int64)
    best: Flags | None = None
    best_rate = Fraction(0)
    for inside in _cuts(topology, wires):
        count = int(inside[ranks].sum())
        links = inside[wires.tail] & ~inside[wires.head]
        rate = rates[links].sum() / Fraction(count * (len(ranks) - count))
        if best is None or rate < best_rate:
            best, best_rate = inside, rate
    if best is None:
        raise ValueError("no cut was tried")
    return _named(topology, best), best_rate


def _cuts(topology: Topology, wires: Wires) -> Iterator[Flags]:
    """Yield sets of nodes that data leaves: around every GPU, then around sets of GPUs."""
    ranks = np.array(topology.ranks, np.int64)
    rates = np.array([link.bandwidth for link in topology.links], object)
    for ends, entering in ((wires.head, True), (wires.tail, False)):
        room = np.zeros(wires.nodes, object)
        np.add.at(room, ends, rates)
        alone = np.arange(wires.nodes) == ranks[np.argmin(room[ranks])]
        yield ~alone if entering else alone
    group = np.zeros(len(ranks), np.int64)
    small = len(ranks) * len(rates) <= _TIGHTENED and len(ranks) < wires.nodes
    sets = [np.arange(len(ranks)) == rank for rank in range(len(ranks) if small else 0)]
    sets += [inside for _, inside in sets_of(topology, wires)]
    sets += [inside for _, inside in sweeps(topology, wires, group)]
    for inside in sets:
        within, without = ranks[inside], ranks[~inside]
        yield ~tightest(wires, within, without)
        yield ~tightest(wires, without, within)


def _named(topology: Topology, inside: Flags) -> Cut:
    """Return a cut told from its smaller side; `inside` is the side that data leaves."""
    if 2 * int(inside[list(topology.ranks)].sum()) <= topology.size:
        return cut_of(topology, Direction.OUT, inside)
    return cut_of(topology, Direction.IN, ~inside)


def _rounded(prices: NDArray[np.float64]) -> Iterator[Ints]:
    """Yield prices in whole numbers, coarse ones first, each once."""
    highest = prices.max(initial=0)
    seen: set[bytes] = set()
    for most in _MULTIPLES if highest > 0 else ():
        whole = np.rint(prices / highest * most).astype(np.int64)
        whole //= np.gcd.reduce(whole)
        if whole.tobytes() not in seen:
            seen.add(whole.tobytes())
            yield whole


def _priced_rate(topology: Topology, wires: Wires, prices: Ints) -> Fraction:
    """Return the rate per pair that no flow can beat, by the prices of the links."""
    ranks = np.array(topology.ranks, np.int64)
    graph = csr(wires.nodes, wires.tail, wires.head, prices)
    total = int(total_distance(*graph, ranks, np.zeros(wires.nodes, np.int64)))
    paid = sum(
        (x.bandwidth * int(p) for x, p in zip(topology.links, prices, strict=True) if p),
        Fraction(0),
    )
    return paid / total if total else paid * 2**62
