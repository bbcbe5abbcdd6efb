"""What happened at one message size, slice by slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from colsynth.cost import Model, default_model
from colsynth.simulate.machine import Machine, build
from colsynth.simulate.run import Run, run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from colsynth.model import ThreadblockProgram, Topology
    from colsynth.runtimes.profile import Profile

BLOCK, UNIT, TILE, CALL, SLICE, CAUSE, CAUSING, LINK = range(8)
"""Columns of `Run.integers`."""
TURN, START, BEGIN, END, BYTES = range(5)
"""Columns of `Run.times`; nanoseconds and bytes."""
CAUSES = ("order", "message", "slot", "dependency")
"""What a slice waited for last, by number."""


@dataclass(frozen=True)
class Trace:
    """A run of a machine with one row per slice."""

    machine: Machine
    run: Run

    def place(self, block: int) -> str:
        """Return a threadblock for people."""
        rank, number = self.machine.blocks[block]
        return f"rank {rank}, threadblock {number}"

    def step(self, unit: int) -> str:
        """Return a step for people."""
        found = self.machine.units[unit]
        return f"{self.place(found.block)}, step {found.ordinal} ({found.op})"


class LinkUse(NamedTuple):
    """How a link is used: `share` of its capacity from each of `times` (nanoseconds) on."""

    link: int
    times: NDArray[np.float64]
    share: NDArray[np.float64]


def trace(
    program: ThreadblockProgram,
    topology: Topology,
    profile: Profile,
    size: int,
    model: Model | None = None,
) -> Trace:
    """Return what happens at one message size.

    Parameters and errors as for `colsynth.simulate.simulate`.
    """
    machine = build(program, topology, model or default_model(profile), profile)
    return Trace(machine, run(machine, profile, size, trace=True))


def link_use(traced: Trace) -> list[LinkUse]:
    """Return the use of every link that carries something, by link index.

    A slice counts with its mean rate from when it begins to move until it is through.
    """
    machine, run_ = traced.machine, traced.run
    sends = machine.sends[run_.integers[:, UNIT]]
    times = run_.times
    moving = (sends >= 0) & (times[:, BYTES] > 0) & (times[:, END] > times[:, BEGIN])
    changes: dict[int, list[Any]] = {}
    begin, end, moved = times[moving, BEGIN], times[moving, END], times[moving, BYTES]
    order = np.argsort(sends[moving], kind="stable")
    columns = [column[order] for column in (begin, end, moved / (end - begin))]
    connections, starts = np.unique(sends[moving][order], return_index=True)
    parts = zip(*(np.split(column, starts[1:]) for column in columns), strict=True)
    for connection, rows in zip(connections.tolist(), parts, strict=False):
        first, last = machine.route_first[connection], machine.route_first[connection + 1]
        for link in machine.route[first:last].tolist():
            changes.setdefault(link, []).append(rows)
    return [_use(link, rows, machine.capacity[link]) for link, rows in sorted(changes.items())]


def _use(link: int, rows: list[Any], capacity: float) -> LinkUse:
    begin, end, rate = (np.concatenate(column) for column in zip(*rows, strict=True))
    times = np.concatenate([begin, end])
    change = np.concatenate([rate, -rate])
    order = np.argsort(times, kind="stable")
    moments, first = np.unique(times[order], return_index=True)
    level = np.cumsum(np.add.reduceat(change[order], first)) / capacity
    return LinkUse(link, moments, np.maximum(level, 0.0).round(6))
