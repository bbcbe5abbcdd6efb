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
    transfers: Sequence[Transfer],
    columns: Columns,
    boxes: Sequence[int],
    shift: Ints,
    rotation: int,
) -> Ints:
    """Return the beat of each transfer.

    Sums for other boxes go first, and leave in the next round of all peers, one each beat. The last
    of them would arrive late: their GPUs add up the data of their own box before, with the first
    sums that stay.

    Parameters
    ----------
    transfers : sequence of Transfer
        Each after those it needs.
    columns : Columns
        Of these.
    boxes : sequence of int
        The number of every rank's box.
    shift : int array
        For each transfer the distance between its box and that of its root; the number of boxes
        within one.
    rotation : int
        One or more.
    """
    away, rounds = _round_the_box(columns, boxes)
    rounds *= rotation
    several, segment = max(boxes) > 0, columns.segment
    segments, turn = 1 + int(segment.max(initial=0)), np.maximum(shift - 1, 0)
    early = np.maximum(segments - rounds // 2, 0) if several else np.full(len(turn), segments)
    late = segment >= early
    stays = several & (turn == max(boxes))
    own = np.where(late, segment - early, segment + segments - early)
    number = turn * segments + np.where(stays, own, segment)
    beats: list[int] = (number // rounds * rounds + (number + away * rotation) % rounds).tolist()
    behind = ((turn + 2) * segments - early - 1) // rounds * rounds + rounds + segment - early
    least = np.where(late & (turn + 1 == max(boxes)), behind, 0).tolist()
    later = zip(transfers, rounds.tolist(), segment.tolist(), strict=True)
    for at, (transfer, beat, place) in enumerate(later):
        if transfer.after:
            last = max(beats[other] for other in transfer.after)
            beats[at] = max((last // beat + 1) * beat + place % beat, least[at])
    return np.array(beats, dtype=np.int64)


def _round_the_box(columns: Columns, boxes: Sequence[int]) -> tuple[Ints, Ints]:
    """Return how far each transfer goes round its box, less one, and how many peers there are."""
    box = np.array(boxes)
    order, many = np.argsort(box, kind="stable"), np.bincount(box)
    place = np.empty(len(box), dtype=np.int64)
    place[order] = np.arange(len(box)) - np.repeat(np.cumsum(many) - many, many)
    size = many[box[columns.target]]
    away: Ints = (place[columns.target] - place[columns.source]) % size - 1
    peers: Ints = np.maximum(size - 1, 1)
    return away, peers
