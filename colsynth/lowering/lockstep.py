"""Fused steps for chains that advance in lockstep, as the rings of libraries do.

In such a ring, every rank first sends its own data, then forwards what its predecessor sent
first, and so on. No order of whole chains expresses that, since every chain begins before
another one ends. So transfers are ordered level by level. A relay follows other transfers of
its threadblock, and its arrival moves next to it. This needs FIFOs that hold one call for every
rank of a ring; the verifier's abstract execution decides whether they do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colsynth.lowering.columns import Columns, Ints, Slots
from colsynth.lowering.sorting import sort_after

Rows = tuple[Ints, Ints]
"""Lists of numbers one after the other, `colsynth.lowering.columns.rows`."""


def relays(columns: Columns, waits: Rows) -> Ints:
    """Return for each operation the send that may share its step; -1 for none.

    The send passes on just what arrives, from where it arrives, and waits for nothing that
    comes after it. An arrival that is added up may be sent on as a sum or, complete, as a copy.

    Parameters
    ----------
    columns : Columns
    waits : pair of int arrays
        What each operation waits for, ascending.
    """
    from colsynth.kernels.sorting import pair_relays

    of, moves = columns.of_op, ~columns.local[columns.of_op]
    arrivals = np.flatnonzero(moves & ~columns.opens)
    sends = np.flatnonzero(moves & columns.opens)
    rank = np.concatenate([columns.target[of[arrivals]], columns.source[of[sends]]])
    moved = np.concatenate([of[arrivals], of[sends]])
    key = rank
    for column in (columns.chunk, columns.count):
        key = key * (1 + int(column.max(initial=0))) + column[moved]
    _, content = np.unique(key, return_inverse=True)
    entering, passing = content[: len(arrivals)], content[len(arrivals) :]
    order = np.argsort(passing, kind="stable")
    first = np.searchsorted(passing[order], np.arange(int(content.max(initial=-1)) + 2))
    latest = np.full(len(of), -1)
    np.maximum.at(latest, np.repeat(np.arange(len(of)), np.diff(waits[0])), waits[1])
    slot = np.where(columns.opens, *(side[of] for side in _codes(columns.read, columns.write)))
    found: Ints = pair_relays(
        arrivals, entering, first, sends[order], latest, slot, columns.reduces[of] > 0
    )
    return found


def _codes(*sides: Slots) -> Iterator[Ints]:
    """Yield slots as numbers, equal ones as equal numbers."""
    span = 1 + max(int(offset.max(initial=0)) for _, offset in sides)
    yield from (buffer * span + offset for buffer, offset in sides)


def in_send_order(block: Ints, steps: Ints, columns: Columns, waits: Rows) -> Ints | None:
    """Return the order of the steps of all threadblocks so that nothing overtakes, sends first.

    What is received from a peer stays in its order, and so does what is sent; a step comes
    after what it needs. None where that is a circle.

    Parameters
    ----------
    block : int64 (s,)
        The threadblock of each step, ascending.
    steps : int64 (s, 2)
        The first and the last operation of each step; a fused step has two.
    columns : Columns
    waits : pair of int arrays
        What each operation waits for.
    """
    first, last = steps.T
    moves = ~columns.local[columns.of_op]
    receives, sends = (moves & ~columns.opens)[first], (moves & columns.opens)[last]
    home = np.full(len(moves), -1)
    home[first] = home[last] = np.arange(len(steps))
    waiter = home[np.repeat(np.arange(len(moves)), np.diff(waits[0]))]
    other = home[waits[1]]
    inside = (waiter >= 0) & (other >= 0) & (waiter != other)
    inside &= block[waiter] == block[other]
    pairs = [(waiter[inside], other[inside])]
    for which, by in ((receives, first), (sends, last)):
        queue = np.flatnonzero(which)
        queue = queue[np.lexsort((by[queue], block[queue]))]
        follows = block[queue[1:]] == block[queue[:-1]]
        pairs.append((queue[1:][follows], queue[:-1][follows]))
    waiters, others = (np.concatenate(side) for side in zip(*pairs, strict=True))
    place = (block * 2 + ~sends) * len(moves) + last
    return sort_after(waiters, others, place)
