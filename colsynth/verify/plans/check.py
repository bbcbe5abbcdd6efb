"""Bytes of a plan in, a report out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.model import Header, Report
from colsynth.runtimes.plans.form import Plan, operations
from colsynth.runtimes.rules import Findings
from colsynth.units import plural
from colsynth.verify.contents import ranks
from colsynth.verify.contract import buffer_chunks, expected
from colsynth.verify.plans.counters import check_counters
from colsynth.verify.plans.lint import lint_plan
from colsynth.verify.plans.machine import Machine
from colsynth.verify.plans.program import (
    Resolved,
    depth_of,
    in_place,
    resolve,
    units_of,
    uses_packets,
)
from colsynth.verify.plans.shapes import UNTRIED

if TYPE_CHECKING:
    from colsynth.runtimes.profile import Profile
    from colsynth.runtimes.reader import Reading

_MOST_DEPTH = 30
"""Iterations in a slot beyond which execution would take too long."""


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
        units, depth = units_of(plan), depth_of(plan)
        if len(units) > 1 or (depth or 0) > _MOST_DEPTH:
            text = "pipelines have units of several sizes, or very many in a slot: not executed"
            self.findings.add("P16", text)
            return
        longest = 1 if not units else 3 if depth is None else depth + 2
        if depth is not None and self._bare():
            longest = min(longest, depth)
        packets = uses_packets(plan)
        launches = 3 if packets and plan.use_double_scratch_buffer else 2
        for tiles in dict.fromkeys((1, longest)):
            self._run(tiles, launches)
            if self.findings.failed:
                self.content = "not right: see the findings"
                return
        self.content = "no agreed result" if self.custom else "executed symbolically"

    def _bare(self) -> bool:
        """Whether anything outside pipelines moves data through scratch."""
        ops = (op for gpu in self.plan.gpus for block in gpu.threadblocks for op in block.ops)
        operands = (o for op in ops for o in (*op.src_buff, *op.dst_buff))
        return any(o.type == "s" or o.buffer_id is not None for o in operands)

    def _run(self, tiles: int, launches: int) -> None:
        self.tried.append(f"{plural(tiles, 'tile')}, {launches} launches")
        program = resolve(self.plan, self.header, in_place(self.header), tiles)
        check_counters(program, self.findings)
        if self.findings.failed:
            return
        results: dict[tuple[int, int], list[int]] = {}

        def race(rank: int, block: int, step: int | None, text: str) -> None:
            self.findings.add("P10", text, rank, block, step)

        def finished(machine: Machine, rank: int, launch: int) -> None:
            first = int(program.memory.base[rank, 1]) * program.cells
            count = int(program.memory.size[rank, 1]) * program.cells
            results[rank, launch] = machine.memory.value[first : first + count]

        flushes = bool(self.profile.plans["flushes"])
        machine = Machine(program, launches, race, finished, flushes=flushes)
        stuck = machine.run()
        if stuck:
            rank, block, action = stuck[0]
            text = f"{action.op.name} waits forever, with {plural(tiles, 'iteration')} per chunk"
            more = f"; so do {len(stuck) - 1} other threadblocks" if len(stuck) > 1 else ""
            self.findings.add("P09", text + more, rank, block, action.step)
        elif not self.custom and not self.findings.has("P10"):
            self._judge(program, machine, results)

    def _judge(
        self, program: Resolved, machine: Machine, results: dict[tuple[int, int], list[int]]
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
        self.findings.add("P11", text, rank)

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
