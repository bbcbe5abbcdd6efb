"""How fast K equal trees per root can be.

A unit of weight is given y bytes/s on each link it uses, so a link of bandwidth b holds
floor(b / y) units. K trees per root fit iff every cut S that leaves out a GPU satisfies
sum floor(b / y) >= K w(S). The least U = 1 / y is found by raising U to what each
violated cut needs, which never overshoots (ForestColl, arXiv 2402.06787, fixed-k search).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.network import Ints, Network, network_of, to_int64
from colsynth.bounds.trees import bound, phases_of
from colsynth.errors import Diagnostic, InputError
from colsynth.kernels.maxflow import largest_deficit
from colsynth.model import Bound, Cut, Problem
from colsynth.runtimes.choice import Basis, Proposal
from colsynth.synthesis.forest.forwarding import forwardings, is_lopsided

TOLERANCE = Fraction(2, 100)
"""How far below the optimum ``auto`` may stay for the sake of fewer trees."""

FARTHEST = Fraction(10, 100)
"""How far below the optimum fewer trees may stay that are predicted to be faster."""

TREES = "pack-trees.trees"

MOST_TREES = 64
"""Largest number of trees per root that ``auto`` considers."""


@dataclass(frozen=True)
class Rate:
    """Integer capacities that hold K trees per root, and what one unit is worth.

    Parameters
    ----------
    units : int64 (m,)
        Per arc of the network.
    unit_bandwidth : Fraction
        Bytes per second of one unit.
    """

    units: Ints
    unit_bandwidth: Fraction


def fixed_rate(network: Network, trees: int, rate: Fraction) -> Rate:
    """Return the best rate for `trees` trees per root.

    Parameters
    ----------
    rate : Fraction
        The optimum per unit of root weight, bytes/s, from which the search starts.
    """
    scale = trees / rate
    while True:
        units = _held(network, scale)
        inside = _violated(network, units, trees)
        if inside is None:
            return Rate(units, 1 / scale)
        crossing = inside[network.tail] & ~inside[network.head]
        links = [c for c, crosses in zip(network.capacity, crossing, strict=True) if crosses]
        scale = _least_scale(links, trees * int(network.weight[inside].sum()), scale)


def _held(network: Network, scale: Fraction) -> Ints:
    """Return how many units each link holds where bandwidth b holds floor(b U), U = `scale`."""
    held = {c: int(c * scale) for c in set(network.capacity)}
    return to_int64([held[c] for c in network.capacity], "capacities in trees")


def _violated(network: Network, units: Ints, trees: int) -> NDArray[np.bool_] | None:
    """Return which nodes are in the cut that lacks most for `trees` trees per root, if any."""
    roots, source = network.roots, network.size  # a node beyond all others feeds every root
    tail = np.concatenate((network.tail, np.full(roots.size, source, np.int64)))
    head = np.concatenate((network.head, roots))
    capacity = np.concatenate((units, network.weight[roots] * trees))
    demand = trees * int(network.weight.sum())
    deficit, inside = largest_deficit(
        source + 1, tail, head, capacity, source, network.gpus, demand
    )
    return inside[:source] if deficit else None


def _least_scale(links: list[Fraction], demand: int, scale: Fraction) -> Fraction:
    """Return the least U >= `scale` with sum floor(U b) >= `demand` over `links`."""
    counts: dict[Fraction, int] = {}
    for capacity in links:
        counts[capacity] = counts.get(capacity, 0) + 1
    held = sum(int(c * scale) * k for c, k in counts.items())
    events = [(Fraction(int(c * scale) + 1) / c, c) for c in counts]
    heapq.heapify(events)
    while held < demand:
        scale, capacity = events[0]
        held += counts[capacity]
        heapq.heapreplace(events, (Fraction(int(capacity * scale) + 1) / capacity, capacity))
    return scale


def algbw_of(problem: Problem, optimum: Bound, trees: int) -> Fraction:
    """Return the algorithm bandwidth (bytes/s) that cuts allow `trees` trees per root.

    Switches with unequal ingress and egress, whole trees rounded down, may forward less.
    """
    times: list[Fraction] = []
    for direction, algbw in zip(phases_of(problem), optimum.rates, strict=True):
        if times and problem.topology.is_symmetric:
            times.append(times[0])
            continue
        network = network_of(problem, direction)
        parts = int(network.weight.sum())
        found = fixed_rate(network, trees, algbw / parts)
        times.append(1 / (found.unit_bandwidth * trees * parts))
    return 1 / sum(times, Fraction(0))


class _Reach:
    """What numbers of trees reach: what cuts allow, and lopsided switches can forward."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._optimum = problem, bound(problem)
        self._phases = forwardings(problem) if is_lopsided(problem.topology) else ()
        self.best, self.most = self._optimum.algbw, self._optimum.trees_per_root
        if self._phases and all(phase.rate for phase in self._phases):
            self.best = self._together([p.rate * p.parts for p in self._phases])
            self.most = max(self.most, *(phase.trees for phase in self._phases))
        else:
            self._phases = ()

    def algbw(self, trees: int) -> Fraction:
        """Return the algorithm bandwidth (bytes/s) of `trees` trees per root, 0 for unknown."""
        if not self._phases:
            return algbw_of(self._problem, self._optimum, trees)
        found: list[Fraction] = []
        for phase, cut_rate in zip(self._phases, self._optimum.rates, strict=False):
            most = fixed_rate(phase.network, trees, cut_rate / phase.parts).unit_bandwidth
            fitted = phase.fit(trees, most)
            if fitted is None:
                return Fraction(0)
            found.append(fitted.unit_bandwidth * trees * phase.parts)
        return self._together(found)

    def _together(self, rates: list[Fraction]) -> Fraction:
        """Return the rate of all phases; one stands for both where the topology is symmetric."""
        rates = [rates[i % len(rates)] for i in range(len(self._optimum.rates))]
        return 1 / sum((1 / rate for rate in rates), Fraction(0))


