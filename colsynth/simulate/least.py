"""The least time of a program on its machine, from its loads alone."""

from __future__ import annotations

import numpy as np

from colsynth.runtimes.profile import Profile
from colsynth.simulate.machine import Machine
from colsynth.simulate.run import tile_message


def least_seconds(machine: Machine, profile: Profile, size: int) -> float:
    """Return a time that a message of `size` bytes certainly takes.

    Every link has to carry its load, and every threadblock has to begin its calls and to move its
    data, one after the other. The result takes no simulation: programs that are far too slow need
    none.
    """
    moved = machine.pieces * (size / machine.program.header.chunks)
    sending = machine.sends >= 0
    load = np.bincount(machine.sends[sending], moved[sending], len(machine.connections))
    carried = np.bincount(
        machine.route, np.repeat(load, np.diff(machine.route_first)), len(machine.capacity)
    )
    links = float((carried / machine.capacity).max(initial=0.0))
    tiling = tile_message(machine, profile, size)
    calls = -(-machine.pieces // tiling.group) * tiling.tiles
    speed = np.where(sending, machine.cap[machine.sends], machine.speed)
    spent = calls * machine.busy + moved / speed
    blocks = float(np.bincount(machine.steps.block, spent).max(initial=0.0))
    return max(links, blocks) / 1e9
