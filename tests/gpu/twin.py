"""Executes the tables of a program one step at a time: the slow twin of ``interpreter.cu``.

Threadblocks take turns; connections hold any number of messages. The whole message is one tile.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tests.gpu.tables import KERNEL_OPS, Tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Buffers = list[list[NDArray[Any]]]


def execute(tables: Tables, buffers: Buffers, chunk: int) -> int:
    """Run a program on the buffers of every rank; return the steps that were never reached.

    Parameters
    ----------
    tables : Tables
    buffers : list of list of array
        Input, output and scratch of every rank.
    chunk : int
        Elements of a chunk.
    """
    fifos: list[deque[Any]] = [deque() for _ in range(tables.connections)]
    places = [int(block[3]) for block in tables.blocks]
    flags = [-1] * len(places)
    moved = True
    while moved:
        moved = False
        for number, (rank, out, into, _, last) in enumerate(tables.blocks.tolist()):
            if places[number] == last:
                continue
            unit = tables.units[places[number]].tolist()
            waits = tables.waits[unit[8] : unit[9]].tolist()
            if any(flags[other] < ordinal for other, ordinal in waits):
                continue
            if not _step(unit, buffers[rank], fifos[into], fifos[out], tables.more, chunk):
                continue
            if unit[7]:
                flags[number] = unit[6]
            places[number] += 1
            moved = True
    return int(tables.blocks[:, 4].sum()) - sum(places)


def _step(
    unit: list[int], own: list[Any], into: deque[Any], out: deque[Any], more: Any, chunk: int
) -> bool:
    """Do a step; return False where the message that it receives is not there."""
    op, source, place, target, goal, count = unit[:6]
    word = KERNEL_OPS[op]

    def part(buffer: int, first: int) -> Any:
        return own[buffer][first * chunk : (first + count) * chunk]

    receives = word in {"r", "rcs", "rrs", "rrc", "rrcs"}
    if receives and not into:
        return False
    data = into.popleft() if receives else part(source, place).copy()
    if word in {"rrs", "rrc", "rrcs"}:
        data = data + part(source, place)
    if word == "re":
        data = data + part(target, goal)
        for shift in more[unit[10] : unit[11]].tolist():
            data = data + part(source, place + shift)
    if word not in {"s", "rrs"}:
        part(target, goal)[:] = data
    if word in {"s", "rcs", "rrs", "rrcs"}:
        out.append(data)
    return True
