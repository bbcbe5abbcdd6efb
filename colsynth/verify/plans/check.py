"""Bytes of a plan in, a report out."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from colsynth.model import Header, Report
from colsynth.runtimes.plans.form import Plan, operations
from colsynth.runtimes.rules import Findings
from colsynth.units import format_size, plural
from colsynth.verify.contents import ranks
from colsynth.verify.contract import buffer_chunks, expected
from colsynth.verify.plans.counters import check_counters
from colsynth.verify.plans.counts import Unknown, goes_forward, hangs, unbalanced
from colsynth.verify.plans.lengths import (
    Length,
    Lengths,
    cut_alike,
    even_lengths,
    span,
    uneven_lengths,
)
from colsynth.verify.plans.lint import lint_plan
from colsynth.verify.plans.machine import Machine
from colsynth.verify.plans.program import in_place, resolve, uses_packets
from colsynth.verify.plans.resolved import Resolved
from colsynth.verify.plans.shapes import UNTRIED

if TYPE_CHECKING:
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading


def verify_plan(reading: Reading, profile: Profile, *, subject: str) -> Report:
    """Check a plan as the runtime would read and execute it.

    Parameters
    ----------
    reading : Reading
        Of a file that holds a plan.
    profile : Profile
    subject : str
        Name of the file, for the report.
    """
    findings = Findings(profile.name)
    plan, header = reading.plan, reading.header
    facts: tuple[tuple[str, str], ...] = (("content", "not checked: the file is no plan"),)
    if plan is not None and header is not None:
        facts = _Check(plan, header, reading.custom, profile, findings).facts()
    return Report(subject, profile.name, reading.findings + findings.all(), facts)


class _Check:
    """Checks one plan."""

    def __init__(
        self, plan: Plan, header: Header, custom: bool, profile: Profile, findings: Findings
    ) -> None:
        self.plan, self.header, self.custom = plan, header, custom
        self.profile, self.findings = profile, findings
        self.root: int | None = None
        self.content = "not checked: the plan cannot be executed"
        self.tried: list[str] = []
        self.complete = True

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Check everything, and return what was established."""
        plan, header = self.plan, self.header
        if self._sizes() and lint_plan(plan, self.profile, self.findings):
            self._execute()
        most = max((len(operations(b)) for g in plan.gpus for b in g.threadblocks), default=0)
        found = [
            ("collective", plan.collective),
            ("ranks", str(header.ranks)),
            ("modes", in_place(header)),
            ("content", self.content),
            ("threadblocks", str(sum(len(gpu.threadblocks) for gpu in plan.gpus))),
            ("operations of the longest", str(most)),
            ("sizes", "; ".join(self.tried) or "none"),
        ]
        if self.root is not None:
            found.append(("root", str(self.root)))
        if uses_packets(plan):
            text = "a captured graph must hold an even number of launches, four or more"
            found.append(("CUDA graphs", text))
        return tuple(found)

    def _sizes(self) -> bool:
        """Check that the buffers of all ranks have the chunks that the collective gives them."""
        wanted = buffer_chunks(self.header)
        even = self.header.chunks % self.header.ranks == 0
        for rank, gpu in enumerate(self.plan.gpus):
            found = (gpu.input_chunks, gpu.output_chunks)
            sharded = wanted[0] != wanted[1]
            if not self.custom and (found != wanted or (sharded and not even)):
                text = f"input and output have {found[0]} and {found[1]} chunks; "
                text += f"{self.plan.collective} has {wanted[0]} and {wanted[1]}"
                self.findings.add("P02", text, rank)
                return False
        return True

    def _execute(self) -> None:
        plan = self.plan
        blocks = [block for gpu in plan.gpus for block in gpu.threadblocks]
        if any(op.name in UNTRIED for block in blocks for op in operations(block)):
            self.content = "not checked: it has operations that are not executed"
            return
        least, most = span(plan, self.header)
        if least > most:
            text = f"no message of the range has {self.header.chunks} chunks of whole "
            self.findings.add("P15", f"{text}{plan.buffer_alignment} bytes")
            return
        program = self._resolved(Fraction(least))
        even = cut_alike(plan, self.header) and goes_forward(program)
        if even:
            lengths = even_lengths(plan, self.header)
        else:
            lengths = uneven_lengths(plan, self.header, program)
            self._balance(program, least, most)
        packets = uses_packets(plan)
        launches = 3 if packets and plan.use_double_scratch_buffer else 2
        for length in lengths.tried:
            if not self.findings.failed:
                self._run(length, launches)
        if not even:
            self.tried.append(self._all_tried(lengths, launches))
            self._count(program, lengths)
        if self.findings.failed:
            self.content = "not right: see the findings"
        elif lengths.complete and self.complete:
            self.content = "no agreed result" if self.custom else "executed symbolically"
        else:
            self.content = "not checked at all lengths of messages"
            text = "executing all lengths of its pipelines would take too long: some were left out"
            self.findings.add("P16", text)

    def _resolved(self, chunk: Fraction) -> Resolved:
        return resolve(self.plan, self.header, in_place(self.header), chunk)

    def _all_tried(self, lengths: Lengths, launches: int) -> str:
        ends = [format_size(lengths.tried[k].call * self.header.chunks) for k in (0, -1)]
        text = f"{plural(len(lengths.tried), 'length')} of messages from {ends[0]} to {ends[1]}"
        return f"{text}, {launches} launches"

    def _balance(self, program: Resolved, least: int, most: int) -> None:
        """Look for counters that do not come out even at some length (P08)."""
        try:
            found = unbalanced(program, self.plan.buffer_alignment, least, most)
        except Unknown:
            self.complete = False
            return
        if found is not None:
            text = f"in messages of {format_size(found[0] * self.header.chunks)}, {found[1]}"
            self.findings.add("P08", text, *program.blocks[found[2]])

    def _count(self, program: Resolved, lengths: Lengths) -> None:
        """Look for waits without end in messages longer than those that were executed (P09)."""
        for chunk in () if self.findings.failed else lengths.longer:
            try:
                stuck = hangs(program, chunk)
            except Unknown:
                self.complete = False
                return
            if stuck is not None:
                size = format_size(chunk * self.header.chunks)
                text = f"{stuck[1].action.op.name} waits forever in messages of {size}"
                self.findings.add("P09", text, *program.blocks[stuck[0]], stuck[1].action.step)
                return

    def _run(self, length: Length, launches: int) -> None:
        where = f" in messages of {format_size(length.call * self.header.chunks)}"
        if length.turns is not None:
            self.tried.append(f"{plural(length.turns, 'tile')}, {launches} launches")
            where = ""
        program = self._resolved(length.chunk)
        check_counters(program, self.findings)
        if self.findings.failed:
            return
        results: dict[tuple[int, int], list[int]] = {}

        def race(rank: int, block: int, step: int | None, text: str) -> None:
            self.findings.add("P10", text + where, rank, block, step)

        def finished(machine: Machine, rank: int, launch: int) -> None:
            first = int(program.memory.base[rank, 1]) * program.cells
            count = int(program.memory.size[rank, 1]) * program.cells
            results[rank, launch] = machine.memory.value[first : first + count]

        flushes = bool(self.profile.plans["flushes"])
        machine = Machine(program, launches, race, finished, flushes=flushes)
        stuck = machine.run()
        if stuck:
            rank, block, action = stuck[0]
            how = where or f", with {plural(length.turns or 1, 'iteration')} per chunk"
            more = f"; so do {len(stuck) - 1} other threadblocks" if len(stuck) > 1 else ""
            text = f"{action.op.name} waits forever{how}{more}"
            self.findings.add("P09", text, rank, block, action.step)
        elif not self.custom and not self.findings.has("P10"):
            self._judge(program, machine, results, where)

    def _judge(
        self,
        program: Resolved,
        machine: Machine,
        results: dict[tuple[int, int], list[int]],
        where: str,
    ) -> None:
        """Compare what every launch left with what the collective promises (P11)."""
        header = self.header
        roots: list[int | None] = [None]
        if header.collective.rooted:
            roots = list(range(header.ranks))
        faults = [self._fault(program, machine, results, root) for root in roots]
        right = [root for root, fault in zip(roots, faults, strict=True) if fault is None]
        if right:
            self.root = right[0]
            return
        text, rank = faults[0] or ("", 0)
        self.findings.add("P11", text + where, rank)

    def _fault(
        self,
        program: Resolved,
        machine: Machine,
        results: dict[tuple[int, int], list[int]],
        root: int | None,
    ) -> tuple[str, int] | None:
        """Return what is wrong with the results, and on which rank; None where nothing is."""
        values, cells = machine.memory.values, program.cells
        wanted = [expected(self.header, rank, root) for rank in range(self.header.ranks)]
        for (rank, launch), row in sorted(results.items()):
            for place, (number, mask) in enumerate(wanted[rank]):
                for cell in range(cells):
                    value = row[place * cells + cell]
                    key = launch * machine.key + number * cells + cell
                    if values.chunk[value] == key and values.mask[value] == mask:
                        continue
                    held = _held(machine, value, launch)
                    text = f"launch {launch}: output chunk {place} must hold {ranks(mask)}"
                    return f"{text} of chunk {number}; it holds {held}", rank
        return None


def _held(machine: Machine, value: int, launch: int) -> str:
    values, cells = machine.memory.values, machine.program.cells
    if value in values.fault:
        return "what no rank sent" if value == 0 else "a sum of different chunks, or one twice"
    when, rest = divmod(values.chunk[value], machine.key)
    old = "" if when == launch else f", left by launch {when}"
    return f"{ranks(values.mask[value])} of chunk {rest // cells}{old}"
