"""Runs a machine at one message size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.errors import Diagnostic, VerificationError
from colsynth.simulate.machine import Machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from colsynth.kernels.machine import Passes
    from colsynth.runtimes.profile import Profile

SLICES = 200_000
"""Slices simulated at most before tiles are left out, unless `LEAST_TILES` are more."""
LEAST_TILES = 16


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a message is divided into tiles, calls and slices.

    Parameters
    ----------
    group : int
        Chunks that one call moves.
    chunk : float
        Bytes of a chunk.
    tile, last : float
        Bytes of a chunk in a tile, and in the last one.
    tiles, simulated : int
        Tiles of the message, and how many of them are simulated.
    slices, depth : int
        Slices of a call, and slices that a connection holds.
    """

    group: int
    chunk: float
    tile: float
    last: float
    tiles: int
    simulated: int
    slices: int
    depth: int


@dataclass(frozen=True)
class Run:
    """What happened at one size; times in nanoseconds from the first step on.

    Parameters
    ----------
    size : int
    tiling : Tiling
    seconds : float
        With the launch, and with the tiles that were not simulated.
    block_end : float64 (B,)
    integers, times : arrays
        One row per slice (see `colsynth.kernels.execution`); none unless traced.
    """

    size: int
    tiling: Tiling
    seconds: float
    block_end: NDArray[np.float64]
    integers: NDArray[np.int32]
    times: NDArray[np.float64]


def tile_message(machine: Machine, profile: Profile, size: int, most: int | None = None) -> Tiling:
    """Return how the runtime cuts a message (contract 4.3, 4.4, 4.6).

    `most` is the number of slices beyond which tiles are left out; `SLICES` unless given.
    """
    model, protocol = machine.model, machine.protocol
    chunk = size / machine.program.header.chunks
    room, depth = profile.tile_bytes[protocol], profile.fifo_calls[protocol]
    if profile.plans:
        from colsynth.runtimes.plans.shape import tiling

        room, depth = tiling(machine.program, size)
    group = max(1, min(profile.max_count, room // max(1, math.ceil(chunk))))
    tiles = max(1, math.ceil(chunk / room))
    tile = min(chunk, float(room))
    widest = max(1, int(machine.pieces.max(initial=1)))
    largest = min(group, widest) * tile
    slices = min(model.slices[protocol], max(1, math.ceil(largest / model.least_slice[protocol])))
    calls = int(np.maximum(1, -(-machine.pieces // group)).sum())
    simulated = min(tiles, max(LEAST_TILES, (most or SLICES) // max(1, calls * slices)))
    return Tiling(
        group=group,
        chunk=chunk,
        tile=tile,
        last=chunk - (tiles - 1) * tile,
        tiles=tiles,
        simulated=simulated,
        slices=slices,
        depth=depth * slices,
    )


def run(
    machine: Machine, profile: Profile, size: int, *, trace: bool = False, most: int | None = None
) -> Run:
    """Return what happens when a message of `size` bytes is passed to the program.

    Of messages with many tiles only some are simulated. All tiles but the last are equal,
    so a program settles into a rhythm, until towards the end threadblocks run out of tiles;
    the mean time per tile in the second quarter of the simulated ones stands for those left
    out.

    Raises
    ------
    VerificationError
        CS603: the program does not finish.
    """
    from colsynth.kernels.execution import INTEGERS, TIMES, execute
    from colsynth.kernels.machine import Network, Units

    tiling = tile_message(machine, profile, size, most)
    calls = int(np.maximum(1, -(-machine.pieces // tiling.group)).sum())
    rows = calls * tiling.slices * tiling.simulated if trace else 0
    block_end = np.full(len(machine.blocks), -1.0)
    tile_end = np.full(tiling.simulated, -1.0)
    integers, times = np.zeros((rows, INTEGERS), np.int32), np.zeros((rows, TIMES))
    units, network = (
        kind(*(getattr(machine, name) for name in kind._fields)) for kind in (Units, Network)
    )
    passes = _passes(machine, tiling)
    stuck = execute(units, network, passes, block_end, tile_end, integers, times)
    if stuck:
        raise _hangs(machine, size, block_end)
    whole = float(block_end.max(initial=0.0)) + _left_out(tiling, tile_end)
    used = int(np.count_nonzero(_completed(times, integers))) if trace else 0
    launch = machine.model.launch[machine.protocol] / 1e6
    return Run(size, tiling, whole / 1e9 + launch, block_end, integers[:used], times[:used])


def _passes(machine: Machine, tiling: Tiling) -> Passes:
    """Return what the kernel needs to know of a message."""
    from colsynth.kernels.machine import Passes

    least = machine.model.least_slice[machine.protocol] if tiling.slices > 1 else 0
    return Passes(
        tiling.group, tiling.chunk, tiling.tile, tiling.last, tiling.simulated, tiling.slices,
        float(least), tiling.depth, 1e3 * machine.model.wait,
    )  # fmt: skip


def _completed(times: NDArray[Any], integers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows of a trace were filled in; they come first."""
    filled: NDArray[np.bool_] = (times != 0).any(axis=1) | (integers != 0).any(axis=1)
    return filled


def _left_out(tiling: Tiling, tile_end: NDArray[np.float64]) -> float:
    """Return the nanoseconds of the tiles that were not simulated."""
    missing = tiling.tiles - tiling.simulated
    if not missing:
        return 0.0
    begin, end = tiling.simulated // 4 - 1, tiling.simulated // 2 - 1
    return missing * float(tile_end[end] - tile_end[begin]) / (end - begin)


def _hangs(machine: Machine, size: int, block_end: NDArray[np.float64]) -> VerificationError:
    stuck = np.flatnonzero(block_end < 0).tolist()
    rank, block = machine.blocks[stuck[0]]
    notes = (f"rank {rank}, threadblock {block} is the first of {len(stuck)} that wait forever",)
    advice = "`colsynth verify` finds the circle"
    phrase = f"the program does not finish with a message of {size} bytes"
    return VerificationError(Diagnostic("CS603", phrase, notes=notes, help=advice))
