"""Which of several programs of a forest is fastest is asked of the simulator.

A threadblock does its steps one after the other, tile by tile (contract 4.3). Where trees are
deep and threadblocks hold many steps they wait for each other, which no bound tells: then
fewer trees, smaller steps or another order of transfers can be several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from colsynth.errors import InfeasibleError, LimitError
from colsynth.model import Forest, Problem, ThreadblockProgram
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.pipelined import (
    LOWERER,
    changed,
    in_pieces,
    in_rounds,
    in_waves,
    leaves_open,
)
from colsynth.runtimes.selection import LARGE, SMALL, taken_sizes, usual_size
from colsynth.runtimes.target import Target
from colsynth.units import format_size

PACKERS = ("pack-trees", "pack-roots")
ROUNDER = "round-weights"
_COALESCER, _ORDER = "coalesce-chunks", "order-transfers"
_LOW, _FEW = "low", "few"

_FARTHEST = Fraction(10, 100)
"""How far below the optimum fewer trees may stay, and coarser weights below finer ones."""

_WEIGHT = 0.05
"""How much the time of a small message counts against steps that pieces cost: one that takes
twice as long weighs as much as a large one that takes 4 % longer."""

_OF_CHUNKS = 0.2
"""The same where chunks go one by one or trees are fewer: twice as long weighs as much as a large
message that takes 19 % longer. The file also serves small messages, and no note warns of it."""

_MOST_MOVED = 10_000
"""Chunks times GPUs of programs that are made several times; larger ones take many seconds."""

_MOST_CUT = 20_000
"""Chunks times GPUs of programs that are made once more, in pieces: 128 GPUs with a tree each."""

_FEW_GPUS = 16
"""So many at most have short trees: pieces gained 3 % in one of all presets on msccl, no more."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A pipeline and what it gives, for one mode of the call."""

    pipeline: Pipeline
    schedule: Forest
    program: ThreadblockProgram


class Prediction(NamedTuple):
    """Seconds of a large message and of a small one, and whether the large one uses the file."""

    large: float
    small: float
    taken: bool

    def rank(self, weight: float) -> tuple[bool, float]:
        """Return what is least for the best file.

        One that the large message uses comes before any that it does not; then a geometric mean
        of both times decides, in which the small message has a weight.
        """
        mean: float = self.large ** (1 - weight) * self.small**weight
        return not self.taken, mean


Vary = Callable[[Rival, Pipeline, Target, Clock], Iterator[Rival]]
"""Yields rivals of one, of a pipeline as it was asked for."""


@dataclass(frozen=True, slots=True)
class _Search:
    """What every step of the search needs: what was asked for, for what."""

    asked: Pipeline
    target: Target
    clock: Clock

    def best(self, rival: Rival) -> tuple[Rival, Prediction | None]:
        """Return the fastest found from a rival on, one thing varied after the other.

        Without a prediction where there was nothing to vary.
        """
        best: Rival = rival
        least: Prediction | None = None
        for vary, weight in _VARIED:
            for other in vary(best, self.asked, self.target, self.clock):
                least = least or self.predicted(best)
                seconds = self.predicted(other)
                if seconds.rank(weight) < least.rank(weight):
                    best, least = other, seconds
        return best, least

    def predicted(self, rival: Rival) -> Prediction:
        """Return the predicted seconds of messages as large and as small as are compared."""
        from colsynth.simulate import simulate

        topology, header = rival.schedule.problem.topology, rival.program.header
        sizes = judged_sizes(self.target, header.ranks)
        with self.clock.measure("simulate"):
            large, small = simulate(rival.program, topology, self.target.profile, sizes)
        taken = taken_sizes(header, self.target.profile).divide(sizes[0])
        return Prediction(large.seconds, small.seconds, taken)


def fastest(
    base: Rival, asked: Pipeline, target: Target, clock: Clock
) -> tuple[Rival, tuple[str, ...]]:
    """Return what is predicted to be fastest, `base` among equals, and a note on its trees.

    The search starts twice where fewer trees come near the optimum: what suits many trees
    does not suit few.

    Parameters
    ----------
    base : Rival
        With its number of trees chosen.
    asked : Pipeline
        As it was asked for: only what it leaves to colsynth is varied.
    target : Target
        With the mode of `base`.
    clock : Clock
        Told of the time that measuring takes.
    """
    search = _Search(asked, target, clock)
    best, least = search.best(base)
    note: tuple[str, ...] = ()
    for start in _with_fewer_trees(base, asked, target, clock):
        other, seconds = search.best(start)
        least, seconds = least or search.predicted(best), seconds or search.predicted(other)
        if seconds.rank(_OF_CHUNKS) < least.rank(_OF_CHUNKS):
            note = (_on_trees(best, least, seconds, target),)
            best, least = other, seconds
    return best, (*note, *_on_pieces(best.pipeline))


def judged_sizes(target: Target, ranks: int) -> tuple[int, int]:
    """Return the bytes of a large and of a small message at which programs are judged.

    Those that people send to so many ranks, and within what a file is to serve.
    """
    most = LARGE if target.max_bytes is None else min(LARGE, target.max_bytes)
    large = usual_size(most, ranks)
    return large, min(usual_size(max(SMALL, target.min_bytes), ranks), large)


