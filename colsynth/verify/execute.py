"""Abstract execution: whether every threadblock finishes, given FIFOs of bounded depth.

Threadblocks are sequential processes joined by bounded FIFOs and by flags that only
grow, so whether the program finishes does not depend on the order in which they are
run (a Kahn network), and one order decides. A step that moves `count` chunks is
``ceil(count / group)`` calls on its connection; a fused step takes from one FIFO and
puts into another in the same call (contract 4.4 to 4.6).

Long steps are cut short without changing the answer. Ask of a call which others must
come before it: within the units of one message these are earlier calls of the same
unit, the same call upstream, and - for want of room - a call `depth` earlier downstream.
From the last call of a step one can thus get `h` units downstream only if the step has
more than ``h * depth`` calls. A message passes at most ``longest_chain`` receive-and-sends,
hence ``h`` is at most one more, and all lengths above ``depth * (longest_chain + 1)`` have
the same circles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colsynth.verify.table import Ints
from colsynth.verify.units import Units

UNBOUNDED = 1 << 60


@dataclass(frozen=True)
class Run:
    """What happened.

    Parameters
    ----------
    order : int array
        Units in the order in which they completed in the first tile.
    stuck : list of (int, int)
        Threadblock and unit for each threadblock that did not finish, in order.
    """

    order: Ints
    stuck: list[tuple[int, int]]


def execute(units: Units, *, depth: int, group: int, tiles: int) -> Run:
    """Run a program and say whether it finishes.

    Parameters
    ----------
    units : Units
    depth : int
        Calls a connection holds before its sender blocks.
    group : int
        Chunks that one call moves (M of the contract).
    tiles : int
        Passes of the outer loop.
    """
    from colsynth.kernels.fifos import AT, TILE
    from colsynth.kernels.fifos import execute as run

    table = units.table
    enough = min(depth * (units.longest_chain + 1) + 1, UNBOUNDED)
    calls = (-(-table.count // group)).clip(1, enough)
    state, order = run(
        units.first,
        units.unit,
        calls.astype(np.int64),
        units.recv,
        units.send,
        units.wait_first,
        units.wait_block,
        units.wait_ordinal,
        np.where(table.signals, table.ordinal, -1).astype(np.int64),
        np.array([len(units.connections), depth, tiles], np.int64),
    )
    stuck = [
        (block, int(units.unit[units.first[block] + at]))
        for block, (at, tile) in enumerate(state[:, [AT, TILE]].tolist())
        if tile < tiles
    ]
    return Run(order, stuck)
