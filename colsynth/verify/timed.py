"""A timed schedule, checked from its definition in exact integer time.

Every hop must be a path its links can serve, no link may carry two chunks at once, and a
replay of all transfers must lead from what the problem says ranks hold to what it says
they want: copies sent only by those who have them, contributions added exactly once.
Nothing here is shared with the code that finds schedules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Direction, TimedPhase, TimedSchedule
from colsynth.verify.timed_form import check_form, check_ticks
from colsynth.verify.timed_hops import check_hops
from colsynth.verify.timed_links import check_links
from colsynth.verify.timed_names import failure, gpu, moment, start_of, told
from colsynth.verify.timed_needs import NOBODY, Need, needs
from colsynth.verify.timed_sketch import check_sketch

Ints = NDArray[np.int64]

_LEAST_TABLE, _MOST_TABLE = 2**26, 2**30
"""Bytes of the table of who has what when; a larger one means fewer passes."""


def check_timed(schedule: TimedSchedule) -> None:
    """Check that a timed schedule does what its problem asks for, in the time it says.

    Parameters
    ----------
    schedule : TimedSchedule

    Raises
    ------
    VerificationError
        CS510 when arrays or figures are inconsistent, CS511 when a hop is no path or
        faster than its links, CS512 when a link carries two chunks at once, CS513 when a
        GPU takes part that must not or a way is not of the sketch, CS514 when a chunk is sent
        before its sender has it, CS515 when a chunk is received in vain, CS516 when a wanted
        chunk does not come, CS517 when a contribution is not added exactly once.

    Notes
    -----
    Of the faults of one kind the first in time is named. Transfers are read twice for
    each block of chunks whose table (GPUs x chunks) fits `_MOST_TABLE`; nothing else is
    as long as they are.
    """
    wanted = needs(schedule)
    found = tuple(phase.direction for phase in schedule.phases)
    expected = tuple(need.direction for need in wanted)
    if found != expected:
        names = [" and ".join(item) or "none" for item in (found, expected)]
        raise failure("CS510", f"the schedule has the phases {names[0]}, not {names[1]}")
    check_form(schedule)
    for phase in schedule.phases:
        check_hops(schedule, phase)
    check_ticks(schedule)
    for phase, need in zip(schedule.phases, wanted, strict=True):
        _check_members(schedule, phase)
        check_sketch(schedule, phase, need)
    check_links(schedule)
    ready = np.zeros(schedule.chunks, np.int64)
    for phase, need in zip(schedule.phases, wanted, strict=True):
        if need.direction is Direction.IN:
            ready = _check_sums(schedule, phase, need)
        else:
            _check_copies(schedule, phase, need, _available(wanted, ready))


def _available(wanted: tuple[Need, ...], ready: Ints) -> Ints:
    """Return when chunks are there at first: of an allreduce, when their sums are."""
    sums = [need for need in wanted if need.direction is Direction.IN]
    return ready if not sums else np.where(sums[0].after == NOBODY, 0, ready)


def _check_members(schedule: TimedSchedule, phase: TimedPhase) -> None:
    """Check that chunks stay among the GPUs of their group, where others must not take part."""
    problem = schedule.problem
    if problem.transit or not problem.groups:
        return
    group = np.full(problem.topology.size, -1)
    for number, members in enumerate(problem.groups):
        group[list(members)] = number
    ends = np.stack((phase.hops.source, phase.hops.target))
    strays = (group[ends] < 0).any(axis=0) | (group[ends[0]] != group[ends[1]])
    for hop in np.flatnonzero(strays & (np.diff(phase.first) > 0))[:1].tolist():
        outside = ends[:, hop][group[ends[:, hop]] < 0].tolist()
        text = f"{gpu(schedule, outside[0])} is in no group" if outside else "groups mix"
        clause = told(schedule, phase, int(phase.first[hop]))
        raise failure("CS513", f"{text} but no transit is allowed: {clause}")


def _check_copies(schedule: TimedSchedule, phase: TimedPhase, need: Need, ready: Ints) -> None:
    """Replay a phase of copies from chunks that their holders have from `ready` on."""
    from colsynth.kernels import timed_check as kernel

    flow = _flow(schedule, phase)
    fault = _no_fault(schedule)
    missing: list[tuple[int, int]] = []
    for table, lo, hi in _blocks(schedule, phase):
        empty = np.iinfo(table.dtype).max
        kernel.clear(table, empty)
        kernel.place(table, lo, hi, need.before, need.first, need.members, ready)
        kernel.receive_copies(flow, table, lo, hi, empty, fault)
        kernel.send_copies(flow, table, lo, hi, fault)
        if not missing:
            rank, chunk = kernel.missing_copy(
                table, lo, hi, empty, need.after, need.first, need.members
            )
            missing += [(rank, chunk)] if rank >= 0 else []
    _raise_copy_fault(schedule, phase, need, fault)
    for rank, chunk in missing:
        raise failure("CS516", f"{gpu(schedule, rank)} wants chunk {chunk} and never has it")


def _check_sums(schedule: TimedSchedule, phase: TimedPhase, need: Need) -> Ints:
    """Replay a phase of reductions; return when each sum is complete at its final rank."""
    from colsynth.kernels import timed_check as kernel

    flow = _flow(schedule, phase)
    fault = _no_fault(schedule)
    ready = np.zeros(schedule.chunks, np.int64)
    left = np.full(schedule.problem.topology.size, -1, np.int64)
    for table, lo, hi in _blocks(schedule, phase):
        kernel.clear(table, kernel.EMPTY)
        kernel.place(table, lo, hi, need.before, need.first, need.members, ready)
        kernel.receive_sums(flow, table, lo, hi)
        done = table[need.final[lo:hi], np.arange(hi - lo)]
        kernel.send_sums(flow, table, lo, hi, need.final, fault)
        kernel.unsent_sums(table, lo, hi, need.final, left)
        ready[lo:hi] = np.maximum(done, 0)
    _raise_sum_fault(schedule, phase, need, fault)
    if np.any(left >= 0):
        rank = int(np.argmin(np.where(left < 0, schedule.chunks, left)))
        chunk = int(left[rank])
        what = "its contribution to" if need.holds(rank, chunk) else "what it received of"
        raise failure("CS517", f"{gpu(schedule, rank)} never sends {what} chunk {chunk}")
    return ready


def _raise_copy_fault(schedule: TimedSchedule, phase: TimedPhase, need: Need, fault: Ints) -> None:
    from colsynth.kernels.timed_check import AGAIN

    found = _first_fault(fault)
    if found is None:
        return
    transfer, kind = found
    hop, _ = start_of(phase, transfer)
    source, target = int(phase.hops.source[hop]), int(phase.hops.target[hop])
    chunk = int(phase.chunk[transfer])
    clause = told(schedule, phase, transfer)
    if need.after[chunk] == NOBODY:
        raise failure("CS515", f"{clause}, but nobody is to receive it")
    if kind == AGAIN:
        held = "holds it from the start" if need.holds(target, chunk) else "receives it twice"
        raise failure("CS515", f"{clause}, which {held}")
    when = _arrival(phase, source, chunk)
    if need.holds(source, chunk):
        raise failure("CS514", f"{clause} before its sum is complete there")
    if when is None:
        raise failure("CS514", f"{clause}, but never has it")
    raise failure("CS514", f"{clause}, but has it only from {moment(schedule, when)}")


def _raise_sum_fault(schedule: TimedSchedule, phase: TimedPhase, need: Need, fault: Ints) -> None:
    from colsynth.kernels import timed_check as kernel

    found = _first_fault(fault)
    if found is None:
        return
    transfer, kind = found
    chunk = int(phase.chunk[transfer])
    if need.after[chunk] == NOBODY:
        raise failure("CS517", f"{told(schedule, phase, transfer)}, which is not to be reduced")
    why = {
        kernel.OWNED: "but is to keep its sum",
        kernel.TWICE: "and does so twice",
        kernel.NOTHING: "but has nothing to send",
        kernel.EARLY: "before all that it receives of it has come",
    }[kind]
    raise failure("CS517", f"{told(schedule, phase, transfer)}, {why}")


def _arrival(phase: TimedPhase, rank: int, chunk: int) -> int | None:
    """Return when a chunk first comes to a rank, None for never."""
    found = []
    for hop in np.flatnonzero(phase.hops.target == rank).tolist():
        carried = slice(int(phase.first[hop]), int(phase.first[hop + 1]))
        for place in np.flatnonzero(phase.chunk[carried] == chunk).tolist():
            start = start_of(phase, carried.start + place)[1]
            found.append(start + int(phase.hops.duration[hop]))
    return min(found, default=None)


def _flow(schedule: TimedSchedule, phase: TimedPhase) -> Any:
    """Return a phase as the kernels take it."""
    from colsynth.kernels.timed_check import Flow

    ranks = schedule.problem.topology.size
    hops = phase.hops
    narrow = phase.chunk.dtype in (np.uint16, np.uint32)
    return Flow(
        source=hops.source.astype(np.int64),
        target_first=np.searchsorted(hops.target, np.arange(ranks + 1)),
        by_source=np.argsort(hops.source, kind="stable"),
        source_first=np.searchsorted(np.sort(hops.source), np.arange(ranks + 1)),
        stride=hops.stride.astype(np.int64) if len(hops) else np.zeros(0, np.int64),
        duration=hops.duration.astype(np.int64),
        first=phase.first.astype(np.int64),
        chunk=phase.chunk if narrow else phase.chunk.astype(np.uint32),
        run_first=phase.run_first.astype(np.int64),
        run_start=phase.run_start.astype(np.int64),
        run_length=phase.run_length.astype(np.int64),
    )


def _blocks(schedule: TimedSchedule, phase: TimedPhase) -> Iterator[tuple[Any, int, int]]:
    """Yield a table and the chunks it is for, block by block."""
    ranks = schedule.problem.topology.size
    kind = np.int32 if schedule.ticks < np.iinfo(np.int32).max else np.int64
    room = min(_MOST_TABLE, max(_LEAST_TABLE, 2 * phase.transfers))
    width = max(1, min(schedule.chunks, room // (ranks * np.dtype(kind).itemsize)))
    table = np.empty((ranks, width), kind)
    for lo in range(0, schedule.chunks, width):
        yield table, lo, min(lo + width, schedule.chunks)


def _no_fault(schedule: TimedSchedule) -> Ints:
    fault = np.full((schedule.problem.topology.size, 3), np.iinfo(np.int64).max, np.int64)
    fault[:, 2] = 0
    return fault


def _first_fault(fault: Ints) -> tuple[int, int] | None:
    """Return (transfer, kind) of the fault that comes first in time."""
    first = fault[np.lexsort((fault[:, 1], fault[:, 0]))[0]]
    return (int(first[1]), int(first[2])) if first[2] else None