def _on_trees(more: Rival, slow: Prediction, fast: Prediction, target: Target) -> str:
    """Return a note on trees that have the better bound and lost to fewer."""
    large, small = map(format_size, judged_sizes(target, more.program.header.ranks))
    return (
        f"{_option(more.pipeline, PACKERS[0], 'trees')} trees per GPU have the better bound, but "
        f"are predicted to take {slow.large / fast.large:.2f} times as long at {large}, "
        f"{slow.small / fast.small:.2f} times at {small}"
    )


def _on_pieces(pipeline: Pipeline) -> tuple[str, ...]:
    """Return a note on what pieces are good for, where trees carry their chunks in several."""
    number = 1 + str(_option(pipeline, LOWERER, "pieces")).count("-")
    if number == 1:
        return ()
    note = (
        f"trees carry their chunks in {number} pieces, which pays for large messages; files for "
        "small ones alone (--max-bytes) have none"
    )
    return (note,)


def _with_fewer_trees(
    base: Rival, asked: Pipeline, target: Target, clock: Clock
) -> Iterator[Rival]:
    """Yield the rival with the fewest trees that come near the optimum, if those are fewer."""
    packer = asked.passes[0]
    if packer.name != "pack-trees" or getattr(packer, "trees", None) != "auto":
        return
    if base.pipeline.passes[0].name != packer.name:
        return
    from colsynth.synthesis.forest.rate import fewest_trees

    problem = base.schedule.problem
    with clock.measure("choose-trees"):
        fewer = fewest_trees(problem, _FARTHEST)
    if fewer is not None and fewer < int(_option(base.pipeline, packer.name, "trees")):
        pipeline = changed(base.pipeline, packer.name, trees=str(fewer))
        schedule = pipeline.split_after(Forest)[0].run(problem, target, clock)
        yield from _lowered(pipeline, schedule, target, clock)


def _with_other_weights(
    base: Rival, asked: Pipeline, target: Target, clock: Clock
) -> Iterator[Rival]:
    """Yield the rival with weights rounded to fewer parts, and with chunks one by one.

    Weights that were rounded are not all 1, so there is nothing to round where all are.
    """
    if _is_wide(base.schedule) and not _is_large(base):
        for rival in _weighted(base.pipeline, asked, base.schedule.problem, target, clock):
            if rival.pipeline != base.pipeline:
                yield rival


def _weighted(
    pipeline: Pipeline, asked: Pipeline, problem: Problem, target: Target, clock: Clock
) -> Iterator[Rival]:
    """Yield what a pipeline gives with every rounding of its trees, the finest first.

    Those that carry several chunks also send them one by one: a chunk is passed on sooner.
    """
    from colsynth.lowering.round_weights import AUTO, KEEP, TOLERANCE, parts_of, roundings

    exact = changed(pipeline, ROUNDER, parts=KEEP).split_after(Forest)[0]
    forest = exact.run(problem, target, clock)
    found = [forest]
    if _option(asked, ROUNDER, "parts") == AUTO:
        found = list(reversed(roundings(forest, TOLERANCE)))
    for place, schedule in enumerate(found):
        if place and schedule.gap > max(_FARTHEST / (1 - _FARTHEST), found[0].gap):
            continue
        parts = parts_of(schedule) if place else _option(pipeline, ROUNDER, "parts")
        weighted = changed(pipeline, ROUNDER, parts=parts)
        yield from _lowered(weighted, schedule, target, clock)
        if _is_wide(schedule) and _option(asked, LOWERER, "most") == 0:
            yield from _lowered(changed(weighted, LOWERER, most=1), schedule, target, clock)


def _is_wide(schedule: Forest) -> bool:
    """Whether some tree carries several chunks."""
    return any(tree.weight > 1 for phase in schedule.phases for tree in phase.trees)


def _cut_up(rival: Rival, asked: Pipeline, target: Target, clock: Clock) -> Iterator[Rival]:
    """Yield the rival with its trees in pieces of fewer chunks, where some carry several."""
    if _is_large(rival) or _option(asked, LOWERER, "most") != 0:
        return
    most = max(tree.weight for phase in rival.schedule.phases for tree in phase.trees)
    pieces = 1
    while pieces < most:
        if pieces != _option(rival.pipeline, LOWERER, "most"):
            pipeline = changed(rival.pipeline, LOWERER, most=pieces)
            yield from _lowered(pipeline, rival.schedule, target, clock)
        pieces *= 2


def _with_equal_trees(
    rival: Rival, asked: Pipeline, target: Target, clock: Clock
) -> Iterator[Rival]:
    """Yield the rival with fewer different trees of the same number and rate, if there is one."""
    packer = asked.passes[0]
    chosen = _option(rival.pipeline, packer.name, "prefer")
    if _is_large(rival) or chosen != _LOW or rival.schedule.trees_per_root == 1:
        return
    pipeline = changed(rival.pipeline, packer.name, prefer=_FEW)
    schedule = pipeline.split_after(Forest)[0].run(rival.schedule.problem, target, clock)
    if _different(schedule) < _different(rival.schedule):
        yield from _lowered(pipeline, schedule, target, clock)


