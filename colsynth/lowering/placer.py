"""Gives slots to the transfers of a program one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from colsynth.lowering.chunk_ranges import ChunkRanges, uniform
from colsynth.lowering.contributions import Forwarded, Place, beginnings, contributions
from colsynth.lowering.exchange import overwritten, passing
from colsynth.lowering.joined_sums import LandedSums, pieces
from colsynth.lowering.layout import Layout
from colsynth.lowering.parts import Part, arriving, behind, runs
from colsynth.model import Collective, Direction, Origin, Slot, Transfer
from colsynth.runtimes.target import Target


@dataclass(slots=True)
class Placer:
    """The state of one run: what has been placed, and where sums are kept.

    All chunks of a range (`colsynth.lowering.chunk_ranges`) share their fate and lie side by
    side, so the first one stands for all of them wherever a rank and a chunk are a key.
    """

    layout: Layout
    target: Target
    transfers: tuple[Transfer, ...]
    most: int
    sums_as: str
    fuses: bool = False
    published: bool = False
    plain: bool = False
    sends_input: bool = False
    landed: LandedSums = field(init=False)
    ranges: ChunkRanges = field(init=False)
    placed: list[Transfer] = field(default_factory=list)
    scratch: list[int] = field(default_factory=list)
    sums: dict[Place, Slot] = field(default_factory=dict)
    arrivals: dict[Place, list[int]] = field(default_factory=dict)
    became: list[tuple[int, ...]] = field(default_factory=list)
    copies: dict[Place, int] = field(default_factory=dict)
    rests: dict[Place, Slot] = field(default_factory=dict)
    passed: set[Place] = field(default_factory=set)
    own_after: dict[Place, int] = field(default_factory=dict)
    beginnings: dict[Place, int] = field(default_factory=dict)
    unpublished: list[tuple[Part, Slot, int]] = field(default_factory=list)
    unadded: list[tuple[Part, int]] = field(default_factory=list)
    forwarded: Forwarded = field(init=False)

    def __post_init__(self) -> None:
        self.fuses = self.target.profile.fuses
        summed = self.layout.problem.collective is Collective.ALLREDUCE
        self.published = summed or (self.target.in_place and not self.layout.exchanges)
        self.sends_input = self.layout.keeps_input and self.target.out_of_place
        longest = self.target.profile.longest_chain
        self.landed = LandedSums(self.layout, self._reserve, longest)
        self.ranges = ChunkRanges(self.transfers, self.layout.grain)
        self.scratch = [0] * self.layout.problem.topology.size
        self.arrivals, self.passed, self.own_after = contributions(self.transfers, self.ranges)
        self.forwarded = Forwarded(self.transfers, self.own_after)
        alone = [key for key in self.own_after if self._joins(*key)]
        overwrites = self.target.in_place and not self._weak
        self.beginnings = beginnings(
            self.transfers, self.ranges, self.forwarded, alone, overwrites=overwrites
        )
        for rank, chunk in sorted(self.arrivals):
            in_output = self.layout.sums_in_output(rank, chunk)
            at_once = self.fuses or self._joins(rank, chunk)
            alike = (rank, chunk) in self.own_after and not self._joins(rank, chunk)
            if at_once and in_output and not alike:
                self.sums[rank, chunk] = self.layout.output(rank, chunk)
            else:
                place = self._reserve(rank, self.ranges.length(chunk))
                self.sums[rank, chunk] = Slot("s", place)

    def place_all(self) -> None:
        """Place all transfers, and what is local before, between and after them."""
        self._publish_own_data()
        self._begin_sums()
        self._begin_exchange()
        self.plain = self.published and not self.rests
        for number in range(len(self.transfers)):
            self._place(number)
        self._publish_sums()

    def _joins(self, rank: int, chunk: int) -> bool:
        """Return whether the arrivals of a chunk are added in one go."""
        if self.forwarded.givers:
            return True
        if self.sums_as == "running":
            return False
        return not self.fuses or self.arrivals[rank, chunk][1] > 1

    def _reserve(self, rank: int, count: int) -> int:
        self.scratch[rank] += count
        return self.scratch[rank] - count

    def _append(self, transfer: Transfer) -> int:
        self.placed.append(transfer)
        return len(self.placed) - 1

    def _publish_own_data(self) -> None:
        """Copy each root's own data to the output where the mode asks for it."""
        copying = (Collective.ALLGATHER, Collective.BROADCAST, Collective.ALLTOALL)
        if self.layout.problem.collective not in copying or not self.target.out_of_place:
            return
        for index, rank in enumerate(self.layout.problem.roots):
            owned = [(rank, c) for c in self.layout.own_result(index)]
            for run in runs(owned, self.most):
                chunk, count = run[0][1], len(run)
                slots = self.layout.input(rank, chunk), self.layout.output(rank, chunk)
                number = self._local(rank, chunk, count, *slots)
                self.copies.update({(rank, c): number for _, c in run})

    def _begin_sums(self) -> None:
        """Save contributions that leave by themselves from being overwritten."""
        if self._weak:
            length = self.ranges.length
            chunks = [(r, c) for r, c0 in self.own_after for c in range(c0, c0 + length(c0))]
            self._set_aside(chunks)

    def _begin_exchange(self) -> None:
        """Give scratch to chunks that pass through, and save input from being overwritten."""
        if not self.layout.exchanges:
            return
        for rank, chunk in passing(self.layout, self.transfers):
            self.rests[rank, chunk] = Slot("s", self._reserve(rank, 1))
        if not self.target.in_place:
            return
        self._set_aside(overwritten(self.layout, self.transfers, every=self._weak))

    @property
    def _weak(self) -> bool:
        """Whether what is sent may not be overwritten afterwards."""
        return self.target.in_place and self.target.sends_read_late

    def _set_aside(self, keys: list[tuple[int, int]]) -> None:
        """Copy input to scratch, to be sent from there."""
        for run in runs(keys, self.most):
            rank, chunk = run[0]
            aside = Slot("s", self._reserve(rank, len(run)))
            number = self._local(rank, chunk, len(run), self.layout.input(rank, chunk), aside)
            self.copies.update(dict.fromkeys(run, number))
            self.rests.update({key: Slot("s", aside.offset + k) for k, key in enumerate(run)})

    def _local(self, rank: int, chunk: int, count: int, read: Slot, write: Slot) -> int:
        origin = Origin(0, Direction.OUT, -1)
        return self._append(
            Transfer(rank, rank, chunk, count, False, (), origin, read=read, write=write)
        )

    def _place(self, number: int) -> None:
        """Place one transfer, in parts where its chunks are kept differently."""
        transfer = self.transfers[number]
        after, source, target = self._after(transfer), transfer.source, transfer.target
        if self.plain and not transfer.reduces:  # read and written at one place in the output
            read = slot = self.layout.output(target, transfer.chunk)
            if self._is_own(transfer):
                read = self.layout.input(source, transfer.chunk)
            self.became.append((len(self.placed),))
            chunk, count, origin = transfer.chunk, transfer.count, transfer.origin
            copy = Transfer(source, target, chunk, count, False, after, origin, read, slot)
            self.placed.append(copy)
            return
        parts: list[int] = []
        giver = self.forwarded.givers.get(number, source)
        for chunk, count in self._uniform_parts(number):
            read = self._read(number, chunk)
            part = Part(source, target, chunk, count, after, transfer.origin, read)
            begins = self.beginnings.get((target, chunk)) == number
            landing = None if begins else giver
            parts += self._reduce(part, landing) if transfer.reduces else self._copy(part)
        self.became.append(tuple(parts))

    def _after(self, transfer: Transfer) -> tuple[int, ...]:
        """Return the placed transfers and copies that a transfer comes after."""
        if not self.copies and len(transfer.after) < 2:
            return self.became[transfer.after[0]] if transfer.after else ()
        after = {p for t in transfer.after for p in self.became[t]}
        if self.copies and not self._is_own(transfer):
            chunks = range(transfer.chunk, transfer.chunk + transfer.count)
            keys = ((transfer.source, chunk) for chunk in chunks)
            after.update(self.copies[key] for key in keys if key in self.copies)
        return tuple(sorted(after)) if after else ()

    def _is_own(self, transfer: Transfer) -> bool:
        """Return whether a root sends its input, in place or not, without waiting for its copy."""
        if not self.sends_input:
            return False
        ends = transfer.chunk, transfer.chunk + transfer.count - 1
        return all(self.layout.owner(chunk) == transfer.source for chunk in ends)

    def _uniform_parts(self, number: int) -> list[tuple[int, int]]:
        """Return (chunk, count) of the runs that one step can serve on both ends."""
        transfer = self.transfers[number]
        firsts = self.ranges.within(transfer.chunk, transfer.count)
        if len(firsts) == 1:
            return [(transfer.chunk, transfer.count)]
        states = [self._state(number, chunk) for chunk in firsts]
        return uniform(firsts, states, transfer.chunk + transfer.count)

    def _state(self, number: int, chunk: int) -> tuple[object, ...]:
        """Return what must agree between chunks that share a step."""
        transfer = self.transfers[number]
        buffer, offset = self._read(number, chunk)
        if not transfer.reduces:
            into = self._lands(transfer, chunk)
            return buffer, offset - chunk, into.buffer, into.offset - chunk
        key = transfer.target, chunk
        done, total = self.arrivals[key]
        where, place = self.sums[key]
        own = self.own_after.get(key, 0)
        if self._joins(*key):
            begins = self.beginnings.get(key) == number
            return buffer, offset - chunk, where, place - chunk, own > 0, done + 1 == total, begins
        published = own > 0 or (key not in self.passed and not self.fuses)
        ends = done == 0, done + 1 == own, done + 1 == total and published
        return buffer, offset - chunk, where, place - chunk, *ends

    def _read(self, number: int, chunk: int) -> Slot:
        """Return where the source keeps a chunk of a transfer."""
        transfer = self.transfers[number]
        rank = transfer.source
        key = rank, chunk
        if number in self.forwarded.givers:
            return self.landed.slot(rank, self.forwarded.givers[number], chunk)
        if transfer.reduces and key not in self.own_after:
            return self.sums.get(key) or self.layout.input(rank, chunk)
        if key in self.rests:
            return self.rests[key]
        if transfer.reduces:
            return self.layout.input(rank, chunk)
        if self.published or rank != self.layout.owner(chunk):
            return self.layout.output(rank, chunk)
        return self.layout.input(rank, chunk)

    def _lands(self, transfer: Transfer | Part, chunk: int) -> Slot:
        """Return where the target of a copying transfer keeps a chunk."""
        if self.layout.keeps(transfer.target, chunk):
            return self.layout.output(transfer.target, chunk)
        return self.rests[transfer.target, chunk]

    def _copy(self, part: Part) -> list[int]:
        return [self._append(arriving(part, self._lands(part, part.chunk)))]

    def _reduce(self, part: Part, giver: int | None) -> list[int]:
        for chunk in self.ranges.within(part.chunk, part.count):
            self.arrivals[part.target, chunk][0] += 1
        key = part.target, part.chunk
        number, expected = self.arrivals[key]
        done = number - 1
        total = self.sums[key]
        if self._joins(*key):
            return self._join(part, giver, total, number == expected)
        if key in self.own_after:
            return self._collect(part, total, done + 1, expected)
        own = self.layout.input(part.target, part.chunk)
        if self.fuses:
            operand = own if done == 0 else total
            return [self._append(arriving(part, total, operand))]
        last = key not in self.passed and done + 1 == expected
        if done:
            return [self._add_landed(part, total, last)]
        arrival = self._append(arriving(part, total))  # as the sum, to which its own is added
        added = self._append(behind(part, arrival, own, total, total))
        return [added, self._publish_sum(part, total, added)] if last else [added]

    def _collect(self, part: Part, total: Slot, number: int, expected: int) -> list[int]:
        """Add the contribution of this number, and after some of them the rank's own."""
        if number == 1:
            added = self._append(arriving(part, total))
        elif self.fuses:
            added = self._append(arriving(part, total, total))
        else:
            added = self._add_landed(part, total)
        if number == self.own_after[part.target, part.chunk]:
            own = self.layout.input(part.target, part.chunk)
            added = self._append(behind(part, added, own, total, total))
        if number == expected:
            self.unpublished.append((part, total, added))
        return [added]

    def _join(self, part: Part, giver: int | None, total: Slot, last: bool) -> list[int]:
        """Let a contribution land, and add all up behind the last of them.

        Without a giver it begins the sum, and arrives where that belongs.
        """
        firsts = self.ranges.within(part.chunk, part.count)
        landing = total
        if giver is None:
            self._append(self.landed.begin(part, firsts, len(self.placed)))
        else:
            landing = self.landed.landing(part, giver, firsts, len(self.placed))
        arrival = self._append(arriving(part, landing))
        if not last:
            return [arrival]
        lengths = [(first, self.ranges.length(first)) for first in firsts]
        found = list(pieces(part, lengths, self.sums_as == "by-chunk"))
        if (part.target, part.chunk) in self.own_after:
            self.unadded += [(piece, first) for first, piece in found]
            return [arrival]
        return [self._add_up(piece, first) for first, piece in found]

    def _add_up(self, piece: Part, first: int, *, alike: bool = False) -> int:
        """Add up all contributions to some chunks of one range."""
        buffer, place = self.sums[piece.target, first]
        into = Slot(buffer, place + piece.chunk - first)
        for step in self.landed.chain(piece, first, into, len(self.placed), alike=alike):
            self._append(step)
        return len(self.placed) - 1

    def _publish_sums(self) -> None:
        """Add up, or copy to the output, what had to wait until all contributions had left."""
        for piece, first in self.unadded:
            self._add_up(piece, first, alike=True)
        for part, total, added in self.unpublished:
            self._publish_sum(part, total, added)

    def _add_landed(self, part: Part, total: Slot, last: bool = False) -> int:
        """Receive into scratch and add from there to the sum; the last one the other way round.

        That lands in the output. In place, the rank's own input was there, which is added to the
        first arrival.
        """
        if last:
            output = self.layout.output(part.target, part.chunk)
            arrival = self._append(arriving(part, output))
            return self._append(behind(part, arrival, total, output, output))
        landing = Slot("s", self._reserve(part.target, part.count))
        arrival = self._append(arriving(part, landing))
        return self._append(behind(part, arrival, landing, total, total))

    def _publish_sum(self, part: Part, total: Slot, added: int) -> int:
        """Copy an owner's finished sum to the output."""
        output = self.layout.output(part.target, part.chunk)
        return self._append(behind(part, added, total, output))
