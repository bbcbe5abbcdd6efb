"""What a program does, step by step: which chunks move where and when, and what ranks hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.simulate.breakdown import critical_path
from colsynth.simulate.trace import BEGIN, END, START, UNIT, Trace, trace
from colsynth.verify.contents import UNDEFINED, Values
from colsynth.verify.contract import (
    IN_PLACE,
    OUT_OF_PLACE,
    Layout,
    buffer_chunks,
    contributions,
    expected,
    layout,
)
from colsynth.verify.races import locate
from colsynth.verify.table import CPY, RCS, RE, RRS, R, S, tabulate
from colsynth.verify.units import Units, resolve

if TYPE_CHECKING:
    from colsynth.cost import Model
    from colsynth.model import Header, ThreadblockProgram, Topology
    from colsynth.runtimes.profile import Profile


def describe_schedule(
    program: ThreadblockProgram,
    topology: Topology,
    profile: Profile,
    model: Model,
    root: int | None = None,
) -> dict[str, Any]:
    """Return the replay of a program at the largest message that one tile holds.

    At that size every step runs once, so the picture is the program itself; larger messages
    repeat it tile by tile. Times are whole nanoseconds from the first step on.

    Parameters
    ----------
    program : ThreadblockProgram
    topology : Topology
    profile : Profile
    model : Model
    root : int, optional
        Of a broadcast or reduce; rank 0 unless given.

    Returns
    -------
    dict
        ``sends``: begin, end, connection, unit, chunks; ``writes``: when, rank, first output
        chunk, levels (contributions of those wanted); ``units``: threadblock, step, op, start,
        end, whether on the critical path; ``roots``: by chunk, where it starts or is complete.
    """
    size = one_tile(program, profile)
    traced = trace(program, topology, profile, size, model)
    spans = _spans(traced)
    critical = {int(traced.run.integers[leg.row, UNIT]) for leg in critical_path(traced)}
    units = resolve(tabulate(program))
    replay = _Replay(units, _layout(program), root)
    sends, writes, rows = [], list(replay.at_first()), []
    step_of = _steps_of(traced, units)
    for unit in np.argsort(spans[0], kind="stable").tolist():
        begin, end = round(spans[1][unit]), round(spans[2][unit])
        moved, landed = replay.take(step_of[unit])
        if traced.machine.sends[unit] >= 0:
            sends.append([begin, end, int(traced.machine.sends[unit]), unit, moved])
        if landed is not None:
            writes.append([end, *landed])
    for number, unit in enumerate(traced.machine.units):
        span = [round(float(spans[0][number])), round(float(spans[2][number]))]
        rows.append([unit.block, unit.ordinal, unit.op, *span, int(number in critical)])
    writes.sort(key=lambda row: row[0])
    machine = traced.machine
    first = machine.route_first.tolist()
    return {
        "size_bytes": size,
        "mode": replay.layout.mode,
        "time_ns": round(float(traced.run.times[:, END].max(initial=0.0))),
        "blocks": [list(block) for block in machine.blocks],
        "connections": [
            [*ends, machine.route[a:b].tolist()]
            for ends, a, b in zip(machine.connections, first, first[1:], strict=False)
        ],
        "output_chunks": replay.wanted_chunks,
        "units": rows,
        "sends": sends,
        "writes": writes,
        "needed": replay.needed,
        "reduces": replay.reduces,
        "roots": [replay.roots.get(chunk) for chunk in range(replay.ids)],
        "complete": replay.complete,
    }


def one_tile(program: ThreadblockProgram, profile: Profile) -> int:
    """Return the bytes of the largest message whose chunks fit one tile and that is served."""
    header = program.header
    room = profile.tile_bytes[header.protocol]
    most = header.chunks * room
    return max(header.chunks, min(most, header.max_bytes or most))


def _spans(traced: Trace) -> tuple[Any, Any, Any]:
    """Return when each unit starts, begins to move and ends, (U,) nanoseconds."""
    run, many = traced.run, len(traced.machine.steps)
    unit = run.integers[:, UNIT]
    start, begin, end = np.full(many, np.inf), np.full(many, np.inf), np.zeros(many)
    np.minimum.at(start, unit, run.times[:, START])
    np.minimum.at(begin, unit, run.times[:, BEGIN])
    np.maximum.at(end, unit, run.times[:, END])
    start[np.isinf(start)] = begin[np.isinf(begin)] = 0.0
    return start, begin, end


def _steps_of(traced: Trace, units: Units) -> list[int]:
    """Return the number of every unit's step in the tables of the verifier."""
    first = units.table.start
    steps = traced.machine.steps
    return [int(x) for x in first[steps.block] + steps.ordinal]


def _layout(program: ThreadblockProgram) -> Layout:
    header = program.header
    scratch = np.array([gpu.scratch_chunks for gpu in program.gpus], np.int64)
    return layout(header, IN_PLACE if header.in_place else OUT_OF_PLACE, scratch)


