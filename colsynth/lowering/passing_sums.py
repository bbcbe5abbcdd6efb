"""Sums that a rank only passes on: nobody needs them but the send in the same step."""

from __future__ import annotations

import numpy as np

from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import BUFFERS, SCRATCH, Bools, Columns, Ints


def passing_sums(columns: Columns, ranges: ChunkRanges, sums: Ints, sends: Ints) -> Bools:
    """Return whether nothing reads each sum but one send before it is overwritten.

    Nor may it be a part of the result: it lies in scratch, or is overwritten.

    Parameters
    ----------
    columns : Columns
    ranges : ChunkRanges
    sums, sends : int arrays
        Transfers that add up, and those that send each sum.
    """
    parts = [
        (*ranges.cells(columns, columns.read), columns.source),
        (*ranges.cells(columns, columns.operand), columns.target),
        (*ranges.cells(columns, columns.write), columns.target),
    ]
    number = np.concatenate([each for each, _, _, _ in parts])
    buffer = np.concatenate([buffer for _, buffer, _, _ in parts])
    span = 1 + max(int(offset.max(initial=0)) for _, _, offset, _ in parts)
    cell = np.concatenate(
        [(rank[each] * len(BUFFERS) + buffer) * span + at for each, buffer, at, rank in parts]
    )
    writes = np.arange(len(number)) >= len(number) - len(parts[-1][0])
    order = np.lexsort((writes, number, cell))
    number, cell, writes, buffer = number[order], cell[order], writes[order], buffer[order]
    # The last write so far; it may be one of another cell.
    latest = np.maximum.accumulate(np.where(writes, np.arange(len(number)), -1))
    before = np.concatenate([[-1], latest[:-1]])
    reads = ~writes & (before >= 0)
    reads[reads] = cell[before[reads]] == cell[reads]
    count = len(columns.transfers)
    pairs = np.unique(number[before[reads]] * count + number[reads])
    readers = np.bincount(pairs // count, minlength=count)
    reader = np.full(count, -1)
    reader[pairs // count] = pairs % count
    final = latest[np.append(cell[1:] != cell[:-1], True)]
    final = final[final >= 0]
    lasting = np.zeros(count, dtype=np.bool_)
    lasting[number[final[buffer[final] != SCRATCH]]] = True
    only: Bools = (readers[sums] == 1) & (reader[sums] == sends) & ~lasting[sums]
    return only
