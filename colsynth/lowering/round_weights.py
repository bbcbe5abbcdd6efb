"""Pass round-weights: Forest -> Forest whose weights add up to what divides messages.

A runtime selects a file only for messages whose elements its chunks divide (contract 1.4), and
most people send powers of two. Three trees of weight 1 make a file that no such message uses; with
weights 11, 11 and 10 it has 32 chunks, and all of them do. For a message of 25 MB, weights add up
to a divisor of it. Rounding makes some trees heavier
than links have room for, so the forest gets slower. The finer the weights, the less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd
from typing import ClassVar, Literal

from colsynth.errors import Diagnostic, InputError
from colsynth.lowering.proposals import coarser_weights
from colsynth.model import Forest, Phase, Topology, Tree, unit_bandwidth
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.selection import divides, dividing
from colsynth.runtimes.target import Target

TOLERANCE = Fraction(2, 100)
"""How much of its bandwidth ``auto`` may give up, as for the number of trees."""

MOST_PARTS = 1024
"""Parts up to which ``auto`` looks: chunks of more are too small for calls of a large message."""

AUTO, KEEP = "auto", "keep"


@dataclass(frozen=True, slots=True)
class RoundWeights:
    """Round the weights of trees so that they add up to what divides messages: a power of two.

    Where the program is for a message of another size, it is a divisor of its parts
    (`Target.parts`).

    The weights of every root do, or those of all roots where these have shares of their own.
    The gap that is printed afterwards is that of the rounded forest.

    Parameters
    ----------
    parts : str or int
        What weights add up to. ``"auto"``: the least such number at which the forest loses at
        most 2 % of its bandwidth, else the best of those up to 1024. ``"keep"``: leave the
        weights as they are. A number: this one.
    """

    parts: Literal["auto", "keep"] | int = "auto"

    name: ClassVar[str] = "round-weights"
    takes: ClassVar[type] = Forest
    gives: ClassVar[type] = Forest
    choices: ClassVar[tuple[Choice, ...]] = (Choice("parts", propose=coarser_weights),)

    def __post_init__(self) -> None:
        if isinstance(self.parts, int) and self.parts < 1:
            phrase = f"parts {self.parts}: expected auto, keep or a number from 1"
            raise InputError(Diagnostic("CS210", phrase))

    def run(self, value: Forest, target: Target) -> Forest:
        """Return the forest with rounded weights, itself where there is nothing to round."""
        if self.parts == KEEP or value.in_network or value.problem.shards:
            return value
        if isinstance(self.parts, int):
            return rounded(value, self.parts)
        roots = 1 if value.shares else len(value.problem.roots)
        return roundings(value, TOLERANCE, target.parts(value.problem, roots))[-1]


def roundings(forest: Forest, tolerance: Fraction, parts: int = 0) -> tuple[Forest, ...]:
    """Return a forest rounded to some numbers, each finer and faster than the one before.

    The last loses at most `tolerance` of the bandwidth where any does. Only the forest itself
    where its weights add up to what divides `parts`, or to a power of two without parts (0).
    """
    whole = parts_of(forest)
    if divides(whole, parts):
        return (forest,)
    least = forest.algbw * (1 - tolerance)
    found: list[Forest] = []
    for number in _numbers(whole // _divisor(forest), parts):
        candidate = rounded(forest, number)
        if not found or candidate.algbw > found[-1].algbw:
            found.append(candidate)
        if found[-1].algbw >= least:
            break
    return tuple(found) or (forest,)


def _numbers(least: int, parts: int) -> Sequence[int]:
    """Return what weights may add up to; below `least` only if nothing else divides `parts`."""
    found = [number for number in range(least, MOST_PARTS + 1) if divides(number, parts)]
    return found or ([dividing(parts, least)] if parts else [])


def parts_of(forest: Forest) -> int:
    """Return what the weights of a root add up to; those of all roots that have shares."""
    return sum(forest.shares) if forest.shares else forest.trees_per_root


def rounded(forest: Forest, parts: int) -> Forest:
    """Return the forest with weights that add up to `parts`, as fast as links allow."""
    shares = _apportioned(forest.shares, parts) if forest.shares else ()
    of_root = dict(zip(forest.problem.roots, shares, strict=True)) if shares else {}
    phases, loads = [], []
    for phase in forest.phases:
        trees, carried = _Rounding(forest.problem.topology, phase).trees(of_root, parts)
        phases.append(replace(phase, trees=trees))
        loads.append(carried)
    if forest.together:
        loads = [sum(loads, Counter())] * len(loads)
    topology = forest.problem.topology
    return replace(
        forest,
        trees_per_root=0 if shares else parts,
        shares=shares,
        phases=tuple(
            replace(phase, unit_bandwidth=unit_bandwidth(topology, carried))
            for phase, carried in zip(phases, loads, strict=True)
        ),
    )


class _Rounding:
    """Rounds the trees of one phase, the extra parts where links are least busy."""

    def __init__(self, topology: Topology, phase: Phase) -> None:
        self._cost = [float(1 / link.bandwidth) for link in topology.links]
        self._grown: dict[int, list[Tree]] = {}
        self._carried: Counter[int] = Counter()
        for tree in phase.trees:
            self._grown.setdefault(tree.root, []).append(tree)

    def trees(self, of_root: dict[int, int], parts: int) -> tuple[tuple[Tree, ...], Counter[int]]:
        """Return the rounded trees and what links carry; `of_root` has the parts of roots."""
        wanted = {root: of_root.get(root, parts) for root in self._grown}
        weights = {
            root: [tree.weight * wanted[root] // _sum(trees) for tree in trees]
            for root, trees in self._grown.items()
        }
        for root, trees in self._grown.items():
            for tree, weight in zip(trees, weights[root], strict=True):
                self._load(tree, weight)
        for root, trees in self._grown.items():
            self._hand_out(trees, weights[root], wanted[root])
        pairs = (
            (tree, weight)
            for root, trees in self._grown.items()
            for tree, weight in zip(trees, weights[root], strict=True)
        )
        return tuple(replace(tree, weight=n) for tree, n in pairs if n), self._carried

    def _hand_out(self, trees: Sequence[Tree], weights: list[int], wanted: int) -> None:
        """Give one part more to as many trees of a root as are missing, no tree twice."""
        open_ = list(range(len(trees)))
        for _ in range(wanted - sum(weights)):
            best = min(open_, key=lambda place: (self._fullest(trees[place]), place))
            open_.remove(best)
            weights[best] += 1
            self._load(trees[best], 1)

    def _fullest(self, tree: Tree) -> float:
        """Return how long the busiest link of a tree would be busy with one part more."""
        return max((self._carried[i] + 1) * self._cost[i] for i in _links(tree))

    def _load(self, tree: Tree, weight: int) -> None:
        for link in _links(tree) if weight else ():
            self._carried[link] += weight


def _links(tree: Tree) -> Iterator[int]:
    return (link for edge in tree.edges for link in edge.route)


def _sum(trees: Sequence[Tree]) -> int:
    return sum(tree.weight for tree in trees)


def _divisor(forest: Forest) -> int:
    """Return the greatest common divisor of all weights."""
    return gcd(*(tree.weight for phase in forest.phases for tree in phase.trees))


def _apportioned(weights: Sequence[int], parts: int) -> tuple[int, ...]:
    """Return whole shares of `parts` in proportion, by largest remainders."""
    whole = sum(weights)
    given = [weight * parts // whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (-(weights[i] * parts % whole), i))
    for place in order[: parts - sum(given)]:
        given[place] += 1
    return tuple(given)
