"""Order of paired threadblocks, in rounds: sends and receives, or the other way round, then sums.

A threadblock with one connection in each direction is slow in the global order of transfers: it
receives before it sends where its peer does the same, and so on round the box, until all do one
after the other what they could do at once. In a round, each connection is used once and no send
waits for an arrival, so all sends may go first. This cannot deadlock where a FIFO holds all calls
of a step: every send then finds its FIFO empty. Where it does not, every other threadblock receives
first. Each then sends what its peer receives at the same time, and half as many use the links.

Where all sends go first, threadblocks of every other channel begin with their sums after the sends
of the next round. Otherwise all would send at the same time, and links would idle while they add.
"""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.lowering.allocation import PlacedThreadblock
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


def in_rounds(
    steps: Sequence[tuple[int, ...]], places: Sequence[Place], receives_first: bool
) -> list[tuple[int, ...]]:
    """Return the steps of a threadblock, none of them fused, in the order of rounds."""
    order = (1, 0, 2) if receives_first else (0, 1, 2)

    def place(ops: tuple[int, ...]) -> Place:
        number, kind, op = places[ops[0]]
        return number, order[kind], op

    return sorted(steps, key=place)


def sends_before_sums(
    steps: Sequence[tuple[int, ...]], places: Sequence[Place], needed: Sequence[Sequence[int]]
) -> list[tuple[int, ...]]:
    """Return steps in rounds with each round's sums behind the sends of the next one.

    Those that wait for something of a round stay behind its sums. So do later sends: their FIFOs
    may be full until somebody has what the sums give.
    """
    found: list[tuple[int, ...]] = []
    sums: list[tuple[int, ...]] = []
    current = following = -1
    for step in in_rounds(steps, places, receives_first=False):
        number, kind, op = places[step[0]]
        if kind == _LOCAL and number != current:
            found += sums
            current, following, sums = number, -1, []
        elif kind != _LOCAL and sums:
            waits = any(places[other][0] >= current for other in needed[op])
            following = number if following < 0 else following
            if kind != _SEND or waits or number != following:
                found += sums
                sums = []
        (sums if kind == _LOCAL else found).append(step)
    return found + sums


def receivers_first(blocks: Sequence[PlacedThreadblock]) -> frozenset[int]:
    """Return the threadblocks (indices) that receive before they send in every round.

    Along a path or circle of connections, every other threadblock does: each then receives what
    the one before it sends at the same time. Not all on a circle do, so none waits for itself.
    """
    receiver = {(b.channel, b.recv, b.rank): n for n, b in enumerate(blocks) if b.recv is not None}
    after = [
        -1 if b.send is None else receiver.get((b.channel, b.rank, b.send), -1) for b in blocks
    ]
    later = set(after)
    seen: set[int] = set()
    found: set[int] = set()
    for first in sorted(range(len(blocks)), key=lambda n: (n in later, n)):
        number, second = first, blocks[first].channel % 2 == 1
        while number >= 0 and number not in seen:
            seen.add(number)
            if second:
                found.add(number)
            number, second = after[number], not second
    return frozenset(found)