def candidates(problem: Problem) -> tuple[int, ...]:
    """Return numbers of trees per root worth trying, the best choice first.

    First the fewest trees within `TOLERANCE` of the optimum; should those not fit the
    runtime, every smaller number, fastest first, down to one.
    """
    reach = _Reach(problem)
    slowest = reach.best * (1 - TOLERANCE)
    tried: list[tuple[Fraction, int]] = []
    for trees in range(1, min(reach.most, MOST_TREES) + 1):
        algbw = reach.algbw(trees)
        if algbw >= slowest:
            fallback = sorted(tried, key=lambda pair: (-pair[0], pair[1]))
            return (trees, *(k for _, k in fallback))
        tried.append((algbw, trees))
    ranked = sorted(tried, key=lambda pair: (-pair[0], pair[1]))
    return tuple(k for _, k in ranked)


def fewest_trees(problem: Problem) -> int | None:
    """Return the fewest trees per root whose rate is within `FARTHEST` of the optimum.

    None where that takes more than `MOST_TREES`.
    """
    reach = _Reach(problem)
    least = reach.best * (1 - FARTHEST)
    counts = range(1, min(reach.most, MOST_TREES) + 1)
    return next((k for k in counts if reach.algbw(k) >= least), None)


def numbers_of_trees(basis: Basis) -> Iterator[Proposal]:
    """Yield other numbers of trees per root: the fewest within `FARTHEST`, or one, two, four."""
    text = str(basis.values[TREES])
    if basis.problem.groups or not text.isdigit():
        return
    present = int(text)
    fewer = fewest_trees(basis.problem) if present > 1 else None
    counts = [] if fewer is None or fewer >= present else [fewer]
    counts += [1, 2, 4] if basis.thorough else []
    for number in dict.fromkeys(counts):
        if number != present:
            yield ({TREES: str(number)},)


def counts_at_optimum(problem: Problem, optimum: Bound) -> tuple[int, ...]:
    """Return numbers of trees per root that reach the optimum as far as cuts tell.

    The fewest such number, and last the one that leaves no fraction of a tree on any link.
    The links of a tightest cut must hold whole numbers of trees, so only multiples of
    their common denominator are asked for, and no more than `MOST_TREES` of them.
    """
    whole = optimum.trees_per_root
    sides = [
        _Side(network_of(problem, cut.direction), cut, rate)
        for cut, rate in zip(optimum.cuts, optimum.rates, strict=True)
    ]
    if problem.topology.is_symmetric:
        del sides[1:]
    step = lcm(*(side.step for side in sides))
    for trees in range(step, min(whole, step * MOST_TREES), step):
        if all(side.holds(trees) for side in sides):
            return trees, whole
    return (whole,)


class _Side:
    """A phase at its optimum, and cuts that some number of trees has violated."""

    def __init__(self, network: Network, cut: Cut, algbw: Fraction) -> None:
        self._network = network
        self._rate = algbw / int(network.weight.sum())
        self._cuts: list[tuple[Ints, int]] = []
        self.step = lcm(*((network.capacity[link] / self._rate).denominator for link in cut.links))

    def holds(self, trees: int) -> bool:
        """Whether all cuts hold so many trees per root at the optimum."""
        network = self._network
        units = _held(network, trees / self._rate)
        if any(int(units[crossing].sum()) < trees * inside for crossing, inside in self._cuts):
            return False
        inside = _violated(network, units, trees)
        if inside is not None:
            crossing = np.nonzero(inside[network.tail] & ~inside[network.head])[0]
            self._cuts.append((crossing, int(network.weight[inside].sum())))
        return inside is None


def require_trees(text: str, option: str = "trees") -> None:
    """Refuse what is no number of trees (CS210)."""
    if not re.fullmatch(r"auto|optimal|[1-9][0-9]{0,8}", text):
        phrase = f"{option} {text}: expected auto, optimal or a number from 1 to 999999999"
        raise InputError(Diagnostic("CS210", phrase))


def trees_per_root(text: str, problem: Problem, optimum: Bound) -> tuple[int, ...]:
    """Return the numbers of trees to try for ``auto``, ``optimal`` or a number."""
    if text == "auto":
        return (candidates(problem)[0],)
    return counts_at_optimum(problem, optimum) if text == "optimal" else (int(text),)
