"""What an allreduce can reach with shares of its own for every root, proven exactly.

The linear program's prices are rounded to whole numbers and its bound is worked out from
those in exact arithmetic, which proves it whatever the solver did (`verify.allreduce`
says how). Rounded coarsely first: prices are small whole multiples of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.allreduce.halves import Halves, capable, halves_of
from colsynth.bounds.allreduce.limits import first_limit, priced_limit
from colsynth.bounds.allreduce.program import Floats, RootProgram, Solution
from colsynth.bounds.trees import bound
from colsynth.errors import Diagnostic, InputError
from colsynth.model import (
    AllreduceBound,
    Collective,
    Direction,
    PricedCut,
    Problem,
    RootedBound,
)

Ints = NDArray[np.int64]

_MOST_WORK = 16_000_000
"""GPUs times links up to which the linear program is solved. Each of its rounds sends a flow
into every GPU. At the limit a mesh of 45x45 GPUs takes some seconds, and 1024 GPUs in boxes
whose links all differ take under ten: as long as the cut bound of such clusters."""
_MULTIPLES = (*range(1, 41), 60, 84, 120, 360, 840, 2520, 10**6, 10**8)
"""The highest price, as a whole number, when prices are rounded to whole numbers."""
_REACHED = 1e-9
"""Relative tolerance at which rounded prices count as those of the solver."""


def allreduce_bound(problem: Problem) -> AllreduceBound:
    """Return what reduce-scatter and allgather reach, what free roots can, and what none can.

    Raises
    ------
    InfeasibleError
        Some GPU cannot be reached (CS302).
    InputError
        CS321: not an allreduce; and as `bounds.trees.bound`.
    """
    if problem.collective is not Collective.ALLREDUCE:
        phrase = f"free roots are for allreduce, not for {problem.collective}"
        raise InputError(Diagnostic("CS321", phrase, help="take -a forest"))
    composition = bound(problem)
    limit = first_limit(problem, composition.cuts)
    places = capable(problem.topology)
    found = AllreduceBound(composition, None, limit)
    if not is_solved(problem):
        return found
    if any(places.values()):
        program = Proposal(problem, halves_of(problem, places), in_network=True)
        found = replace(found, in_network=program.bound())
    if limit.algbw == composition.algbw:
        return found
    program = Proposal(problem, halves_of(problem), in_network=False)
    rooted = program.bound()
    if rooted is None:
        return found
    return replace(found, rooted=rooted, limit=priced_limit(problem, program.prices(), limit))


def is_solved(problem: Problem) -> bool:
    """Return whether a topology is small enough for the linear program."""
    topology = problem.topology
    return topology.size * len(topology.links) <= _MOST_WORK


def prices_of(problem: Problem, rooted: RootedBound) -> tuple[Ints, int]:
    """Return what each link is paid, (m,), and what a chunk pays at least, in whole prices."""
    topology = problem.topology
    tail = np.array([link.source for link in topology.links], np.int64)
    head = np.array([link.target for link in topology.links], np.int64)
    paid = np.zeros(len(topology.nodes), np.int64)
    highest = np.zeros(len(tail), np.int64)
    for way in Direction:
        near, far = (tail, head) if way is Direction.OUT else (head, tail)
        refunds = np.zeros(len(topology.nodes), np.int64)
        for _, node, value in (x for x in rooted.potentials if x[0] is way):
            refunds[node] = value
        prices = refunds[far] - refunds[near]
        for cut in (x for x in rooted.cuts if x.direction is way):
            inside = np.isin(np.arange(len(topology.nodes)), cut.nodes)
            prices[inside[near] & ~inside[far]] += cut.price
            paid[inside] += cut.price
        highest = np.maximum(highest, prices)
    return highest, int(paid[list(topology.ranks)].min())


class Proposal:
    """A linear program over roots, and what its solution proves."""

    def __init__(self, problem: Problem, halves: Halves, *, in_network: bool) -> None:
        self._problem, self._halves, self._in_network = problem, halves, in_network
        links = problem.topology.links
        self._widest = max(link.bandwidth for link in links)
        capacity = np.array([float(link.bandwidth / self._widest) for link in links])
        self._solution = RootProgram(halves, capacity).solve()

    def bound(self) -> RootedBound | None:
        """Return the bound of the coarsest prices that prove what the solver found."""
        if self._solution is None:
            return None
        reached = float(self._solution.shares.sum()) * float(self._widest)
        found: RootedBound | None = None
        for rounded in _rounded(self._solution):
            algbw = _proven(self._problem, self._halves, rounded)
            if algbw is None or (found is not None and algbw >= found.algbw):
                continue
            found = RootedBound(
                algbw, *_spelt(self._halves, rounded), reached, in_network=self._in_network
            )
            if float(algbw) <= reached * (1 + _REACHED):
                break
        return found

    def prices(self) -> Floats:
        """Return what the solver pays for every link."""
        solution = self._solution
        if solution is None:
            return np.zeros(len(self._problem.topology.links))
        return _prices(self._halves, [price for _, _, price in solution.cuts], solution)


def _rounded(solution: Solution) -> Iterator[Solution]:
    """Yield solutions whose prices are whole numbers, coarse ones first."""
    highest = max(price for _, _, price in solution.cuts)
    for most in _MULTIPLES:
        scale = most / highest
        cuts = tuple((side, inside, round(y * scale)) for side, inside, y in solution.cuts)
        potentials = tuple(np.rint(refunds * scale) for refunds in solution.potentials)
        yield Solution(solution.shares, solution.used, cuts, potentials, solution.settled)


def _proven(problem: Problem, halves: Halves, rounded: Solution) -> Fraction | None:
    """Return the bound that whole prices prove; None where some root pays nothing."""
    topology = problem.topology
    paid = np.zeros(len(topology.nodes), np.int64)
    for _, inside, price in rounded.cuts:
        paid[inside] += int(price)
    least = int(paid[halves.sides[0].network.roots].min())
    if least == 0:
        return None
    prices = _prices(halves, [int(y) for _, _, y in rounded.cuts], rounded)
    worth = sum(
        (x.bandwidth * int(p) for x, p in zip(topology.links, prices, strict=True) if p),
        Fraction(0),
    )
    if halves.partner is not None:
        # One half stands for both: each pays what it costs, a link is paid by each.
        least *= 2
    return worth / least


def _prices(halves: Halves, prices: Sequence[float], solution: Solution) -> Floats:
    """Return what a link is paid: the most that any half pays for it."""
    highest = np.zeros(len(halves.sides[0].network.tail))
    for number, side in enumerate(halves.sides):
        tail, head = side.network.tail, side.network.head
        refunds = solution.potentials[number]
        paid = refunds[head] - refunds[tail]
        for (of, inside, _), price in zip(solution.cuts, prices, strict=True):
            if of == number and price:
                paid[inside[tail] & ~inside[head]] += price
        highest = np.maximum(highest, paid)
    return highest if halves.partner is None else np.maximum(highest, highest[halves.partner])


def _spelt(
    halves: Halves, rounded: Solution
) -> tuple[tuple[PricedCut, ...], tuple[tuple[Direction, int, int], ...]]:
    """Return cuts and refunds of both directions, also where one half stands for both."""
    cuts: list[PricedCut] = []
    refunds: list[tuple[Direction, int, int]] = []
    for number, side in enumerate(halves.sides):
        ways = (side.direction,) if halves.partner is None else tuple(Direction)
        for way in ways:
            cuts += [
                PricedCut(way, tuple(int(v) for v in np.nonzero(inside)[0]), int(price))
                for of, inside, price in rounded.cuts
                if of == number and price
            ]
            refunds += [
                (way, node, int(value))
                for node, value in enumerate(rounded.potentials[number])
                if value
            ]
    return tuple(cuts), tuple(refunds)
