"""Who adds what up: arrivals, sums that are passed on, and contributions that leave alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.model import Transfer

Place = tuple[int, int]
"""A rank and a chunk."""


def contributions(
    transfers: Sequence[Transfer], ranges: ChunkRanges
) -> tuple[dict[Place, list[int]], set[Place], dict[Place, int]]:
    """Return the sums of a program, by rank and first chunk of a range.

    Parameters
    ----------
    transfers : sequence of Transfer
    ranges : ChunkRanges

    Returns
    -------
    arrivals : dict
        Contributions placed so far (none), and how many there will be.
    passed : set
        Sums that their rank passes on.
    own_after : dict
        Where a rank adds up but sends its own contribution by itself: after how many others
        its own is added.
    """
    arrivals: dict[Place, list[int]] = {}
    passed: set[Place] = set()
    alone: set[Place] = set()
    lower: Counter[Place] = Counter()
    for transfer in transfers:
        if not transfer.reduces:
            continue
        source, target = transfer.source, transfer.target
        for chunk in ranges.within(transfer.chunk, transfer.count):
            arrivals.setdefault((target, chunk), [0, 0])[1] += 1
            (passed if transfer.after else alone).add((source, chunk))
            if source < target:
                lower[target, chunk] += 1
    own_after = {key: max(1, lower[key]) for key in sorted(alone & arrivals.keys())}
    return arrivals, passed, own_after


class Forwarded:
    """Contributions that are passed on as they are, not as a part of a sum.

    Where a rank sends its own contribution by itself, what it sends behind an arrival is what
    arrived.

    Parameters
    ----------
    transfers : sequence of Transfer
    alone : collection of (int, int)
        Ranks and chunks where a rank sends its own contribution by itself.

    Attributes
    ----------
    givers : dict
        Whose contribution a transfer passes on, by its number.
    kept : dict
        Whose contributions each rank passes on.
    """

    def __init__(self, transfers: Sequence[Transfer], alone: Collection[Place]) -> None:
        self.givers: dict[int, int] = {}
        self.kept: dict[int, set[int]] = {}
        for number, transfer in enumerate(transfers) if alone else ():
            if transfer.reduces and transfer.after and (transfer.source, transfer.chunk) in alone:
                arrival = transfer.after[0]
                giver = self.givers.get(arrival, transfers[arrival].source)
                self.givers[number] = giver
                self.kept.setdefault(transfer.source, set()).add(giver)


def beginnings(
    transfers: Sequence[Transfer],
    ranges: ChunkRanges,
    forwarded: Forwarded,
    alone: Collection[Place],
    *,
    overwrites: bool,
) -> dict[Place, int]:
    """Return the transfers that may arrive where a sum belongs, before it is added up.

    Each brings the contribution of the last rank that gives one, and that rank is not the one that
    adds up. Nobody passes it on from there.

    Parameters
    ----------
    transfers : sequence of Transfer
    ranges : ChunkRanges
    forwarded : Forwarded
    alone : collection of (int, int)
        As of `Forwarded`.
    overwrites : bool
        Whether the arrival overwrites what the rank sends, which must have left before.
    """
    left: dict[Place, int] = {}
    arrived: defaultdict[Place, list[tuple[int, int]]] = defaultdict(list)
    for number, transfer in enumerate(transfers) if alone else ():
        for chunk in ranges.within(transfer.chunk, transfer.count) if transfer.reduces else ():
            giver = forwarded.givers.get(number, transfer.source)
            arrived[transfer.target, chunk].append((giver, number))
            if giver == transfer.source:
                left[giver, chunk] = number
    found: dict[Place, int] = {}
    for rank, chunk in alone:
        giver, number = max(arrived[rank, chunk])
        stays = giver in forwarded.kept.get(rank, ())
        if giver > rank and not stays and not (overwrites and number < left[rank, chunk]):
            found[rank, chunk] = number
    return found
