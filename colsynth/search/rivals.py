"""Trees, relays and timed schedules that a search varies by themselves, beside its best plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf
from typing import NamedTuple

from colsynth.model.problem import PHASES
from colsynth.search.kinds import is_fabric
from colsynth.search.levels import FAR, RELAYED, WAITING
from colsynth.search.measured import Measured
from colsynth.search.neighbours import Alternatives
from colsynth.search.plan import Plan
from colsynth.search.searcher import Searcher
from colsynth.search.timed import not_varied
from colsynth.search.wish import Wish

_COPIES = 4
"""Copies of the trees of one root. More seldom fit the threadblocks of all their connections."""

_NEAR_COPIES = 2.5
"""Times as long as the best program up to which trees of many roots in copies are varied.

Of 104 searches on nine machines of 5 to 16 GPUs (three collectives, msccl and rccl, 1 and 16 MiB)
8 are faster, by up to 14 %, and none is slower. Up to any time 10 are, but 64 GPUs of MI250 take
half as long again to compile, for nothing.
"""

_NEAR_GRIDS = 4
"""Times as long as the best program up to which grids behind a big switch are varied.

They begin without segments, which gain a lot: an allgather of 32 MiB by rccl on 18 GPUs takes 90 us
from one that begins 2.7 times behind, and 106 without. Of 33 in 241 searches on 19 machines, 8
began further behind than this and took a third of the time, for nothing.
"""


class Start(NamedTuple):
    """Where to start from.

    Parameters
    ----------
    plans : tuple of Plan
        In order of preference.
    pinned : frozenset of str
        Options that are not varied from there.
    within : float
        Times as long as the best program up to which they are varied.
    """

    plans: Alternatives
    pinned: frozenset[str] = frozenset()
    within: float = inf


def rivals(
    searcher: Searcher,
    wish: Wish,
    starts: Callable[[str], Iterable[Plan]],
    *,
    free_roots: bool,
) -> Iterator[Start]:
    """Yield where to start from.

    On direct-connect fabrics, and where links are not what takes the time, shortest-path trees
    or one tree per GPU may win; elsewhere the fewest trees, or those that free roots ask for. In a
    broadcast or a reduce relays may, but for such fabrics whose links take most of the time. Trees
    in copies may everywhere.

    Parameters
    ----------
    searcher : Searcher
    wish : Wish
    starts : callable
        Returns the plans of an algorithm in order of preference.
    free_roots : bool
        Whether the bound of an allreduce is better with free roots.
    """
    from colsynth.synthesis.forest.rate import fewest_trees

    for plan in not_varied(searcher, wish):
        yield Start((plan,))
    problem = searcher.workshop.case.problem
    if problem.collective not in PHASES or problem.groups:
        return
    yield from _copied(wish, starts, rooted=problem.collective.rooted)
    fabric, waits = is_fabric(problem), _waits(searcher)
    low = fabric or waits
    if problem.collective.rooted and (waits or not fabric) and wish.allows(RELAYED):
        yield Start(tuple(starts(RELAYED)))
    if low and wish.allows("bfb"):
        yield Start((wish.start("bfb"),))
    if "trees" in wish.settings or not wish.allows("forest"):
        return
    if free_roots and _lacks_trees(searcher):
        yield Start((wish.start("roots"),), frozenset({"trees"}))
    best = searcher.best("forest")
    fewest = None if fabric else fewest_trees(problem)
    for trees in dict.fromkeys((1 if low else None, fewest)):
        if trees and not (best and best.plan.option("trees") == str(trees)):
            yield Start((wish.start("forest", trees=str(trees)),), frozenset({"trees"}))
    yield from _gridded(searcher, wish, best)


def _copied(
    wish: Wish, starts: Callable[[str], Iterable[Plan]], *, rooted: bool
) -> Iterator[Start]:
    """Yield trees in several copies from the start, with which other choices may be better.

    A broadcast of 16 MiB by rccl on an MI250 takes 217 us so, 327 otherwise. Trees of one root are
    few, so this takes little work. Those of many roots are not cut into segments here.
    """
    if "instances" not in wish.settings and wish.allows("forest"):
        several = [{"lower-forest.instances": _COPIES}]
        plans = tuple(x for plan in starts("forest") for x in plan.with_each(several))
        if rooted:
            yield Start(plans, frozenset({"instances"}))
        else:
            yield Start(plans, frozenset({"instances", "segments"}), _NEAR_COPIES)


def _lacks_trees(searcher: Searcher) -> bool:
    """Whether few trees with free roots led far from the floor (`FAR`).

    They are often the fastest until chunks are merged; where a NIC is missing, not after that.
    """
    best, overall = searcher.best("roots"), searcher.best()
    few = best is not None and best.plan.option("trees") != "auto"
    return few and bool(overall and searcher.behind(overall) > FAR)


def _gridded(searcher: Searcher, wish: Wish, best: Measured | None) -> Iterator[Start]:
    """Yield grids behind a big switch, where the best program is far from the floor (`FAR`).

    A grid seldom wins before its trees carry segments, or before a GPU adds up all arrivals in
    one go, so it needs a sweep of its own. Where latency is half of the floor, a flat one too;
    elsewhere one that needs fewer threadblocks to fill the links.
    """
    from colsynth.synthesis.forest.grid import flat_grid, fused_grid, roomy_grids

    case = searcher.workshop.case
    topology, profile = case.problem.topology, case.profile
    overall, floor = searcher.best(), searcher.floors[searcher.objective.main]
    if best is None or overall is None or "grid" in wish.settings:
        return
    if searcher.behind(overall) <= FAR:
        return
    phases, trees = len(PHASES[case.problem.collective]), best.plan.option("trees")
    grids = roomy_grids(topology, phases, profile)
    if 2 * floor.latency > floor.seconds:
        more = islice(grids, floor.binds != "latency")
        grids = (*flat_grid(topology, phases, profile), *more)
    else:
        target = case.target(overall.plan.protocol, overall.plan.size)
        grids = (*grids, *fused_grid(topology, phases, target))
    for grid in dict.fromkeys(grids):
        start = wish.start("forest", trees=trees, grid=grid)
        yield Start((start,), frozenset({"trees", "grid"}), _NEAR_GRIDS)


def _waits(searcher: Searcher) -> bool:
    """Whether the best program takes far longer than its data takes on links (`WAITING`)."""
    best, place = searcher.best(), searcher.objective.main
    seconds = None if best is None else best.seconds[place]
    return bool(seconds and seconds > WAITING * searcher.floors[place].links)
