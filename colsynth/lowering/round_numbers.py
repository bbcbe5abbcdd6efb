"""The number of the round of every transfer: as few as possible, or links relieved by more."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict

import numpy as np

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
    first: list[int] = []
    for needs in before:
        first.append(max((first[u] + apart for u, apart in needs.items()), default=0))
    end = max(first, default=0)
    last = [end] * len(transfers)
    for number in range(len(transfers) - 1, -1, -1):
        for u, apart in before[number].items():
            last[u] = min(last[u], last[number] - apart)
    most = max((link for ends in wires.values() for link, _ in ends), default=0)
    load = np.zeros((end + 1, most + 1), np.int64)
    busiest = np.zeros(end + 1, np.int64)
    taken: list[int] = []
    for number, transfer in enumerate(transfers):
        place = max((taken[u] + apart for u, apart in before[number].items()), default=0)
        if not transfer.is_local:
            links, times = np.array(wires[transfer.source, transfer.target]).T
            window = slice(place, last[number] + 1)
            after = (load[window, links] + transfer.count * times).max(axis=1)
            growth = np.maximum(after - busiest[window], 0)
            place += int(np.lexsort((after, growth))[0])
            load[place, links] += transfer.count * times
            busiest[place] = max(busiest[place], load[place, links].max())
        taken.append(place)
    return taken


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
