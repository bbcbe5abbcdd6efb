"""Fused steps for chains that advance in lockstep, as the rings of libraries do.

In such a ring, every rank first sends its own data, then forwards what its predecessor sent
first, and so on. No order of whole chains expresses that, since every chain begins before
another one ends. So transfers are ordered level by level. A relay follows other transfers of
its threadblock, and its arrival moves next to it. This needs FIFOs that hold one call for every
rank of a ring; the verifier's abstract execution decides whether they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from colsynth.lowering.allocation import PlacedStep
from colsynth.lowering.hazards import Op
from colsynth.lowering.sorting import sort_after
from colsynth.model import Transfer


def relays(
    transfers: Sequence[Transfer], ops: tuple[Op, ...], needed: tuple[tuple[int, ...], ...]
) -> dict[int, int]:
    """Map each arrival to the send that may share its step.

    The send passes on just what arrives, from where it arrives, and waits for nothing that
    comes after it. An arrival that is added up may be sent on as a sum or, complete, as a copy.
    """
    leaving: dict[tuple[int, int, int], list[int]] = {}
    for number in range(len(ops) - 1, -1, -1):
        transfer = transfers[ops[number].transfer]
        if ops[number].sends:
            key = transfer.source, transfer.chunk, transfer.count
            leaving.setdefault(key, []).append(number)
    found: dict[int, int] = {}
    for arrival, op in enumerate(ops):
        transfer = transfers[op.transfer]
        departures = leaving.get((op.rank, transfer.chunk, transfer.count), [])
        while departures and departures[-1] < arrival:
            departures.pop()
        if not op.receives or not departures:
            continue
        following = transfers[ops[departures[-1]].transfer]
        copies = following.reduces and not transfer.reduces
        ready = all(other <= arrival for other in needed[departures[-1]])
        if transfer.write == following.read and ready and not copies:
            found[arrival] = departures.pop()
    return found


def in_send_order(
    steps: Sequence[PlacedStep], needed: tuple[tuple[int, ...], ...]
) -> list[PlacedStep] | None:
    """Return the steps of a threadblock so that nothing overtakes, sends first.

    What is received from a peer stays in its order, and so does what is sent; a step comes
    after what it needs. None where that is a circle.
    """
    home = {op: number for number, step in enumerate(steps) for op in step.ops}
    before: list[set[int]] = [
        {home[p] for op in step.ops for p in needed[op] if p in home} - {number}
        for number, step in enumerate(steps)
    ]
    arriving = sorted((step.ops[0], n) for n, step in enumerate(steps) if step.recv is not None)
    leaving = sorted((step.ops[-1], n) for n, step in enumerate(steps) if step.send is not None)
    for queue in (arriving, leaving):
        for (_, first), (_, second) in pairwise(queue):
            before[second].add(first)

    def place(number: int) -> tuple[bool, int]:
        """Put sends first, by their order."""
        return steps[number].send is None, steps[number].ops[-1]

    order = sort_after(before, place)
    return None if order is None else [steps[number] for number in order]
