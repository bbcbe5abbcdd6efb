"""What the transfers and sums of `build-rails` have in common, with their slots."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from colsynth.model import Origin, Slot, Transfer
from colsynth.runtimes.long_sums import additions
from colsynth.runtimes.profile import Profile
from colsynth.synthesis.baselines.rails import Rails
from colsynth.synthesis.baselines.unequal import Cells

Ends = tuple[int, ...]
"""The step behind which each piece is there, by its number; empty where all are from the start."""


@dataclass(slots=True)
class RailsWriter(ABC):
    """Transfers of `build-rails` so far.

    Parameters
    ----------
    rails : Rails
    cells : Cells
        By part, the pieces of each rail: those of all channels for the first segment come first.
    channels : int
        Channels of a segment; the last one may have fewer.
    profile : Profile
    calls : int
        Messages in which a part is sent, at most one for each piece.
    """

    rails: Rails
    cells: Cells
    channels: int
    profile: Profile
    calls: int = 1
    transfers: list[Transfer] = field(default_factory=list)

    @property
    @abstractmethod
    def rooms(self) -> int:
        """Places in scratch with room for a shard."""

    @abstractmethod
    def write(self) -> None:
        """Write down the collective."""

    @property
    def boxes(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each box, by their places."""
        return self.rails.boxes

    def _rooms_of_places(self, part: int) -> list[Slot]:
        """Return where a part lands from each place of the box, in the first rooms."""
        return [self.cells.slot(place, part) for place in range(self.rails.places)]

    def _rooms_of_boxes(self, part: int) -> list[Slot]:
        """Return where the sum of each box is, in the rooms behind those of places."""
        places = self.rails.places
        return [self.cells.slot(places + box, part) for box in range(len(self.boxes))]

    def _segments(self) -> list[range]:
        """Return the parts of all channels, a segment at a time."""
        parts = range(len(self.cells.counts))
        return [parts[first:][: self.channels] for first in parts[:: self.channels]]

    def _channel(self, part: int) -> int:
        """Return the channel of a part; those of a segment lie side by side."""
        return part % self.channels

    def _within(self, sources: int, targets: int) -> Iterator[tuple[int, int, int]]:
        """Yield boxes and two of their first places, in rounds with one target for each."""
        for distance in range(1, self.rails.places):
            for place in range(sources):
                for number, box in enumerate(self.boxes):
                    target = (place + distance) % len(box)
                    if place < len(box) > distance and target < targets:
                        yield number, place, target

    def _arrive(
        self,
        source: int,
        target: int,
        chunks: range,
        origin: Origin,
        landing: Slot,
        into: Slot,
        landed: dict[Slot, Ends],
    ) -> None:
        """Send a shard within a box; where sends add, the first is added to the GPU's own."""
        own = Slot("i", chunks.start)
        adds = self.profile.fuses and not landed
        where = into if adds else landing
        operand = own if adds else None
        landed[where] = self._send(source, target, chunks, origin, own, where, (), operand)

    def _parts(self, first: int, landed: dict[Slot, Ends], into: Slot) -> dict[Slot, Ends]:
        """Return what a GPU adds up: its own, unless the first arrival has it already."""
        return landed if into in landed else {Slot("i", first): ()} | landed

    def _sum(
        self,
        rank: int,
        chunks: range,
        origin: Origin,
        parts: dict[Slot, Ends],
        into: Slot,
        *,
        whole: bool = False,
    ) -> Ends:
        """Add up parts, each there behind some steps; the first is copied unless it is in place.

        Each piece is added up by itself, or if whole, those of a call in one step: sums of few
        parts take as long as a step does.
        """
        found: list[int] = []
        (first, _), *others = parts.items()
        added = list(additions(others, (into, ()), self.profile.longest_chain))
        cuts = min(self.calls, len(chunks)) if whole else len(chunks)
        for own in self._slices(len(chunks), cuts):
            where = rank, chunks.start, origin, own
            last = parts[first][own]
            if first != into:
                last = self._local(*where, first, into, last, adds=False)
            for (part, ends), (total, before) in added:
                after = (*last, *ends[own], *before[own])
                last = self._local(*where, part, total, after, adds=True)
            found += last
        return tuple(found)

    def _local(
        self,
        rank: int,
        chunk: int,
        origin: Origin,
        own: slice,
        part: Slot,
        into: Slot,
        after: Ends,
        *,
        adds: bool,
    ) -> Ends:
        """Append a copy of some pieces within a GPU, or their addition; return its numbers."""
        read, write = part.behind(own.start), into.behind(own.start)
        count: int = own.stop - own.start
        where = rank, rank, chunk + own.start, count
        needed, operand = tuple(sorted(set(after))), write if adds else None
        self.transfers.append(Transfer(*where, adds, needed, origin, read, write, operand))
        return (len(self.transfers) - 1,) * count

    @staticmethod
    def _slices(count: int, parts: int) -> Iterator[slice]:
        """Yield pieces in so many parts, which differ by one piece; some may have none."""
        for part in range(parts):
            yield slice(part * count // parts, (part + 1) * count // parts)

    def _send(
        self,
        source: int,
        target: int,
        chunks: range,
        origin: Origin,
        read: Slot,
        write: Slot,
        after: Ends = (),
        operand: Slot | None = None,
    ) -> Ends:
        """Append transfers of all pieces, which may add to an operand; return their numbers."""
        found: list[int] = []
        for own in self._slices(len(chunks), min(self.calls, len(chunks))):
            where = source, target, chunks[own.start], own.stop - own.start
            slots = read.behind(own.start), write.behind(own.start)
            added = operand and operand.behind(own.start)
            needed = tuple(sorted(set(after[own])))
            self.transfers.append(Transfer(*where, bool(added), needed, origin, *slots, added))
            found += [len(self.transfers) - 1] * (own.stop - own.start)
        return tuple(found)
