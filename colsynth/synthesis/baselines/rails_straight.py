"""The transfers and sums of `build-rails` for an allreduce in one shot at each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colsynth.model import Direction, Origin, Slot
from colsynth.synthesis.baselines.rails_writer import Ends, RailsWriter


@dataclass(slots=True)
class StraightWriter(RailsWriter):
    """Transfers of an allreduce so far in which every GPU adds up whole messages.

    In its scratch, a GPU has room for the message of each place of its box, and for the sum of each
    box. All GPUs of a box add up the same messages in the same order, beginning with that of the
    last place, and all boxes add up their sums, beginning with the last. So all get the same bits.
    The sum of two is the same either way.

    Parameters
    ----------
    aside : bool
        Whether input may not be overwritten by who waits for its sends: it is sent from scratch.
    """

    aside: bool = False

    @property
    def rooms(self) -> int:
        """Places in scratch with room for a message."""
        return self.rails.places + len(self.boxes)

    def write(self) -> None:
        """Write down an allreduce: all parts send before any is added up."""
        parts = [(number, ranges[0]) for number, ranges in enumerate(self.cells.ranges)]
        arrived = [self._spread(*part) for part in parts]
        for (part, chunks), found in zip(parts, arrived, strict=True):
            within = {
                rank: self._sum(
                    *(rank, chunks, Origin(0, Direction.IN, rank, self._channel(part))),
                    *(found[rank], total),
                )
                for box, total in zip(self.boxes, self._rooms_of_boxes(part), strict=True)
                for rank in box
            }
            for rail in self.rails:
                self._exchange(part, chunks, rail, within)

    def _spread(self, part: int, chunks: range) -> dict[int, dict[Slot, Ends]]:
        """Send the message to all others of a box; return what each GPU adds up, and when."""
        channel, last = self._channel(part), self.rails.places - 1
        sums, own = self._rooms_of_boxes(part), Slot("i", chunks.start)
        kept = self._rooms_of_places(part)
        found: dict[int, dict[Slot, Ends]] = {}
        for box, total in zip(self.boxes, sums, strict=True):
            for place, rank in enumerate(box):
                slots = {total if place == last else kept[place]: ()}
                slots |= {kept[place]: ()} if self.aside else {}
                origin = Origin(0, Direction.IN, rank, channel)
                found[rank] = {
                    slot: self._copy(rank, chunks, origin, {own: ()}, slot) for slot in slots
                }
        for home, a, b in self._within(last + 1, last + 1):
            source, target = self.boxes[home][a], self.boxes[home][b]
            origin = Origin(0, Direction.IN, target, channel)
            into = sums[home] if a == last else kept[a]
            read, after = (kept[a], found[source][kept[a]]) if self.aside else (own, ())
            found[target][into] = self._send(source, target, chunks, origin, read, into, after)
        for box, total in zip(self.boxes, sums, strict=True):
            for rank in box:
                found[rank] = {slot: found[rank][slot] for slot in (total, *kept[:last])}
        return found

    def _exchange(
        self, part: int, chunks: range, rail: Sequence[int], within: dict[int, Ends]
    ) -> None:
        """Exchange the sums of boxes, and add them up in the output."""
        channel, last = self._channel(part), len(rail) - 1
        sums, output = self._rooms_of_boxes(part), Slot("o", chunks.start)
        adds = self.profile.fuses and len(rail) == 2
        parts = {rank: {sums[box]: within[rank]} for box, rank in enumerate(rail)}
        for distance in range(1, len(rail)):
            for box, rank in enumerate(rail):
                origin = Origin(1, Direction.IN, rank, channel)
                other = (box + distance) % len(rail)
                begins = other == last or len(rail) == 2
                into, source = output if begins else sums[other], rail[other]
                ways = sums[other], into, within[source], sums[box] if adds else None
                parts[rank][into] = self._send(source, rank, chunks, origin, *ways)
        if adds:
            return
        if len(rail) > 2:
            rank, total = rail[last], sums[last]
            origin = Origin(1, Direction.IN, rank, channel)
            copied = {total: parts[rank].pop(total)}
            parts[rank][output] = self._copy(rank, chunks, origin, copied, output)
        for rank in rail:
            origin = Origin(1, Direction.IN, rank, channel)
            others = [slot for slot in sums if slot in parts[rank]]
            ordered = {slot: parts[rank][slot] for slot in (output, *others)}
            self._sum(rank, chunks, origin, ordered, output)

    def _copy(
        self, rank: int, chunks: range, origin: Origin, part: dict[Slot, Ends], into: Slot
    ) -> Ends:
        return self._sum(rank, chunks, origin, part, into, whole=True)
