"""Where the time goes: the critical path, and what threadblocks wait for.

The critical path is walked backwards from the slice that ends last: each slice started when
the last thing it needed was there, and whatever brought that is the slice before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colsynth.simulate.trace import (
    BEGIN,
    BLOCK,
    CALL,
    CAUSE,
    CAUSES,
    CAUSING,
    END,
    LINK,
    SLICE,
    START,
    TURN,
    UNIT,
    Trace,
)

LINK_TIME, RATE_TIME, RECEIVE_TIME = "sending at link rate", "sending at block rate", "receiving"
LOCAL_TIME, STEP_TIME, HOP_TIME = "local copy or sum", "step overhead", "latency"
SLOT_TIME, FLAG_TIME = "free slot", "dependency"
CLASSES = (
    *(LINK_TIME, RATE_TIME, RECEIVE_TIME, LOCAL_TIME),
    *(STEP_TIME, HOP_TIME, SLOT_TIME, FLAG_TIME),
)
"""Of the time on the critical path: what slices do, and what lies between them."""

LIMITS = {
    "links": (LINK_TIME,),
    "threadblocks": (RATE_TIME, RECEIVE_TIME, LOCAL_TIME),
    "steps": (STEP_TIME, FLAG_TIME),
    "FIFOs": (SLOT_TIME,),
    "latency": (HOP_TIME,),
}
"""What limits a program: the classes of time on the critical path that stand for it."""

_BETWEEN = {"message": HOP_TIME, "slot": SLOT_TIME, "dependency": FLAG_TIME, "order": STEP_TIME}


class Leg(NamedTuple):
    """One slice on the critical path.

    Parameters
    ----------
    row : int
        Of the trace.
    cause : str
        Why it could not start earlier: ``"order"``, ``"message"``, ``"slot"``, ``"dependency"``.
    gap : float
        Nanoseconds between the end of the slice before it and its start.
    """

    row: int
    cause: str
    gap: float


@dataclass(frozen=True)
class Breakdown:
    """Where the time of one message size goes.

    Parameters
    ----------
    size : int
    seconds : float
        Of the whole call.
    launch : float
        Seconds of it outside all steps.
    left_out : float
        Seconds of it that stand for tiles which were not simulated. With these two the
        classes add up to `seconds`.
    path : tuple of Leg
        In the order of time.
    classes : dict
        Seconds on the path by class, all of `CLASSES`.
    links, blocks : dict
        Seconds on the path that links limit by link index, and that slices of a threadblock
        take by its number; most first.
    causes : dict
        How many legs began because of each cause.
    dependencies : dict
        How many legs began when a dependency on a unit was met, by unit; most first.
    waiting : dict
        Share of all threadblocks' time by what they do: ``"moving"``, ``"step overhead"``, what
        they wait for (``"message"``, ``"slot"``, ``"dependency"``), and ``"done"``.
    simulated : float
        Share of the tiles that were simulated; the rest repeats their rhythm.
    """

    size: int
    seconds: float
    launch: float
    left_out: float
    path: tuple[Leg, ...]
    classes: dict[str, float]
    links: dict[int, float]
    blocks: dict[int, float]
    causes: dict[str, int]
    dependencies: dict[int, int]
    waiting: dict[str, float]
    simulated: float

    @property
    def shares(self) -> dict[str, float]:
        """The share of each of `LIMITS` in the time of the steps that were simulated, 0 to 1.

        The launch counts as latency.
        """
        spent = {name: sum(self.classes[x] for x in of) for name, of in LIMITS.items()}
        spent["latency"] += self.launch
        whole = sum(spent.values())
        return {name: value / whole if whole else 0.0 for name, value in spent.items()}


def break_down(traced: Trace) -> Breakdown:
    """Return where the time of a trace goes."""
    run, machine = traced.run, traced.machine
    path = critical_path(traced)
    classes = dict.fromkeys(CLASSES, 0.0)
    links: defaultdict[int, float] = defaultdict(float)
    blocks: defaultdict[int, float] = defaultdict(float)
    waited: Counter[int] = Counter()
    for leg in path:
        integers, times = run.integers[leg.row], run.times[leg.row]
        moving = float(times[END] - times[BEGIN]) / 1e9
        flags = _after_wait(traced, leg.row)
        classes[_moving_class(traced, leg.row)] += moving
        classes[FLAG_TIME] += flags
        classes[STEP_TIME] += float(times[BEGIN] - times[START]) / 1e9 - flags
        classes[_BETWEEN[leg.cause]] += leg.gap / 1e9
        if integers[LINK] >= 0:
            links[int(integers[LINK])] += moving
        blocks[int(integers[BLOCK])] += float(times[END] - times[START]) / 1e9
        if leg.cause == "dependency":
            waited[int(run.integers[integers[CAUSING], UNIT])] += 1
    causes = Counter(leg.cause for leg in path)
    launch = machine.model.launch[machine.protocol] / 1e6
    return Breakdown(
        size=run.size,
        seconds=run.seconds,
        launch=launch,
        left_out=run.seconds - launch - float(run.block_end.max(initial=0.0)) / 1e9,
        path=path,
        classes=classes,
        links=dict(sorted(links.items(), key=lambda item: (-item[1], item[0]))),
        blocks=dict(sorted(blocks.items(), key=lambda item: (-item[1], item[0]))),
        causes={cause: causes[cause] for cause in CAUSES},
        dependencies=dict(sorted(waited.items(), key=lambda item: (-item[1], item[0]))),
        waiting=_waiting(traced),
        simulated=run.tiling.simulated / run.tiling.tiles,
    )


def critical_path(traced: Trace) -> tuple[Leg, ...]:
    """Return the slices that the end of the program hangs on, in the order of time."""
    integers, times = traced.run.integers, traced.run.times
    legs = []
    row = int(np.argmax(times[:, END])) if len(times) else -1
    while row >= 0:
        before = int(integers[row, CAUSING])
        ended = float(times[before, END]) if before >= 0 else 0.0
        gap = max(0.0, float(times[row, START]) - ended)
        legs.append(Leg(row, CAUSES[integers[row, CAUSE]], gap))
        row = before
    return tuple(reversed(legs))


def _after_wait(traced: Trace, row: int) -> float:
    """Return the seconds that a slice loses because its unit has dependencies."""
    integers = traced.run.integers[row]
    first = integers[CALL] == 0 and integers[SLICE] == 0
    begin, end = traced.machine.wait_first[integers[UNIT] : integers[UNIT] + 2]
    return traced.machine.model.wait / 1e6 if first and begin < end else 0.0


def _moving_class(traced: Trace, row: int) -> str:
    unit = traced.run.integers[row, UNIT]
    if traced.machine.sends[unit] < 0:
        return LOCAL_TIME if traced.machine.receives[unit] < 0 else RECEIVE_TIME
    return LINK_TIME if traced.run.integers[row, LINK] >= 0 else RATE_TIME


def _waiting(traced: Trace) -> dict[str, float]:
    """Return the share of all threadblocks' time by what they do."""
    integers, times = traced.run.integers, traced.run.times
    end = float(traced.run.block_end.max(initial=0.0))
    whole = end * max(1, len(traced.machine.blocks))
    if whole == 0.0:
        return {}
    shares = {
        "moving": float((times[:, END] - times[:, BEGIN]).sum()),
        STEP_TIME: float((times[:, BEGIN] - times[:, START]).sum()),
    }
    for number, cause in enumerate(CAUSES[1:], 1):
        mine = integers[:, CAUSE] == number
        shares[cause] = float((times[mine, START] - times[mine, TURN]).sum())
    shares["done"] = whole - float(traced.run.block_end.sum())
    return {name: value / whole for name, value in shares.items()}
