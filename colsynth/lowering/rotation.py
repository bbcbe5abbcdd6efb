"""Beats in which sums of several peers go round them, as in a Latin square.

A GPU adds up the shards of its n peers one after the other. Where all its sums begin with the same
peer, the threadblocks of the last one wait at the start, and nothing is left to do at the end for
those of the first. So sums go round: of n times `rotation` segments, those of each beat begin with
the peer where another one goes on, and a sum goes on `rotation` beats later. All threadblocks then
begin at once and end together. `rotation` is best near the number of threadblocks that receive from
a peer, so that a threadblock seldom waits for the sum before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colsynth.lowering.columns import Columns, Ints
from colsynth.model import Transfer


def rotated_beats(
    transfers: Sequence[Transfer], columns: Columns, boxes: Sequence[int], rotation: int
) -> Ints:
    """Return the beat of each transfer; those that wait for others come right behind them.

    Parameters
    ----------
    transfers : sequence of Transfer
        Each after those it needs.
    columns : Columns
        Of these.
    boxes : sequence of int
        The number of every rank's box.
    rotation : int
        One or more.
    """
    box = np.array(boxes)
    order = np.argsort(box, kind="stable")
    many = np.bincount(box)
    place = np.empty(len(box), dtype=np.int64)
    place[order] = np.arange(len(box)) - np.repeat(np.cumsum(many) - many, many)
    size = many[box[columns.target]]
    away = (place[columns.target] - place[columns.source]) % size
    turns = np.maximum(size - 1, 1) * rotation
    first, within = columns.segment // turns * turns, columns.segment % turns
    beats: list[int] = (first + (within + (away - 1) * rotation) % turns).tolist()
    for number, transfer in enumerate(transfers):
        for other in transfer.after:
            beats[number] = max(beats[number], beats[other] + 1)
    return np.array(beats, dtype=np.int64)