def _different(schedule: Forest) -> int:
    return sum(len(phase.trees) for phase in schedule.phases)


def _spread(rival: Rival, asked: Pipeline, target: Target, clock: Clock) -> Iterator[Rival]:
    """Yield the rival with smaller steps, where some move several chunks."""
    if _is_large(rival):
        return
    counts = (s.count for g in rival.program.gpus for b in g.threadblocks for s in b.steps)
    if _option(asked, _COALESCER, "spread") is False and any(count > 1 for count in counts):
        pipeline = changed(rival.pipeline, _COALESCER, spread=True)
        yield from _lowered(pipeline, rival.schedule, target, clock)


def _in_other_orders(
    rival: Rival, asked: Pipeline, target: Target, clock: Clock
) -> Iterator[Rival]:
    """Yield the rival with its transfers in each other order, where steps stand in a row."""
    from colsynth.lowering.order_transfers import CHAINS, ORDERS

    if _is_large(rival):
        return
    if _option(asked, _ORDER, "order") == CHAINS and rival.program.max_steps > 1:
        for order in ORDERS:
            if order != CHAINS:
                pipeline = changed(rival.pipeline, _ORDER, order=order)
                yield from _lowered(pipeline, rival.schedule, target, clock)


def _in_waves(rival: Rival, asked: Pipeline, target: Target, clock: Clock) -> Iterator[Rival]:
    """Yield the rival in waves, where GPUs pass on what they receive."""
    if leaves_open(asked) and rival.schedule.max_height > 1 and not _is_large(rival):
        for pipeline in in_waves(rival.pipeline):
            yield from _lowered(pipeline, rival.schedule, target, clock)


def _in_pieces(rival: Rival, asked: Pipeline, target: Target, clock: Clock) -> Iterator[Rival]:
    """Yield the rival in pieces and in rounds, where GPUs pass on what they receive."""
    if not leaves_open(asked) or rival.schedule.max_height < 2 or _is_large(rival, _MOST_CUT):
        return
    ranks = rival.program.header.ranks
    cuts = [] if ranks <= _FEW_GPUS else [in_pieces]
    cuts += [] if _is_large(rival) or target.profile.fuses else [in_rounds]
    if not cuts:
        return
    size = judged_sizes(target, ranks)[0]
    whole = changed(rival.pipeline, LOWERER, most=0)
    base = _uncut(rival, whole, target, clock)
    for cut in cuts:
        for pipeline in cut(whole, rival.schedule, base, size, target.profile):
            fits = list(_lowered(pipeline, rival.schedule, target, clock))
            yield from fits
            if fits:
                break


def _uncut(rival: Rival, whole: Pipeline, target: Target, clock: Clock) -> ThreadblockProgram:
    """Return the program of a rival in waves, in which no tree is cut: it says what has room."""
    if _is_large(rival):
        return rival.program
    found = (
        made.program
        for pipeline in in_waves(whole)
        for made in _lowered(pipeline, rival.schedule, target, clock)
    )
    return next(found, rival.program)


def _in_waves_cut_up(
    rival: Rival, asked: Pipeline, target: Target, clock: Clock
) -> Iterator[Rival]:
    """Yield the rival in waves, its chunks one by one: neither may be faster alone."""
    if _is_large(rival) or not _is_wide(rival.schedule) or rival.schedule.max_height < 2:
        return
    if leaves_open(asked) and _option(rival.pipeline, LOWERER, "most") == 0:
        for pipeline in in_waves(changed(rival.pipeline, LOWERER, most=1)):
            yield from _lowered(pipeline, rival.schedule, target, clock)


def _is_large(rival: Rival, most: int = _MOST_MOVED) -> bool:
    """Whether making the program several times would take long."""
    header = rival.program.header
    return header.chunks * header.ranks > most


def _option(pipeline: Pipeline, name: str, option: str) -> Any:
    """Return an option of a pass, None where there is no such pass."""
    known = {item.name: item for item in pipeline.passes}
    return getattr(known.get(name), option, None)


def _lowered(pipeline: Pipeline, schedule: Forest, target: Target, clock: Clock) -> Iterator[Rival]:
    """Yield what a pipeline makes of a schedule, if it fits."""
    try:
        program = pipeline.split_after(Forest)[1].run(schedule, target, clock)
    except (LimitError, InfeasibleError):
        return
    yield Rival(pipeline, schedule, program)


_VARIED: tuple[tuple[Vary, float], ...] = (
    (_with_other_weights, _OF_CHUNKS),
    (_spread, 0.0),
    (_cut_up, _OF_CHUNKS),
    (_in_other_orders, 0.0),
    (_in_waves, _WEIGHT),
    (_in_waves_cut_up, _OF_CHUNKS),
    (_in_pieces, _WEIGHT),
    (_with_equal_trees, 0.0),
)
"""What is varied, and how much the time of a small message counts."""
