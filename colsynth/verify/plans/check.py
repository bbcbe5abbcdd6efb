"""Bytes of a plan in, a report out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.model import Header, Report
from colsynth.runtimes.plans.form import Plan, operations
from colsynth.runtimes.rules import Findings
from colsynth.units import format_size, plural
from colsynth.verify.contract import buffer_chunks
from colsynth.verify.plans.counters import check_counters, counters
from colsynth.verify.plans.counts import Unknown, goes_forward, hangs, unbalanced
from colsynth.verify.plans.cut import Cut, cut
from colsynth.verify.plans.judge import first_fault
from colsynth.verify.plans.lengths import (
    Length,
    Lengths,
    cut_alike,
    even_lengths,
    span,
    uneven_lengths,
)
from colsynth.verify.plans.lint import lint_plan
from colsynth.verify.plans.machine import Outcome, execute
from colsynth.verify.plans.program import call_mode, resolve, uses_packets
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
            ("modes", call_mode(header)),
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
        program = resolve(plan, self.header)
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
                self._run(program, length, launches)
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

    def _run(self, program: Resolved, length: Length, launches: int) -> None:
        where = f" in messages of {format_size(length.call * self.header.chunks)}"
        if length.turns is not None:
            self.tried.append(f"{plural(length.turns, 'tile')}, {launches} launches")
            where = ""
        pieces = cut(self.plan, program, length.chunk)
        used = counters(pieces)
        check_counters(pieces, used, self.findings)
        if self.findings.failed:
            return
        found = execute(pieces, used, launches, flushes=bool(self.profile.plans["flushes"]))
        for number in range(found.raced):
            race = found.races[min(number, len(found.races) - 1)]
            at = program.blocks[race.block]
            self.findings.add("P10", race.text + where, *at, race.action.step)
        if found.stuck:
            block, action = found.stuck[0]
            how = where or f", with {plural(length.turns or 1, 'iteration')} per chunk"
            others = len(found.stuck) - 1
            more = f", {plural(others, 'other threadblock')} too" if others else ""
            text = f"{action.op.name} waits forever{how}{more}"
            self.findings.add("P09", text, *program.blocks[block], action.step)
        elif not self.custom and not self.findings.has("P10"):
            self._judge(pieces, found, where)

    def _judge(self, pieces: Cut, found: Outcome, where: str) -> None:
        """Compare what every launch left with what the collective promises (P11)."""
        header = self.header
        roots: list[int | None] = [None]
        if header.collective.rooted:
            roots = list(range(header.ranks))
        faults = []
        for root in roots:
            fault = first_fault(pieces, found, root)
            if fault is None:
                self.root = root
                return
            faults.append(fault)
        text, rank = faults[0]
        self.findings.add("P11", text + where, rank)
