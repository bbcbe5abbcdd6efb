"""Reads a schedule file as the runtime's parser would, for every rank at once.

The runtime expands only its own ``gpu`` element; a fault anywhere stops some rank and
hangs the others, so every element is read here as if it were the own one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from colsynth.model import (
    Finding,
    Gpu,
    Header,
    Program,
    Rows,
    Severity,
    StepTable,
    Threadblock,
    ThreadblockProgram,
)
from colsynth.runtimes.fields import Fields
from colsynth.runtimes.header import AlgoHeader, read_header
from colsynth.runtimes.kinds import written_for
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.runtimes.scanner import CLOSE, OPEN, SINGLE, Scanner, Tag
from colsynth.runtimes.step_columns import KEYS, SpeltStep, StepColumns

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Plan
    from colsynth.runtimes.step_columns import Ints

_STEP_KNOWN = frozenset(KEYS)
_GPU_KEYS = ("id", "i_chunks", "o_chunks", "s_chunks")
_GPU_KNOWN = frozenset(_GPU_KEYS)
_THREADBLOCK_RULES = {"id": "T01", "send": "T03", "recv": "T03", "chan": "T04"}
_THREADBLOCK_KNOWN = frozenset(_THREADBLOCK_RULES)
_OTHERS = {
    "plan": ", and looks like a plan for mscclpp",
    "rounds": ", and looks like rounds for torch",
}
"""What is added where a file has no schedule in XML, by `written_for`."""


Lines = dict[tuple[int, int | None], "tuple[int, Sequence[int] | Ints]"]
"""Of GPUs and threadblocks, by rank and id: the line, and those of the steps."""


@dataclass(frozen=True)
class Reading:
    """What a runtime makes of a file.

    Parameters
    ----------
    program : ThreadblockProgram, RoundProgram or None
        None when the file is too broken to say what it would do. GPUs are in the order
        of their ids, threadblocks too; ids may still be wrong (rules G01, T01).
    findings : tuple of Finding
    custom : bool
        Whether the collective has no agreed result (``coll="custom"`` and what no call
        reaches); the header then says alltoall, which has the same buffer sizes.
    header_line : int or None
        Line of the algo element, from 1.
    plan : Plan or None
        What a file in JSON says; `program` is None where its steps are not those of XML, or were
        not asked for.
    """

    program: Program | None
    findings: tuple[Finding, ...]
    custom: bool = False
    header_line: int | None = None
    plan: Plan | None = None
    _header: Header | None = None
    _lines: Lines = field(default_factory=dict, repr=False)

    @property
    def header(self) -> Header | None:
        """What the file says about itself, None where that is too little."""
        return self._header if self.program is None else self.program.header

    def line(self, rank: int | None, threadblock: int | None, step: int | None) -> int | None:
        """Return the line of an element, from 1, or None where it is not known."""
        if rank is None:
            return None
        found = self._lines.get((rank, threadblock))
        if found is None:
            return None
        line, steps = found
        return line if step is None or not 0 <= step < len(steps) else int(steps[step])


def read(data: bytes, profile: Profile, *, file: str) -> Reading:
    """Read `data` as `profile`'s runtime would.

    Parameters
    ----------
    data : bytes
    profile : Profile
    file : str
        Name used in messages.

    Returns
    -------
    Reading
        With every fault found, not only the first; the runtime stops at the first.
    """
    findings = Findings(profile.name)
    reader = _Reader(data, profile, findings)
    algo = reader.file(file)
    program = None if algo is None else reader.program(algo)
    custom = algo is not None and algo.custom
    return Reading(program, findings.all(), custom, reader.header_line, _lines=reader.lines)


class _Threadblock(NamedTuple):
    """A threadblock, its line, those of its steps, and the place of the first of these."""

    id: int
    send: int | None
    recv: int | None
    channel: int
    line: int
    lines: Ints
    first: int

    def threadblock(self, steps: StepTable) -> Threadblock:
        """Return it with its steps, of a table of all."""
        own = Rows(steps, self.first, self.first + len(self.lines))
        return Threadblock(self.id, self.send, self.recv, self.channel, own)


_Gpu = tuple[int, tuple[int, int, int], list[_Threadblock]]
"""Rank, chunks of the three buffers, and threadblocks."""


class _Reader:
    def __init__(self, data: bytes, profile: Profile, findings: Findings) -> None:
        self._scanner = Scanner(data.decode("latin-1"), findings)
        self._written_for = written_for(data[:512])
        self._profile = profile
        self._findings = findings
        self._columns = StepColumns(data)
        self._gpus: list[_Gpu] = []
        self.lines: Lines = {}
        self.header_line: int | None = None

    def file(self, name: str) -> AlgoHeader | None:
        """Read the top level: one algo, comments, nothing else."""
        algo, found = None, False
        while (tag := self._scanner.tag()) is not None:
            if tag.kind == CLOSE:
                self._scanner.report("X04", f"</{tag.name}> closes nothing", tag.offset)
            elif tag.name == "algo" and not found:
                found = True
                self.header_line = self._scanner.line(tag.offset)
                algo = read_header(self._scanner, tag, self._profile)
                if tag.kind == OPEN:
                    self._children(tag, "gpu", self._gpu)
            else:
                rule = "X14" if found else "X02"
                text = f"<{tag.name}> {'follows' if found else 'comes before'} the algo element"
                self._scanner.report(rule, text, tag.offset)
                self._skip(tag)
        if not found:
            other = _OTHERS.get(self._written_for or "", "")
            self._scanner.report("X02", f"{name} has no algo element{other}", 0)
        return algo

    def program(self, algo: AlgoHeader) -> ThreadblockProgram:
        """Return what was read, GPUs in the order of their ids."""
        steps = self._columns.table()
        gpus = tuple(
            Gpu(rank, *sizes, tuple(block.threadblock(steps) for block in blocks))
            for rank, sizes, blocks in sorted(self._gpus, key=itemgetter(0))
        )
        if algo.threads:
            self._long_chains(gpus, algo.threads)
        header: Header = algo.header
        return ThreadblockProgram(header, gpus)

    def _long_chains(self, gpus: tuple[Gpu, ...], threads: int) -> None:
        """Report steps that wait for more others than a block has threads (D07)."""
        for gpu in gpus:
            for block in gpu.threadblocks:
                chain = 0
                for ordinal, step in enumerate(block.steps):
                    chain = chain + 1 if step.op == "nop" else 0
                    if chain == threads:
                        text = f"waits for more than {threads} others, one per thread"
                        self._findings.add("D07", text, gpu.rank, block.id, ordinal)

    def _children(self, parent: Tag, name: str, handle: object) -> None:
        """Hand every child called `name` to `handle`; skip others; eat the closing tag."""
        while (tag := self._scanner.tag()) is not None:
            if tag.kind == CLOSE:
                if tag.name != parent.name:
                    text = f"</{tag.name}> closes <{parent.name}>"
                    self._scanner.report("X04", text, tag.offset)
                return
            if tag.name == name:
                handle(tag)  # type: ignore[operator]
            else:
                text = f"element <{tag.name}> in <{parent.name}> is ignored"
                self._scanner.report("X15", text, tag.offset)
                self._skip(tag)
        self._scanner.report("X04", f"<{parent.name}> is never closed", parent.offset)

    def _skip(self, tag: Tag) -> None:
        """Step over an element; as in the runtime only the depth counts."""
        depth = 1 if tag.kind == OPEN else 0
        while depth:
            inner = self._scanner.tag()
            if inner is None:
                self._scanner.report("X04", f"<{tag.name}> is never closed", tag.offset)
                return
            depth += {OPEN: 1, SINGLE: 0, CLOSE: -1}[inner.kind]

    def _gpu(self, tag: Tag) -> None:
        fields = Fields(self._scanner, tag, "G01")
        fields.ignored(_GPU_KNOWN)
        rank, inputs, outputs, scratch = (fields.number(key) for key in _GPU_KEYS)
        if scratch is not None and scratch < 0:
            fields.fault("G02", f"s_chunks is {scratch}", Severity.ERROR)
        blocks: list[_Threadblock] = []
        if tag.kind == OPEN:
            self._children(tag, "tb", lambda child: self._threadblock(child, blocks))
        if rank is None:
            return
        self.lines.setdefault((rank, None), (self._scanner.line(tag.offset), ()))
        first: dict[int, _Threadblock] = {}
        for block in blocks:  # where there are two of one number, the first
            first.setdefault(block.id, block)
        for number, block in first.items():
            self.lines.setdefault((rank, number), (block.line, block.lines))
        blocks.sort(key=attrgetter("id"))
        self._gpus.append((rank, (inputs or 0, outputs or 0, max(scratch or 0, 0)), blocks))

    def _threadblock(self, tag: Tag, blocks: list[_Threadblock]) -> None:
        values: dict[str, int | None] = {}
        for key, rule in _THREADBLOCK_RULES.items():
            values[key] = Fields(self._scanner, tag, rule).number(key)
        Fields(self._scanner, tag, "T01").ignored(_THREADBLOCK_KNOWN)
        first = len(self._columns)
        if tag.kind == OPEN:
            self._steps(tag, first)
        if values["id"] is None:
            return
        send, recv = (_peer(values[key]) for key in ("send", "recv"))
        rest = self._scanner.line(tag.offset), self._columns.lines(first), first
        blocks.append(_Threadblock(values["id"], send, recv, values["chan"] or 0, *rest))

    def _steps(self, parent: Tag, first: int) -> None:
        """Read the steps of a threadblock, those spelt as usual all at once."""
        scanner, columns = self._scanner, self._columns
        more = True
        while more:
            begin = len(columns)
            end = columns.scan(scanner.position, scanner.line(scanner.position))
            for row in columns.odd(first, begin):
                scanner.position = columns.place(row)
                tag = scanner.tag()
                if tag is not None:
                    columns.put(row, self._step(tag, row - first))
            scanner.position = end
            more = self._unusual_step(parent, first)

    def _unusual_step(self, parent: Tag, first: int) -> bool:
        """Read one child of a threadblock; return whether there may be more."""
        tag = self._scanner.tag()
        if tag is None:
            self._scanner.report("X04", f"<{parent.name}> is never closed", parent.offset)
            return False
        if tag.kind == CLOSE:
            if tag.name != parent.name:
                self._scanner.report("X04", f"</{tag.name}> closes <{parent.name}>", tag.offset)
            return False
        if tag.name != "step":
            text = f"element <{tag.name}> in <{parent.name}> is ignored"
            self._scanner.report("X15", text, tag.offset)
            self._skip(tag)
            return True
        line = self._scanner.line(tag.offset)
        self._columns.add(self._step(tag, len(self._columns) - first), line)
        if tag.kind == OPEN:
            self._close_step(tag)
        return True

    def _step(self, tag: Tag, ordinal: int) -> SpeltStep:
        fields = Fields(self._scanner, tag, "S01")
        fields.ignored(_STEP_KNOWN)
        words = {key: fields.text(key) or "" for key in ("type", "srcbuf", "dstbuf")}
        numbers = {key: fields.number(key) for key in KEYS if key not in words and key != "hasdep"}
        s = numbers["s"]
        if s is not None and s != ordinal:
            text = f"step number {ordinal} in the file says s={s}"
            self._scanner.report("S02", text, tag.offset)
        signals = fields.number("hasdep")
        if signals not in (0, 1, None):
            fields.fault("S10", f"hasdep is {signals}")
        depid, deps = (-1 if n is None else n for n in (numbers["depid"], numbers["deps"]))
        if depid < 0 and (depid, deps) != (-1, -1):
            text = f"depid is {depid} and deps is {deps}; without a dependency both are -1"
            self._scanner.report("D03", text, tag.offset)
            depid = deps = -1
        return SpeltStep(
            op=words["type"],
            srcbuf=words["srcbuf"],
            srcoff=numbers["srcoff"] or 0,
            dstbuf=words["dstbuf"],
            dstoff=numbers["dstoff"] or 0,
            cnt=numbers["cnt"] or 0,
            depid=depid,
            deps=deps,
            hasdep=int(bool(signals)),
        )

    def _close_step(self, step: Tag) -> None:
        """Read up to ``</step>``; a child would crash the runtime's parser."""
        while (tag := self._scanner.tag()) is not None:
            if tag.kind == CLOSE:
                if tag.name != "step":
                    self._scanner.report("X04", f"</{tag.name}> closes <step>", tag.offset)
                return
            self._scanner.report("X12", f"<{tag.name}> stands inside a step", tag.offset)
            self._skip(tag)
        self._scanner.report("X04", "<step> is never closed", step.offset)


def _peer(value: int | None) -> int | None:
    return None if value is None or value == -1 else value
