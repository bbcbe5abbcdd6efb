"""Which of several programs of a forest is fastest is asked of the simulator.

A threadblock does its steps one after the other, tile by tile (contract 4.3). Where trees are
deep and threadblocks hold many steps they wait for each other, which no bound tells: then
fewer trees, smaller steps or another order of transfers can be several times as fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from colsynth.errors import InfeasibleError, LimitError
from colsynth.model import Forest, ThreadblockProgram
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
from colsynth.runtimes.target import Target
from colsynth.units import format_size

PACKERS = ("pack-trees", "pack-roots")
_COALESCER, _ORDER = "coalesce-chunks", "order-transfers"
_LOW, _FEW = "low", "few"

_FARTHEST = Fraction(10, 100)
"""How far below the optimum fewer trees may stay."""

_MEASURED = 10**9
"""Bytes of the message at which programs are compared."""

_SMALL, _WEIGHT = 2**20, 0.05
"""Bytes of another message, and how much its time counts against steps that pieces cost: one that
takes twice as long weighs as much as a large one that takes 4 % longer."""

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
    """Seconds of a large message and of a small one."""

    large: float
    small: float

    def beats(self, other: Prediction, weight: float) -> bool:
        """Whether the large message is faster, and both are in a weighted geometric mean."""
        return self.large < other.large and self._mean(weight) < other._mean(weight)

    def _mean(self, weight: float) -> float:
        mean: float = self.large ** (1 - weight) * self.small**weight
        return mean


def fastest(
    base: Rival, asked: Pipeline, target: Target, clock: Clock
) -> tuple[Rival, tuple[str, ...]]:
    """Return what is predicted to be fastest, `base` among equals, and a note on its trees.

    One thing is varied after the other, each from the best so far.

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
    best, first = base, None
    least = Prediction(inf, inf)
    varied = (
        (_with_fewer_trees, 0.0),
        (_spread, 0.0),
        (_in_other_orders, 0.0),
        (_in_waves, _WEIGHT),
        (_with_equal_trees, 0.0),
    )
    for vary, weight in varied:
        for rival in vary(best, asked, target, clock):
            if first is None:
                first = least = _predicted(base, target, clock)
            seconds = _predicted(rival, target, clock)
            if seconds.beats(least, weight):
                best, least = rival, seconds
    notes = _on_pieces(best.pipeline)
    if first is None or best.schedule.trees_per_root == base.schedule.trees_per_root:
        return best, notes
    note = (
        f"{base.schedule.trees_per_root} trees per GPU have the better bound, but are predicted "
        f"to take {first.large / least.large:.2f} times as long at {format_size(_MEASURED)}"
    )
    return best, (note, *notes)


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
    if fewer is not None and fewer < base.schedule.trees_per_root:
        pipeline = changed(base.pipeline, packer.name, trees=str(fewer))
        schedule = pipeline.split_after(Forest)[0].run(problem, target, clock)
        yield from _lowered(pipeline, schedule, target, clock)


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
    """Yield the rival in waves, in pieces and in rounds, where GPUs pass on what they receive."""
    if not leaves_open(asked) or rival.schedule.max_height < 2:
        return
    base = rival.program
    if not _is_large(rival):
        for pipeline in in_waves(rival.pipeline):
            for found in _lowered(pipeline, rival.schedule, target, clock):
                base = found.program if base is rival.program else base
                yield found
    if _is_large(rival, _MOST_CUT):
        return
    size, profile = _largest(target), target.profile
    cuts = [] if base.header.ranks <= _FEW_GPUS else [in_pieces]
    cuts += [] if _is_large(rival) else [in_rounds]
    for cut in cuts:
        for pipeline in cut(rival.pipeline, rival.schedule, base, size, profile):
            fits = list(_lowered(pipeline, rival.schedule, target, clock))
            yield from fits
            if fits:
                break


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


def _predicted(rival: Rival, target: Target, clock: Clock) -> Prediction:
    """Return the predicted seconds of messages as large and as small as are compared."""
    from colsynth.simulate import simulate

    topology = rival.schedule.problem.topology
    large = _largest(target)
    sizes = large, min(max(_SMALL, target.min_bytes), large)
    with clock.measure("simulate"):
        first, second = simulate(rival.program, topology, target.profile, sizes)
    return Prediction(first.seconds, second.seconds)


def _largest(target: Target) -> int:
    """Return the bytes of the largest message that a file is to serve, at most `_MEASURED`."""
    return _MEASURED if target.max_bytes is None else min(_MEASURED, target.max_bytes)
