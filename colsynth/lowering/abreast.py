"""Fused steps for chains that advance abreast, as the rings of libraries do.

There, every rank sends its own data first, then passes on what the rank before it sent
first, and so on: no order of whole chains says that, since every chain begins before
another one ends. Transfers stand level by level, a relay behind others of its threadblock,
and its arrival moves there from its own place. Such threadblocks need room in their FIFOs,
a call each way round a ring; whether they have it, the verifier's execution decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from colsynth.lowering.hazards import Op
from colsynth.lowering.lanes import Hop
from colsynth.lowering.sorting import sort_after
from colsynth.model import Transfer


def relays(
    transfers: tuple[Transfer, ...], ops: tuple[Op, ...], needed: tuple[tuple[int, ...], ...]
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


def in_turn(hops: Sequence[Hop], needed: tuple[tuple[int, ...], ...]) -> list[Hop] | None:
    """Return the hops of a threadblock so that nothing overtakes, sends before receives.

    What is received from a peer stays in its order, and so does what is sent; a hop comes
    after what it needs. None where that is a circle.
    """
    home = {op: number for number, hop in enumerate(hops) for op in hop.ops}
    before: list[set[int]] = [
        {home[p] for op in hop.ops for p in needed[op] if p in home} - {number}
        for number, hop in enumerate(hops)
    ]
    arriving = sorted((hop.ops[0], n) for n, hop in enumerate(hops) if hop.recv is not None)
    leaving = sorted((hop.ops[-1], n) for n, hop in enumerate(hops) if hop.send is not None)
    for queue in (arriving, leaving):
        for (_, first), (_, second) in pairwise(queue):
            before[second].add(first)

    def place(number: int) -> tuple[bool, int]:
        """Put sends first, by their order."""
        return hops[number].send is None, hops[number].ops[-1]

    order = sort_after(before, place)
    return None if order is None else [hops[number] for number in order]
