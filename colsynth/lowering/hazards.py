"""Which operations of a rank must wait for which, from the slots they touch.

Two operations on one rank conflict when they touch the same memory and one writes it;
the later one in the global order must then come after the earlier one. A conflict that
is already ordered, through other waits or through messages (a rank cannot overwrite what
it sent before the answer to it comes back), needs no wait. In-place calls make input and
output share memory, so slots are compared by `Layout.in_place_alias` where they may.
"""

from __future__ import annotations

from itertools import repeat
from typing import NamedTuple

import numpy as np

from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import BUFFERS, Columns, Ints, rows, tuples
from colsynth.lowering.joined_sums import wait_once
from colsynth.lowering.layout import Layout

Waits = tuple[tuple[int, ...], ...]
"""Per operation, the earlier ones it waits for, ascending."""


class Op(NamedTuple):
    """What one rank does for one transfer.

    Parameters
    ----------
    transfer : int
    rank : int
    sends, receives : bool
        Both False for a local operation.
    """

    transfer: int
    rank: int
    sends: bool
    receives: bool


def operations(columns: Columns) -> tuple[Op, ...]:
    """Return the operations in the global order: a send right before its receive."""
    transfer = columns.of_op
    moves = ~columns.local[transfer]
    first = columns.opens
    rank = np.where(first, columns.source[transfer], columns.target[transfer])
    fields = (transfer, rank, moves & first, moves & ~first)
    values = zip(*(field.tolist() for field in fields), strict=True)
    return tuple(map(tuple.__new__, repeat(Op), values))


def waits(columns: Columns, ranges: ChunkRanges, layout: Layout, in_place: bool) -> Waits:
    """Return, per operation, the earlier operations of its rank it must wait for.

    None of them is implied by the others or by messages.
    """
    from colsynth.kernels.hazards import components, conflicts, direct

    of_op = columns.of_op
    accesses = _accesses(columns, ranges, len(of_op), layout, in_place)
    first, other = conflicts(*accesses)
    begins, earlier = rows([transfer.after for transfer in columns.transfers])
    home = components(begins, earlier, ~(columns.local & (np.diff(begins) == 0)))
    receives = ~columns.local[of_op] & ~columns.opens
    kept = direct(first, other, receives, home[of_op])
    before = np.concatenate([[0], np.cumsum(kept)])
    return wait_once(columns, tuples(before[first], other[kept]))


def _accesses(
    columns: Columns, ranges: ChunkRanges, ops: int, layout: Layout, in_place: bool
) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Return the memory cells that operations read and write, as `conflicts` takes them.

    A cell is a rank and a slot of it that stands for a range of chunks.
    """
    sending = columns.first_op
    receiving = sending + ~columns.local
    parts = []
    for slots, op, rank in (
        (columns.read, sending, columns.source),
        (columns.operand, receiving, columns.target),
        (columns.write, receiving, columns.target),
    ):
        each, buffer, offset = ranges.cells(columns, slots)
        place = rank[each], buffer, offset
        if in_place and not layout.keeps_input:
            place = rank[each], *layout.in_place_aliases(*place)
        parts.append((op[each], place))
    return _by_operation(parts, ops)


def _by_operation(
    parts: list[tuple[Ints, tuple[Ints, Ints, Ints]]], ops: int
) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Return accesses, the last part of which writes, sorted by operation, cells numbered."""
    span = 1 + max((int(offset.max(initial=0)) for _, (_, _, offset) in parts), default=0)
    keys = [(rank * len(BUFFERS) + buffer) * span + offset for _, (rank, buffer, offset) in parts]
    known, cell = np.unique(np.concatenate(keys), return_inverse=True)
    op = np.concatenate([op for op, _ in parts])
    written = len(keys[-1])
    found = []
    for chosen in (slice(0, len(op) - written), slice(len(op) - written, len(op))):
        sort = np.argsort(op[chosen], kind="stable")
        first = np.searchsorted(op[chosen][sort], np.arange(ops + 1))
        found += [first, cell[chosen][sort]]
    return found[0], found[1], found[2], found[3], len(known)
