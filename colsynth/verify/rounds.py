"""Checks of a program in rounds: form, races within a round, and contents.

Contents are executed symbolically for each claimed mode of the call. A chunk of memory holds one
number of the message and the set of ranks whose contributions are in it, or nothing. Rounds have no
circles to wait in: all messages of a round are posted before any is waited for, in one order for
both ends. So a rank only waits for ranks in earlier rounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from colsynth.model import Header, Report, RoundProgram, Slot
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.reader import Reading
from colsynth.runtimes.rules import Findings
from colsynth.verify.contract import (
    OUT_OF_PLACE,
    REDUCING,
    SHARDED,
    Layout,
    buffer_chunks,
    contributions,
    expected,
    layout,
    modes,
)

Content = tuple[int, int]
"""The number of a chunk of the message, and a bit for every rank that is in its sum."""

_BUFFERS = "ios"

_MOST = 2**24
"""Chunks in all buffers of all ranks beyond which no call is executed: it would take gigabytes."""


def verify_rounds(reading: Reading, profile: Profile, *, subject: str) -> Report:
    """Return everything wrong with a file of rounds.

    Parameters
    ----------
    reading : Reading
    profile : Profile
    subject : str
        Name of the file, for the report.
    """
    program, findings = reading.program, Findings(profile.name)
    if not isinstance(program, RoundProgram):
        facts = (("content", "not checked: the file is no program in rounds"),)
        return Report(subject, profile.name, reading.findings, facts)
    _check_header(program, profile, findings)
    if not findings.failed:
        _check_slots(program, findings)
    content = "not checked: the program is malformed"
    if not findings.failed:
        content = "executed symbolically"
        for mode in modes(program.header):
            _Execution(program, mode, findings).check()
    return Report(subject, profile.name, findings.all(), _facts(program, content))


def _facts(program: RoundProgram, content: str) -> tuple[tuple[str, str], ...]:
    header = program.header
    messages = [message for found in program.rounds for message in found.messages]
    facts = [
        ("collective", str(header.collective)),
        ("ranks", str(header.ranks)),
        ("modes", ", ".join(modes(header)) or "none"),
        ("content", content),
        ("rounds", str(len(program.rounds))),
        ("messages", str(len(messages))),
        ("chunks moved", str(sum(message.count for message in messages))),
    ]
    if header.root is not None:
        facts.append(("root", str(header.root)))
    return tuple(facts)


def _check_header(program: RoundProgram, profile: Profile, findings: Findings) -> None:
    header = program.header
    if header.ranks < 1 or header.chunks < 1:
        findings.add("N02", f"{header.ranks} ranks and {header.chunks} chunks")
        return
    if header.collective not in profile.collectives:
        findings.add("N02", f"no call asks for {header.collective}")
    if header.collective in SHARDED and header.chunks % header.ranks:
        text = f"{header.ranks} ranks do not divide {header.chunks} chunks"
        findings.add("N02", f"{text}, as {header.collective} must")
    if header.collective.rooted != (header.root is not None):
        findings.add("N02", f"the root of {header.collective} is {header.root}")
    elif header.root is not None and not 0 <= header.root < header.ranks:
        findings.add("N02", f"there is no root {header.root} among {header.ranks} ranks")
    if len(program.scratch) != header.ranks:
        findings.add("N02", f"scratch is {list(program.scratch)}: one number for every rank")
    elif min(program.scratch, default=0) < 0:
        findings.add("N02", f"scratch is {list(program.scratch)}: no number may be below zero")
    elif (held := header.ranks * 2 * header.chunks + sum(program.scratch)) > _MOST:
        findings.add("N02", f"up to {held} chunks in all buffers; the verifier executes {_MOST}")
    _check_calls(header, findings)


def _check_calls(header: Header, findings: Findings) -> None:
    most = header.max_bytes
    if not modes(header):
        findings.add("N02", "the file serves no mode: neither in_place nor out_of_place is true")
    if most is not None and most < header.min_bytes:
        findings.add("N02", f"no call is between {header.min_bytes} and {most} bytes")


def _check_slots(program: RoundProgram, findings: Findings) -> None:
    """Refuse ranks that do not exist, and slots outside their buffers (N03)."""
    ranks = program.header.ranks
    inputs, outputs = buffer_chunks(program.header)
    for rank, slot, count, place in _slots(program):
        if not 0 <= rank < ranks:
            findings.add("N03", f"round {place} names rank {rank}; there are {ranks}")
            continue
        room = {"i": inputs, "o": outputs, "s": program.scratch[rank]}.get(slot.buffer)
        if room is None or count < 1 or slot.offset < 0 or slot.offset + count > room:
            text = f"round {place}: chunks {slot.offset} to {slot.offset + count - 1}"
            findings.add("N03", f"{text} of {slot.buffer!r}, which has {room or 0}", rank)
    for place, found in enumerate(program.rounds):
        for message in found.messages:
            if message.source == message.target:
                findings.add("N03", f"round {place}: rank {message.source} sends to itself")


def _slots(program: RoundProgram) -> Iterator[tuple[int, Slot, int, int]]:
    """Yield (rank, slot, count, round) of all that is read or written."""
    for place, found in enumerate(program.rounds):
        for m in found.messages:
            yield m.source, m.read, m.count, place
            yield m.target, m.write, m.count, place
        for s in found.local:
            yield s.rank, s.read, s.count, place
            yield s.rank, s.write, s.count, place
            if s.operand is not None:
                yield s.rank, s.operand, s.count, place


class _Execution:
    """One symbolic call in one mode."""

    def __init__(self, program: RoundProgram, mode: str, findings: Findings) -> None:
        self.program, self.mode, self.findings = program, mode, findings
        header = program.header
        self.layout: Layout = layout(header, mode, np.array(program.scratch, np.int64))
        self.memory: list[Content | None] = [None] * self.layout.locations
        reduces = header.collective in REDUCING
        for rank in range(header.ranks):
            chunks = buffer_chunks(header)[0]
            numbers = contributions(header, rank, chunks)
            start = int(self.layout.base[rank, 0])
            if reduces or header.collective in SHARDED or rank == header.root:
                self.memory[start : start + chunks] = [(number, 1 << rank) for number in numbers]
        self.inputs = set(self._input_cells(header)) if mode == OUT_OF_PLACE else set()

    def _input_cells(self, header: Header) -> Iterator[int]:
        for rank in range(header.ranks):
            yield from self._cells(rank, Slot("i", 0), buffer_chunks(header)[0])

    def _cells(self, rank: int, slot: Slot, count: int) -> range:
        start = int(self.layout.base[rank, _BUFFERS.index(slot.buffer)]) + slot.offset
        return range(start, start + count)

    def check(self) -> None:
        """Execute all rounds and compare the outputs with what the collective promises."""
        for place in range(len(self.program.rounds)):
            self._messages(place)
            self._local(place)
        header = self.program.header
        for rank in range(header.ranks):
            wanted = expected(header, rank, header.root)
            cells = self._cells(rank, Slot("o", 0), len(wanted))
            for chunk, (cell, content) in enumerate(zip(cells, wanted, strict=True)):
                if self.memory[cell] != content:
                    text = f"{self.mode}, output chunk {chunk} is {_named(self.memory[cell])}"
                    self.findings.add("N06", f"{text}, not {_named(content)}", rank)

    def _messages(self, place: int) -> None:
        """Let all messages of a round arrive at once; refuse races between them (N04)."""
        read: set[int] = set()
        written: dict[int, Content | None] = {}
        for m in self.program.rounds[place].messages:
            sources = self._cells(m.source, m.read, m.count)
            read.update(sources)
            targets = self._cells(m.target, m.write, m.count)
            for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
                if target in written:
                    slot = _spelt(m.write.behind(number))
                    text = f"{self.mode}, round {place}: two messages write {slot}"
                    self.findings.add("N04", text, m.target)
                written[target] = self._get(source, m.source, place)
                self._keep_input(target, m.target, place)
        for m in self.program.rounds[place].messages:
            targets = self._cells(m.target, m.write, m.count)
            first = next((n for n, cell in enumerate(targets) if cell in read), None)
            if first is not None:
                slot = _spelt(m.write.behind(first))
                text = f"{self.mode}, round {place}: a message arrives at {slot}"
                self.findings.add("N04", f"{text}, which another one reads", m.target)
        for cell, content in written.items():
            self.memory[cell] = content

    def _local(self, place: int) -> None:
        for s in self.program.rounds[place].local:
            reads = self._cells(s.rank, s.read, s.count)
            writes = self._cells(s.rank, s.write, s.count)
            operands = reads if s.operand is None else self._cells(s.rank, s.operand, s.count)
            self._check_overlap(s.rank, place, writes, (reads, operands))
            for read, write, operand in zip(reads, writes, operands, strict=True):
                content = self._get(read, s.rank, place)
                if s.operand is not None:
                    content = self._sum(content, self._get(operand, s.rank, place), s.rank, place)
                if write != read:
                    self._keep_input(write, s.rank, place)
                self.memory[write] = content

    def _check_overlap(
        self, rank: int, place: int, writes: range, others: tuple[range, range]
    ) -> None:
        """Refuse steps that overwrite what they still have to read, unless both are the same."""
        for other in others:
            if other != writes and max(other[0], writes[0]) <= min(other[-1], writes[-1]):
                text = f"{self.mode}, round {place}: a local step overwrites what it still reads"
                self.findings.add("N04", text, rank)

    def _get(self, cell: int, rank: int, place: int) -> Content | None:
        if self.memory[cell] is None:
            text = f"{self.mode}, round {place}: a chunk is read that nothing was written to"
            self.findings.add("N05", text, rank)
        return self.memory[cell]

    def _sum(
        self, one: Content | None, other: Content | None, rank: int, place: int
    ) -> Content | None:
        """Return the sum of two contents; refuse different chunks and what counts twice (N05)."""
        if one is None or other is None:
            return None
        reduces = self.program.header.collective in REDUCING
        if one[0] == other[0] and not one[1] & other[1] and reduces:
            return one[0], one[1] | other[1]
        text = f"{self.mode}, round {place}: {_named(one)} and {_named(other)} are added up"
        self.findings.add("N05", text, rank)
        return None

    def _keep_input(self, cell: int, rank: int, place: int) -> None:
        if cell in self.inputs:
            text = f"out of place, round {place}: the input is overwritten"
            self.findings.add("N07", text, rank)


def _spelt(slot: Slot) -> str:
    return f"{slot.buffer}[{slot.offset}]"


def _named(content: Content | None) -> str:
    if content is None:
        return "nothing"
    number, mask = content
    ranks = [rank for rank in range(mask.bit_length()) if mask >> rank & 1]
    shown = ", ".join(map(str, ranks[:4])) + (", ..." if len(ranks) > 4 else "")
    return f"chunk {number} of rank {shown}"
