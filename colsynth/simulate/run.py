"""Runs a machine at one message size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.errors import Diagnostic, VerificationError
from colsynth.simulate.machine import Floats, Machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from colsynth.kernels.machine import Passes
    from colsynth.runtimes.profile import Profile

SLICES = 200_000
"""Slices simulated at most before tiles are left out, unless `LEAST_TILES` are more.

Half as many more are simulated where none is left out then (`_worth`), here and below.
"""
LEAST_TILES = 16
STEADY = 8
"""Tiles in the rhythm of a program that are simulated before others are left out.

LL128 on four boxes of MI300X, 59 tiles: threadblocks are up to 16 tiles ahead of others. With 16
tiles simulated, 3 are in the rhythm, and the prediction is 19 % too short.
"""
MOST_SLICES = 4_000_000
"""Slices beyond which no more tiles are simulated for the sake of the rhythm: about two seconds."""


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
    steady : int
        Simulated tiles that all threadblocks were through with before the first had none left;
        all tiles where none was left out.
    """

    size: int
    tiling: Tiling
    seconds: float
    block_end: Floats
    integers: NDArray[np.int32]
    times: Floats
    steady: int


def tile_message(machine: Machine, profile: Profile, size: int, most: int | None = None) -> Tiling:
    """Return how the runtime cuts a message (contract 4.3, 4.4, 4.6).

    `most` is the number of slices beyond which tiles are left out; `SLICES` unless given.
    """
    model, protocol = machine.model, machine.protocol
    chunk = size / machine.program.header.chunks
    room, depth = profile.tile_bytes[protocol], profile.fifo_calls[protocol]
    if profile.plans:
        from colsynth.runtimes.plans.iterations import tiling

        room, depth = tiling(machine.program, size)
    group = max(1, min(profile.max_count, room // max(1, ceil(chunk))))
    tiles = max(1, ceil(chunk / room))
    tile = min(chunk, float(room))
    widest = max(1, int(machine.pieces.max(initial=1)))
    largest = min(group, widest) * tile
    slices = min(model.slices[protocol], max(1, ceil(largest / model.least_slice[protocol])))
    each = _calls(machine, group) * slices
    simulated = max(LEAST_TILES, (most or SLICES) // max(1, each))
    return Tiling(
        group=group,
        chunk=chunk,
        tile=tile,
        last=chunk - (tiles - 1) * tile,
        tiles=tiles,
        simulated=_worth(tiles, simulated),
        slices=slices,
        depth=depth * slices,
    )


def run(
    machine: Machine, profile: Profile, size: int, *, trace: bool = False, most: int | None = None
) -> Run:
    """Return what happens when a message of `size` bytes is passed to the program.

    Of messages with many tiles only some are simulated. All tiles but the last are equal, so a
    program settles into a rhythm, until the first threadblock runs out of tiles: it is ahead of
    the last one by what the FIFOs between them hold. The mean time per tile in the second half
    of that period stands for the tiles left out. Where it is short, more tiles are simulated.

    Raises
    ------
    VerificationError
        CS603: the program does not finish.
    """
    tiling = tile_message(machine, profile, size, most)
    found = _executed(machine, size, tiling, trace=trace)
    while more := _more(machine, found):
        tiling = replace(tiling, simulated=more)
        found = _executed(machine, size, tiling, trace=trace)
    return found


def _worth(tiles: int, wanted: int) -> int:
    """Return how many tiles to simulate where so many are wanted: all if few were left out."""
    return tiles if 2 * tiles <= 3 * wanted else wanted


def _executed(machine: Machine, size: int, tiling: Tiling, *, trace: bool) -> Run:
    """Return what happens when so many tiles are simulated."""
    from colsynth.kernels.execution import INTEGERS, TIMES, execute
    from colsynth.kernels.machine import Network, Units

    rows = _calls(machine, tiling.group) * tiling.slices * tiling.simulated if trace else 0
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
    all_tiles = tiling.simulated == tiling.tiles
    steady = tiling.tiles if all_tiles else _steady(machine, block_end, tile_end)
    whole = float(block_end.max(initial=0.0)) + _left_out(tiling, tile_end, steady)
    used = int(np.count_nonzero(_completed(times, integers))) if trace else 0
    launch = machine.model.launch[machine.protocol] / 1e6
    seconds = whole / 1e9 + launch
    return Run(size, tiling, seconds, block_end, integers[:used], times[:used], steady)


def _calls(machine: Machine, group: int) -> int:
    """Return the calls of all steps for one tile, where a call moves so many chunks."""
    return int(np.maximum(1, -(-machine.pieces // group)).sum())


def _more(machine: Machine, found: Run) -> int:
    """Return how many tiles to simulate in order to see the rhythm, 0 for no more.

    That is one and a half times as many, or as many as suffice if the share of those in the rhythm
    stays: twice as many at most, or four times where none is. It must take little time.
    """
    tiling = found.tiling
    if found.steady >= min(STEADY, tiling.tiles):
        return 0
    each = _calls(machine, tiling.group) * tiling.slices
    share = STEADY / max(1, found.steady)
    least, most = ceil(1.5 * tiling.simulated), MOST_SLICES // each
    likely = ceil(tiling.simulated * min(share, 2 if found.steady else 4))
    return _worth(tiling.tiles, min(max(least, likely), most)) if least <= most else 0


def _steady(machine: Machine, block_end: Floats, tile_end: Floats) -> int:
    """Return how many tiles all were through with when the first threadblock ran out of them.

    Threadblocks without peers wait for nobody and may be far ahead, so they do not count.
    """
    joined = (machine.sends >= 0) | (machine.receives >= 0)
    first = block_end[machine.steps.block[joined]].min(initial=np.inf)
    return int(np.count_nonzero(tile_end < first))


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


def _left_out(tiling: Tiling, tile_end: Floats, steady: int) -> float:
    """Return the nanoseconds of the tiles that were not simulated."""
    missing = tiling.tiles - tiling.simulated
    if not missing:
        return 0.0
    end = max(steady, 2) - 1
    begin = max(steady, 2) // 2 - 1
    return missing * float(tile_end[end] - tile_end[begin]) / (end - begin)


def _hangs(machine: Machine, size: int, block_end: Floats) -> VerificationError:
    stuck = np.flatnonzero(block_end < 0).tolist()
    rank, block = machine.blocks[stuck[0]]
    notes = (f"rank {rank}, threadblock {block} is the first of {len(stuck)} that wait forever",)
    advice = "`colsynth verify` finds the circle"
    phrase = f"the program does not finish with a message of {size} bytes"
    return VerificationError(Diagnostic("CS603", phrase, notes=notes, help=advice))
