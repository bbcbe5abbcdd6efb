"""The least time of a program on its machine, from its loads alone."""

from __future__ import annotations

import numpy as np

from colsynth.simulate.machine import Machine


def least_seconds(machine: Machine, size: int) -> float:
    """Return a time that a message of `size` bytes certainly takes.

    Every link has to carry its load, and every threadblock has to move what it sends. The result
    takes no simulation: programs that are far too slow need none.
    """
    chunk = size / machine.program.header.chunks
    sending = machine.sends >= 0
    moved = machine.pieces[sending] * chunk
    load = np.bincount(machine.sends[sending], moved, len(machine.connections))
    carried = np.bincount(
        machine.route, np.repeat(load, np.diff(machine.route_first)), len(machine.capacity)
    )
    links = float((carried / machine.capacity).max(initial=0.0))
    spent = moved / machine.cap[machine.sends[sending]]
    blocks = float(np.bincount(machine.steps.block[sending], spent).max(initial=0.0))
    return max(links, blocks) / 1e9
