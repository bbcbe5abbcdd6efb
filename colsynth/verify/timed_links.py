"""Whether links carry one transfer at a time, over all hops and phases together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colsynth.model import TimedSchedule
from colsynth.verify.timed_names import failure, moment, told

Ints = NDArray[np.int64]


def check_links(schedule: TimedSchedule) -> None:
    """Check that no two transfers occupy a link at once; touching is fine.

    Raises
    ------
    VerificationError
        CS512, naming link, time and both transfers.
    """
    from colsynth.kernels.occupation import NEVER, first_meetings

    if not schedule.transfers:
        return
    found = first_meetings(_lanes(schedule))
    link = int(np.argmin(found[:, 0]))
    when, one, other = found[link].tolist()
    if when == NEVER:
        return
    name = schedule.problem.topology.link_name(link)
    phrase = f"link {name} carries two chunks at {moment(schedule, when)}"
    raise failure("CS512", phrase, _told(schedule, one), _told(schedule, other))


def _lanes(schedule: TimedSchedule) -> tuple[Ints, ...]:
    """Return the links of all phases, each with the hops over it."""
    from colsynth.kernels.occupation import Lanes

    phases = [phase for phase in schedule.phases if phase.transfers]
    hops_before = np.cumsum([0, *(len(phase.hops) for phase in phases)])
    runs_before = np.cumsum([0, *(phase.run_start.size for phase in phases)])
    hop = np.concatenate(
        [
            np.repeat(np.arange(len(phase.hops)), np.diff(phase.hops.first)) + before
            for phase, before in zip(phases, hops_before.tolist(), strict=False)
        ]
    )
    runs = [p.run_first[:-1] + b for p, b in zip(phases, runs_before.tolist(), strict=False)]
    links = np.concatenate([phase.hops.links for phase in phases])
    order = np.argsort(links, kind="stable")
    first = np.zeros(len(schedule.problem.topology.links) + 1, np.int64)
    np.cumsum(np.bincount(links, minlength=first.size - 1), out=first[1:])
    length = np.concatenate([phase.run_length for phase in phases])
    return Lanes(
        first=first,
        hop=hop[order],
        begin=np.concatenate([phase.hops.begin for phase in phases])[order],
        end=np.concatenate([phase.hops.end for phase in phases])[order],
        stride=np.concatenate([phase.hops.stride for phase in phases]),
        run_first=np.concatenate([*runs, runs_before[-1:]]),
        run_start=np.concatenate([phase.run_start for phase in phases]),
        run_length=length,
        run_place=np.cumsum(length) - length,
    )


def _told(schedule: TimedSchedule, transfer: int) -> str:
    """Return a transfer, numbered over all phases, as a clause."""
    for phase in schedule.phases:
        if transfer < phase.transfers:
            break
        transfer -= phase.transfers
    return f"in the {phase.direction} phase, {told(schedule, phase, transfer)}"
