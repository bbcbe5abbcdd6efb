"""Whether a timed schedule keeps to the sketch of its problem."""

from __future__ import annotations

import numpy as np

from colsynth.model import Direction, Kind, TimedPhase, TimedSchedule
from colsynth.verify.timed_names import failure, gpu, told
from colsynth.verify.timed_needs import Need


def check_sketch(schedule: TimedSchedule, phase: TimedPhase, need: Need) -> None:
    """Check that a phase takes only ways that the sketch allows; nothing without a sketch.

    Raises
    ------
    VerificationError
        CS513.
    """
    topology, sketch = schedule.problem.topology, schedule.problem.sketch
    if sketch is None:
        return
    boxes = [topology.nodes[node].box for node in topology.ranks]
    pairs = {
        together: None if found is None else set(found)
        for together, found in ((True, sketch.within), (False, sketch.between))
    }
    hops = phase.hops
    for hop in np.flatnonzero(np.diff(phase.first) > 0).tolist():
        source, target = int(hops.source[hop]), int(hops.target[hop])
        together = boxes[source] == boxes[target]
        may = pairs[together]
        ends = (topology.links[i].target for i in hops.links[hops.first[hop] : hops.first[hop + 1]])
        through_nic = together and any(topology.nodes[end].kind is Kind.NIC for end in ends)
        first = int(phase.first[hop])
        if through_nic or (may is not None and (source, target) not in may):
            raise _stray(schedule, phase, first, "has no such way")
        if together or not sketch.leave or phase.direction is Direction.IN:
            continue
        for transfer in range(first, int(phase.first[hop + 1])):
            held = int(need.before[phase.chunk[transfer]])
            begins = need.members[need.first[held] : need.first[held + 1]].tolist()
            if not any(source in sketch.leave[rank] for rank in begins):
                what = f"has another sender for what begins at {gpu(schedule, begins[0])}"
                raise _stray(schedule, phase, transfer, what)


def _stray(schedule: TimedSchedule, phase: TimedPhase, transfer: int, what: str) -> Exception:
    sketch = schedule.problem.sketch
    name = "" if sketch is None else f" {sketch.name}"
    return failure("CS513", f"the sketch{name} {what}: {told(schedule, phase, transfer)}")
