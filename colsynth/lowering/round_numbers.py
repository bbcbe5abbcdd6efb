"""The number of the round of every transfer: as few as possible, or links relieved by more."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict

import numpy as np

from colsynth.lowering.columns import column, rows
from colsynth.model import Transfer

Wires = dict[tuple[int, int], tuple[tuple[int, int], ...]]
"""By (source, target), the links of a message and the time of a chunk on each, in any unit."""
Before = list[dict[int, int]]
"""Per transfer, earlier ones and the least distance in rounds."""


def fewest(transfers: tuple[Transfer, ...], before: Before, wires: Wires) -> list[int]:
    """Return rounds as few as the longest chain allows.

    A transfer takes the round between those that its chain leaves open in which the busiest link
    gains least.
    """
    from colsynth.kernels.round_numbers import least_loaded

    number = {pair: place for place, pair in enumerate(wires)}
    pair = [-1 if t.is_local else number[t.source, t.target] for t in transfers]
    begins, other = rows([list(needs) for needs in before])
    _, apart = rows([list(needs.values()) for needs in before])
    wire_begins, link = rows([[link for link, _ in ends] for ends in wires.values()])
    _, time = rows([[time for _, time in ends] for ends in wires.values()])
    links = 1 + int(link.max(initial=0))
    moved = np.array(pair, dtype=np.int64), column(transfers, "count")
    found: list[int] = least_loaded(
        *(begins, other, apart), *moved, *(wire_begins, link, time, links)
    ).tolist()
    return found


def spread_out(
    transfers: tuple[Transfer, ...], before: Before, wires: Wires, parts: int
) -> list[int]:
    """Return rounds in which a link carries at most 1 / `parts` of the busiest link's load.

    A list schedule: in every round, what may be sent is taken in the order of the longest chain
    behind it, while its links have room. A transfer larger than that goes alone.
    """
    behind, height = _behind(before)
    room = -(-_busiest(transfers, wires) // parts)
    missing, earliest = [len(needs) for needs in before], [0] * len(transfers)
    taken = [0] * len(transfers)
    coming: defaultdict[int, list[int]] = defaultdict(list)
    coming[0] = [number for number, count in enumerate(missing) if not count]
    place = 0
    while coming:
        ready = [(-height[number], number) for number in coming.pop(place, ())]
        heapq.heapify(ready)
        load: Counter[int] = Counter()
        while ready:
            _, number = heapq.heappop(ready)
            t = transfers[number]
            mine = [(link, t.count * time) for link, time in wires.get((t.source, t.target), ())]
            if any(load[link] and load[link] + time > room for link, time in mine):
                coming[place + 1].append(number)
                continue
            load.update(dict(mine))
            taken[number] = place
            for other, apart in behind[number]:
                earliest[other] = max(earliest[other], place + apart)
                missing[other] -= 1
                if not missing[other]:
                    if earliest[other] == place:
                        heapq.heappush(ready, (-height[other], other))
                    else:
                        coming[earliest[other]].append(other)
        place += 1
    return taken


def _behind(before: Before) -> tuple[list[list[tuple[int, int]]], list[int]]:
    """Return what comes after each transfer and how far, and the longest chain behind it."""
    behind: list[list[tuple[int, int]]] = [[] for _ in before]
    height = [0] * len(before)
    for number in range(len(before) - 1, -1, -1):
        for u, apart in before[number].items():
            behind[u].append((number, apart))
            height[u] = max(height[u], height[number] + apart)
    return behind, height


def _busiest(transfers: tuple[Transfer, ...], wires: Wires) -> int:
    """Return the load of the busiest link, all rounds together."""
    whole: Counter[int] = Counter()
    for t in transfers:
        for link, time in wires.get((t.source, t.target), ()):
            whole[link] += t.count * time
    return max(whole.values(), default=0)
