"""How a fault of a timed schedule is named: by GPU, link, chunk and time."""

from __future__ import annotations

import numpy as np

from colsynth.errors import Diagnostic, VerificationError
from colsynth.model import Hops, TimedPhase, TimedSchedule


def failure(code: str, phrase: str, *notes: str) -> VerificationError:
    """Return the error of one fault."""
    return VerificationError(Diagnostic(code, phrase, notes=notes))


def gpu(schedule: TimedSchedule, rank: int) -> str:
    """Return the name of a rank's node, and the rank."""
    topology = schedule.problem.topology
    return f"{topology.gpu_names[rank]} (rank {rank})"


def moment(schedule: TimedSchedule, ticks: int) -> str:
    """Return a time for people, with the exact number of ticks."""
    return f"{float(ticks * schedule.tick * 10**6):.6g} us (tick {ticks})"


def route(schedule: TimedSchedule, hops: Hops, hop: int) -> str:
    """Return the links of a hop by name."""
    topology = schedule.problem.topology
    links = hops.links[hops.first[hop] : hops.first[hop + 1]].tolist()
    return ", ".join(topology.link_name(link) for link in links)


def start_of(phase: TimedPhase, transfer: int) -> tuple[int, int]:
    """Return (hop, start in ticks) of a transfer."""
    hop = int(np.searchsorted(phase.first, transfer, side="right")) - 1
    runs = slice(int(phase.run_first[hop]), int(phase.run_first[hop + 1]))
    before = np.cumsum(phase.run_length[runs], dtype=np.int64)
    place = transfer - int(phase.first[hop])
    run = int(np.searchsorted(before, place, side="right"))
    place -= int(before[run - 1]) if run else 0
    links = slice(int(phase.hops.first[hop]), int(phase.hops.first[hop + 1]))
    stride = int((phase.hops.end[links] - phase.hops.begin[links]).max())
    return hop, int(phase.run_start[runs][run]) + place * stride


def told(schedule: TimedSchedule, phase: TimedPhase, transfer: int) -> str:
    """Return one transfer as a clause: who sends what to whom, when, over which links."""
    hop, start = start_of(phase, transfer)
    source, target = int(phase.hops.source[hop]), int(phase.hops.target[hop])
    return (
        f"{gpu(schedule, source)} sends chunk {int(phase.chunk[transfer])} to "
        f"{gpu(schedule, target)} at {moment(schedule, start)} "
        f"over {route(schedule, phase.hops, hop)}"
    )
