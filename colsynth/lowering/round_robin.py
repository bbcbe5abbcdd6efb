"""Round-robin order: in every beat, each box sends to a different box.

A beat is the time of one transfer. Transfers are sorted by the beat in which they could begin,
where each segment of a tree follows the one before it by a beat. Transfers of one beat are
sorted by the distance between their box and the box of their tree's root, counted round all
boxes. So no two boxes send to the same box at a time, sums begin with the same boxes everywhere,
and data for other boxes goes before data that stays. Peers within a box are served round-robin
too. With a rotation, sums go round their peers instead (`colsynth.lowering.rotation`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from colsynth.lowering.columns import Columns, Ints
from colsynth.lowering.rotation import rotated_beats
from colsynth.model import Topology, Transfer


def round_robin(
    transfers: Sequence[Transfer],
    topology: Topology,
    lag: int = 0,
    spacing: int = 0,
    rotation: int = 0,
) -> list[int]:
    """Return the indices of the transfers in round-robin order.

    Parameters
    ----------
    transfers : sequence of Transfer
        Each after those it needs.
    topology : Topology
    lag : int
        Beats by which a phase begins later than the phase before it allows. A sum of n values
        takes n - 1 steps in a row, which can be longer than a beat. A transfer that waits for
        the sum delays whatever else its threadblock does.
    spacing : int
        Beats by which a transfer begins later than what it passes on allows, for the same reason.
    rotation : int
        Beats after which a sum goes on with the next peer; 0: all begin with the same one.
    """
    columns = Columns.of(transfers)
    source, target = columns.source, columns.target
    boxes = box_numbers(topology)
    box, count, size = np.array(boxes), 1 + max(boxes), topology.size
    root = box[_roots(columns)]
    inwards, outwards = (root - box[source]) % count, (box[target] - root) % count
    shift = np.where(columns.reduces > 0, np.where(inwards == 0, count, inwards), outwards)
    if rotation:
        begin = rotated_beats(transfers, columns, boxes, shift, rotation)
    else:
        begin = _beats(transfers, columns, lag, spacing) + columns.segment
    order: list[int] = np.lexsort(((target - source) % size, shift, begin)).tolist()
    return order


def _beats(transfers: Sequence[Transfer], columns: Columns, lag: int, spacing: int) -> Ints:
    """Return the beat in which each transfer of a first segment could begin."""
    phases = columns.phase.tolist()
    beats: list[int] = []
    for place, transfer in enumerate(transfers):
        begun = 0
        for other in transfer.after:
            beat = beats[other] + 1 + (lag if phases[other] < phases[place] else spacing)
            begun = beat if beat > begun else begun
        beats.append(begun)
    return np.array(beats, dtype=np.int64)


def box_numbers(topology: Topology) -> list[int]:
    """Return the number of every rank's box, from 0 on; GPUs outside all boxes share one."""
    number = {box: place for place, box in enumerate(sorted(set(topology.gpu_boxes)))}
    return [number[box] for box in topology.gpu_boxes]


def _roots(columns: Columns) -> Ints:
    """Return for each transfer the rank at which the chunks of its tree begin or end.

    Copies begin at the only rank that gets none, sums end at the only one that sends none.
    Where there is no such rank, as in what is no tree, the first of all stands for it.
    """
    trees, number = np.unique(
        columns.phase * (2 + columns.tree.max(initial=0)) + columns.tree, return_inverse=True
    )
    sums = columns.reduces > 0
    near = np.where(sums, columns.target, columns.source)
    far = np.where(sums, columns.source, columns.target)
    size = 1 + int(max(near.max(initial=0), far.max(initial=0)))
    begins, reached = np.zeros((2, len(trees), size), dtype=np.bool_)
    begins[number, near] = True
    reached[number, far] = True
    roots = begins & ~reached
    found = np.where(roots.any(axis=1), roots.argmax(axis=1), begins.argmax(axis=1))
    return np.asarray(found[number])
