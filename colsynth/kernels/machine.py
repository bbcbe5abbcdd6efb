"""What `execution` runs: a program, the connections it uses, and how the message is cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Units(NamedTuple):
    """The program; U units on B threadblocks.

    Parameters
    ----------
    block_first : int64 (B + 1,)
        Units of each threadblock.
    receives, sends : int32 (U,), int32 (U,)
        Connection of each unit, -1 for none.
    pieces, ordinal : int64 (U,), int64 (U,)
        Chunks moved by each unit; its place in the file.
    signals : bool (U,)
    busy, speed : float64 (U,), float64 (U,)
        Fixed time of every call with data; bytes per nanosecond where it sends nothing.
    wait_first, wait_block, wait_ordinal : int64 (U + 1,), int32, int64
        Dependencies of each unit.
    """

    block_first: np.ndarray
    receives: np.ndarray
    sends: np.ndarray
    pieces: np.ndarray
    signals: np.ndarray
    ordinal: np.ndarray
    busy: np.ndarray
    speed: np.ndarray
    wait_first: np.ndarray
    wait_block: np.ndarray
    wait_ordinal: np.ndarray


class Network(NamedTuple):
    """Connections of the program, C of them, and the L links that they share.

    Parameters
    ----------
    latency, give_back, cap : float64 (C,), float64 (C,), float64 (C,)
        Of each connection: until a slice has arrived, until its slot is known to be free,
        and the most its sender sends, which is finite.
    route_first, route : int64 (C + 1,), uint32
        Links of each connection.
    capacity : float64 (L,)
    """

    latency: np.ndarray
    give_back: np.ndarray
    cap: np.ndarray
    route_first: np.ndarray
    route: np.ndarray
    capacity: np.ndarray


class Passes(NamedTuple):
    """How the message is cut.

    Parameters
    ----------
    group : int
        Chunks that one call moves.
    chunk : float
        Bytes of a chunk, where the program has one tile.
    tile_bytes, last_tile_bytes, tiles : float, float, int
        Bytes of a chunk in a pass of the program, in the last pass, and passes.
    slices, least_slice, depth : int, float, int
        Slices of a call, least bytes of one, and slots of a connection in slices.
    after_wait : float
        Fixed time of a unit that has dependencies.
    """

    group: int
    chunk: float
    tile_bytes: float
    last_tile_bytes: float
    tiles: int
    slices: int
    least_slice: float
    depth: int
    after_wait: float
