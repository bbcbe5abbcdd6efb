"""The transfers of a timed schedule one by one: what each must wait for, what travels together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from colsynth.model import Direction, TimedSchedule
from colsynth.store.rows import transfer_rows


class Move(NamedTuple):
    """A transfer of one chunk, in the order of a timed schedule.

    Parameters
    ----------
    phase : int
    start, end : int
        Ticks.
    hop : int
    source, target : int
        Ranks.
    chunk : int
    """

    phase: int
    start: int
    end: int
    hop: int
    source: int
    target: int
    chunk: int


@dataclass(frozen=True, slots=True)
class Leg:
    """A transfer of adjacent chunks.

    Parameters
    ----------
    phase, source, target, chunk, count : int
    reduces : bool
    after : tuple of int
        Earlier legs that bring to `source` what it must hold.
    start, end : int
        Ticks: when the first chunk leaves, when the last is there.
    needed : int or None
        When the target first passes on one of the chunks; None is never.
    """

    phase: int
    source: int
    target: int
    chunk: int
    count: int
    reduces: bool
    after: tuple[int, ...]
    start: int
    end: int
    needed: int | None


def moves(schedule: TimedSchedule) -> list[Move]:
    """Return all transfers, sorted by start, then phase, then hop."""
    found: list[Move] = []
    for number, phase in enumerate(schedule.phases):
        rows = zip(*(column.tolist() for column in transfer_rows(phase)), strict=True)
        found += [Move(number, *row) for row in rows]
    return sorted(found, key=lambda move: (move.start, move.phase, move.hop))


def legs(schedule: TimedSchedule, most: int, within: int) -> tuple[Leg, ...]:
    """Return all transfers, adjacent chunks together where nobody is held up by it.

    Parameters
    ----------
    schedule : TimedSchedule
    most : int
        Chunks of one transfer.
    within : int
        Chunks on either side of a multiple of it stay apart.
    """
    inwards = tuple(phase.direction is Direction.IN for phase in schedule.phases)
    ordered = moves(schedule)
    journal = _Journal(inwards, most, within, _departures(ordered))
    for move in ordered:
        journal.add(move)
    return tuple(journal.legs)


Place = tuple[int, int, int]
"""Phase, rank, chunk."""


def _departures(ordered: Iterable[Move]) -> dict[Place, int]:
    """Return when each chunk first leaves each rank, phase by phase."""
    first: dict[Place, int] = {}
    for move in ordered:
        first.setdefault((move.phase, move.source, move.chunk), move.start)
    return first


@dataclass(slots=True)
class _Journal:
    """Legs so far, and which of them brought what.

    Parameters
    ----------
    inwards : tuple of bool
        Whether each phase reduces.
    most, within : int
    departures : dict
    legs : list of Leg
    arrivals : dict
        Legs that brought a chunk to a rank in a phase, by `Place`.
    latest : dict
        Last leg of each connection, by (phase, source, target).
    """

    inwards: tuple[bool, ...]
    most: int
    within: int
    departures: dict[Place, int]
    legs: list[Leg] = field(default_factory=list)
    arrivals: dict[Place, list[int]] = field(default_factory=dict)
    latest: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def add(self, move: Move) -> None:
        """Append a transfer, or let it travel with the one before it."""
        connection = move.phase, move.source, move.target
        leg = Leg(
            *connection,
            move.chunk,
            1,
            self.inwards[move.phase],
            self._brought(move),
            move.start,
            move.end,
            self._needed(move),
        )
        last = self.latest.get(connection)
        if last is not None and self._joins(self.legs[last], leg):
            self.legs[last] = _joined(self.legs[last], leg)
        else:
            last = self.latest[connection] = len(self.legs)
            self.legs.append(leg)
        arrivals = self.arrivals.setdefault((move.phase, move.target, move.chunk), [])
        if leg.reduces or not arrivals:
            arrivals.append(last)

    def _brought(self, move: Move) -> tuple[int, ...]:
        """Return the legs that brought a chunk to where it leaves.

        A copy that no copy brought is what the rank held at first or has added up.
        """
        for phase in range(move.phase, -1, -1):
            found = self.arrivals.get((phase, move.source, move.chunk))
            if found:
                return tuple(sorted(set(found)))
        return ()

    def _needed(self, move: Move) -> int | None:
        """Return when the target first passes on what the move brings."""
        times = [
            self.departures[place]
            for phase in range(move.phase, len(self.inwards))
            if (place := (phase, move.target, move.chunk)) in self.departures
        ]
        return min(times, default=None)

    def _joins(self, first: Leg, second: Leg) -> bool:
        """Whether two legs of one connection can be one and nobody is held up."""
        return (
            second.chunk == first.chunk + first.count
            and second.chunk % self.within != 0
            and first.count < self.most
            and (first.needed is None or second.end <= first.needed)
            and all(self.legs[other].end <= first.start for other in second.after)
        )


def _joined(first: Leg, second: Leg) -> Leg:
    needed = [time for time in (first.needed, second.needed) if time is not None]
    return replace(
        first,
        count=first.count + second.count,
        after=tuple(sorted({*first.after, *second.after})),
        end=second.end,
        needed=min(needed, default=None),
    )
