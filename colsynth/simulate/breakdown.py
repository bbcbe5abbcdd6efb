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
    CAUSE,
    CAUSES,
    CAUSING,
    END,
    LINK,
    START,
    TURN,
    UNIT,
    Trace,
)

LINK_TIME, RATE_TIME, LOCAL_TIME = "link", "threadblock rate", "local work"
STEP_TIME, HOP_TIME, SLOT_TIME, FLAG_TIME = "step overhead", "latency", "free slot", "dependency"
CLASSES = (LINK_TIME, RATE_TIME, LOCAL_TIME, STEP_TIME, HOP_TIME, SLOT_TIME, FLAG_TIME)
"""Of the time on the critical path."""

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
        Seconds of it before the first step.
    path : tuple of Leg
        In the order of time.
    classes : dict
        Seconds on the path by class, all of `CLASSES`.
    links, blocks : dict
        Seconds on the path that links limit by link index, and that slices of a threadblock
        take by its number; most first.
    causes : dict
        How many legs began because of each cause.
    waiting : dict
        Share of all threadblocks' time by what they do: ``"moving"``, ``"step overhead"``, what
        they wait for (``"message"``, ``"slot"``, ``"dependency"``), and ``"done"``.
    simulated : float
        Share of the tiles that were simulated; the rest repeats their rhythm.
    """

    size: int
    seconds: float
    launch: float
    path: tuple[Leg, ...]
    classes: dict[str, float]
    links: dict[int, float]
    blocks: dict[int, float]
    causes: dict[str, int]
    waiting: dict[str, float]
    simulated: float


def break_down(traced: Trace) -> Breakdown:
    """Return where the time of a trace goes."""
    run, machine = traced.run, traced.machine
    path = critical_path(traced)
    classes = dict.fromkeys(CLASSES, 0.0)
    links: defaultdict[int, float] = defaultdict(float)
    blocks: defaultdict[int, float] = defaultdict(float)
    for leg in path:
        integers, times = run.integers[leg.row], run.times[leg.row]
        moving = float(times[END] - times[BEGIN]) / 1e9
        classes[_moving_class(traced, leg.row)] += moving
        classes[STEP_TIME] += float(times[BEGIN] - times[START]) / 1e9
        classes[_BETWEEN[leg.cause]] += leg.gap / 1e9
        if integers[LINK] >= 0:
            links[int(integers[LINK])] += moving
        blocks[int(integers[BLOCK])] += float(times[END] - times[START]) / 1e9
    causes = Counter(leg.cause for leg in path)
    return Breakdown(
        size=run.size,
        seconds=run.seconds,
        launch=machine.model.launch[machine.protocol] / 1e6,
        path=path,
        classes=classes,
        links=dict(sorted(links.items(), key=lambda item: (-item[1], item[0]))),
        blocks=dict(sorted(blocks.items(), key=lambda item: (-item[1], item[0]))),
        causes={cause: causes[cause] for cause in CAUSES},
        waiting=_waiting(traced),
        simulated=run.cut.simulated / run.cut.tiles,
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


def _moving_class(traced: Trace, row: int) -> str:
    if traced.machine.sends[traced.run.integers[row, UNIT]] < 0:
        return LOCAL_TIME
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
