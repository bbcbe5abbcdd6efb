"""Whether the arrays of a timed schedule fit each other; no times and no data yet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Hops, TimedPhase, TimedSchedule
from colsynth.verify.timed_names import failure, told

Ints = NDArray[np.int64]

MOST = 2**61
"""Ticks of a time; two of them fit 64 bits."""


def check_form(schedule: TimedSchedule) -> None:
    """Check that arrays are consistent and their numbers in range.

    Raises
    ------
    VerificationError
        CS510.
    """
    if schedule.tick <= 0:
        raise failure("CS510", f"a tick lasts {schedule.tick} seconds")
    topology = schedule.problem.topology
    for phase in schedule.phases:
        _check_hops(phase.hops, topology.size, len(topology.links))
        _check_runs(phase, schedule.chunks)


def _check_hops(hops: Hops, ranks: int, links: int) -> None:
    _within("source", hops.source, ranks, hops.source.size)
    _within("target", hops.target, ranks, hops.source.size)
    _offsets("links of hops", hops.first, hops.source.size, hops.links.size, least=1)
    _within("links", hops.links, links, hops.links.size)
    _within("begin", hops.begin, MOST, hops.links.size)
    _within("end", hops.end, MOST, hops.links.size)
    _within("lag", hops.lag, MOST, hops.source.size)
    order = hops.target.astype(np.int64) * ranks + hops.source
    if np.any(np.diff(order) < 0):
        raise failure("CS510", "hops are not sorted by target and source")


def _check_runs(phase: TimedPhase, chunks: int) -> None:
    hops = phase.hops.source.size
    _within("chunk", phase.chunk, chunks, phase.chunk.size)
    _offsets("transfers of hops", phase.first, hops, phase.chunk.size, least=0)
    _offsets("runs of hops", phase.run_first, hops, phase.run_start.size, least=0)
    _within("run_start", phase.run_start, MOST, phase.run_start.size)
    _within("run_length", phase.run_length, phase.chunk.size + 1, phase.run_start.size)
    if np.any(phase.run_length < 1):
        raise failure("CS510", "a run has no transfers")
    before = np.zeros(phase.run_length.size + 1, np.int64)
    np.cumsum(phase.run_length, out=before[1:])
    carried = np.diff(before[phase.run_first])
    wrong = np.flatnonzero(carried != np.diff(phase.first))
    if wrong.size:
        hop = int(wrong[0])
        text = f"the runs of hop {hop} in the {phase.direction} phase have"
        given = int(phase.first[hop + 1] - phase.first[hop])
        raise failure("CS510", f"{text} {int(carried[hop])} transfers, the hop {given}")


def _within(name: str, values: NDArray[Any], limit: int, size: int) -> None:
    """Refuse an array that is not one of `size` integers from 0 to `limit` - 1."""
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.size != size:
        text = f"{name} has shape {values.shape} of {values.dtype}"
        raise failure("CS510", f"{text}, expected {size} integers")
    if not size:
        return
    if values.dtype.kind == "i" and int(values.min()) < 0:
        raise failure("CS510", f"{name} holds {int(values.min())}")
    if int(values.max()) >= limit:
        raise failure("CS510", f"{name} holds {int(values.max())}, the most is {limit - 1}")


def _offsets(name: str, first: Ints, rows: int, items: int, least: int) -> None:
    """Refuse offsets that do not lead from 0 to `items` with at least `least` for each row."""
    _within(f"the offset of the {name}", first, items + 1, rows + 1)
    wrong = np.flatnonzero(np.diff(first.astype(np.int64)) < least)
    if first[0] != 0 or first[-1] != items or wrong.size:
        row = f" at {int(wrong[0])}" if wrong.size else ""
        raise failure("CS510", f"the offsets of the {name} are wrong{row}")


def check_ticks(schedule: TimedSchedule) -> None:
    """Check that runs follow each other, and that the schedule says when the last ends.

    The bound must not be above that time, nor below zero.

    Raises
    ------
    VerificationError
        CS510.
    """
    latest = 0
    for phase in schedule.phases:
        if not phase.transfers:
            continue
        runs = np.diff(phase.run_first)
        stride, length = np.repeat(phase.hops.stride, runs), phase.run_length - 1
        if np.any(length > (MOST - phase.run_start) // stride):
            raise failure("CS510", "the times of a run do not fit 64 bits")
        last = phase.run_start + length * stride
        same = np.diff(np.repeat(np.arange(runs.size), runs)) == 0
        wrong = np.flatnonzero(same & (phase.run_start[1:] < last[:-1]))
        if wrong.size:
            text = told(schedule, phase, int(phase.run_length[: wrong[0] + 1].sum()))
            raise failure("CS510", f"{text}, and is listed after one that starts later")
        latest = max(latest, int((last + np.repeat(phase.hops.duration, runs)).max()))
    if schedule.ticks != latest:
        text = f"the last transfer ends at tick {latest}"
        raise failure("CS510", f"{text}, the schedule says {schedule.ticks}")
    if not 0 <= schedule.bound.seconds <= schedule.seconds:
        text = f"the schedule takes {schedule.seconds} seconds"
        raise failure("CS510", f"{text}, its bound cannot be {schedule.bound.seconds}")