class _Replay:
    """Symbolic memory of all ranks while steps are taken in the order of their start."""

    def __init__(self, units: Units, memory_layout: Layout, root: int | None) -> None:
        self.units, self.layout = units, memory_layout
        table = units.table
        header = table.header
        self.source, self.target = (column.tolist() for column in locate(table, memory_layout))
        self.op, self.count = table.op.tolist(), table.count.tolist()
        self.rank = table.step_rank.tolist()
        self.values, self.memory = Values(), [UNDEFINED] * memory_layout.locations
        inputs, _ = buffer_chunks(header)
        for rank in range(header.ranks):
            base = int(memory_layout.base[rank, 0])
            chunks = contributions(header, rank, inputs)
            self.memory[base : base + inputs] = self.values.leaves(chunks, rank)
        goal = 0 if root is None and header.collective.rooted else root
        self.wanted = [expected(header, rank, goal) for rank in range(header.ranks)]
        self.sent: list[list[int]] = [[] for _ in self.op]
        self.ids = self._chunk_count(header)
        self.roots: dict[int, int] = {}
        self._everyone = (1 << header.ranks) - 1
        self.reduces = any(m == self._everyone for row in self.wanted for _, m in row)
        if not self.reduces:
            self._sources(header, inputs)

    @property
    def needed(self) -> int:
        """Contributions that an output chunk must hold."""
        return max((mask.bit_count() for row in self.wanted for _, mask in row), default=1)

    @property
    def wanted_chunks(self) -> list[int]:
        """Chunks that every rank waits for."""
        return [len(row) for row in self.wanted]

    @property
    def complete(self) -> bool:
        """Whether every rank now holds what it must."""
        return all(
            self._level(rank, place) == mask.bit_count()
            for rank, row in enumerate(self.wanted)
            for place, (_, mask) in enumerate(row)
        )

    def at_first(self) -> list[list[Any]]:
        """Return what outputs hold before the first step."""
        levels = [
            [self._level(rank, place) for place in range(len(row))]
            for rank, row in enumerate(self.wanted)
        ]
        return [[0, rank, 0, row] for rank, row in enumerate(levels) if any(row)]

    def take(self, step: int) -> tuple[list[int], list[Any] | None]:
        """Take a step; return the chunks it moves, and what it leaves in an output."""
        op, count = self.op[step], self.count[step]
        read, write = self.source[step], self.target[step]
        data = self._data(step, op, count, read, write)
        if op not in (R, RE, CPY):
            self.sent[step] = data
        landed = None
        if op not in (S, RRS) and write >= 0:
            self.memory[write : write + count] = data
            landed = self._landed(self.rank[step], write, count)
        self._note_roots(self.rank[step], data)
        return self._chunks(data), landed

    def _data(self, step: int, op: int, count: int, read: int, write: int) -> list[int]:
        """Return the values that a step moves or makes."""
        local = self._read(read, count)
        if op in (S, CPY):
            return local
        arriving = self._read(write, count)
        if op != RE:
            match = self.units.match[step]
            message = self.sent[match] if match >= 0 else []
            arriving = (message + [UNDEFINED] * count)[:count]
            if op in (R, RCS):
                return arriving
        return [self.values.add(x, y) for x, y in zip(arriving, local, strict=True)]

    def _read(self, place: int, count: int) -> list[int]:
        found = self.memory[place : place + count] if place >= 0 else []
        return (found + [UNDEFINED] * count)[:count]

    def _level(self, rank: int, place: int) -> int:
        """Return how many of the contributions that an output chunk must hold are there."""
        number, mask = self.wanted[rank][place]
        value = self.memory[int(self.layout.base[rank, 1]) + place]
        if self.values.chunk[value] != number or self.values.mask[value] & ~mask:
            return 0
        return self.values.mask[value].bit_count()

    def _landed(self, rank: int, write: int, count: int) -> list[Any] | None:
        """Return rank, first output chunk and levels where a write is to an output."""
        first = write - int(self.layout.base[rank, 1])
        places = [p for p in range(first, first + count) if 0 <= p < len(self.wanted[rank])]
        if not places:
            return None
        return [rank, places[0], [self._level(rank, place) for place in places]]

    def _chunks(self, data: list[int]) -> list[int]:
        """Return the chunk numbers of values, -1 for what is none."""
        return [self.values.chunk[value] for value in data]

    def _note_roots(self, rank: int, data: list[int]) -> None:
        """Remember where a reduced chunk is complete first."""
        if self.reduces:
            for value in data:
                if self.values.mask[value] == self._everyone:
                    self.roots.setdefault(self.values.chunk[value], rank)

    def _sources(self, header: Header, inputs: int) -> None:
        """Remember where chunks are at first."""
        for rank in range(header.ranks):
            for chunk in contributions(header, rank, inputs):
                self.roots.setdefault(chunk, rank)

    def _chunk_count(self, header: Header) -> int:
        """Return how many chunk numbers there are."""
        rows = [chunk for row in self.wanted for chunk, _ in row]
        return max(rows, default=header.chunks - 1) + 1
