"""Threadblocks that send and receive in rounds: first all sends, then all receives, then sums.

A threadblock of one connection in each direction follows the global order of transfers badly:
it receives before it sends where its peer does the same, and so on round the box, until all of
them do one after the other what they could do at once. In a round no connection is used twice
and nothing that is sent waits for what arrives, so all sends may go first. They do so without
deadlock where a FIFO holds all calls of a step: then this is an order of sends and receives in
which every send finds its FIFO empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.lowering.hazards import Op
from colsynth.model import Transfer

_SEND, _RECEIVE, _LOCAL = range(3)

Place = tuple[int, int, int]
"""Round, what is done in it, operation."""


def places(
    transfers: Sequence[Transfer], ops: Sequence[Op], needed: Sequence[Sequence[int]]
) -> tuple[Place, ...]:
    """Return where each operation stands in the order of rounds, which are as long as can be.

    Parameters
    ----------
    transfers : sequence of Transfer
        In the global order.
    ops : sequence of Op
        A send right before its receive, `colsynth.lowering.hazards.operations`.
    needed : sequence of sequence of int
        The earlier operations that each waits for.
    """
    kinds = [_SEND if op.sends else _RECEIVE if op.receives else _LOCAL for op in ops]
    used: set[tuple[int, int]] = set()
    begun = current = 0
    found: list[Place] = []
    for number, op in enumerate(ops):
        if op.sends:
            transfer = transfers[op.transfer]
            way = transfer.source, transfer.target
            arrives = any(p >= begun and kinds[p] != _SEND for p in needed[number])
            added = any(p >= begun and kinds[p] == _LOCAL for p in needed[number + 1])
            if way in used or arrives or added:
                begun, current, used = number, current + 1, set()
            used.add(way)
        found.append((current, kinds[number], number))
    return tuple(found)


def in_rounds(steps: Sequence[tuple[int, ...]], places: Sequence[Place]) -> list[tuple[int, ...]]:
    """Return the steps of a threadblock, none of them fused, in the order of rounds."""
    return sorted(steps, key=lambda ops: places[ops[0]])
