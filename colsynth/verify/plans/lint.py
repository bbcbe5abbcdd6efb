"""Rules P02 to P08 and P12 to P17: what can be seen without executing a plan."""

from __future__ import annotations

from colsynth.runtimes.plans.form import Block, Plan, PlanGpu, operations
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.verify.plans.lists import BUFFERS, SWITCH_TYPE, TYPES, chunks_in, switch_groups
from colsynth.verify.plans.operations import Operations, lint_limit
from colsynth.verify.plans.pipelines import lint_pipeline
from colsynth.verify.plans.ranges import lint_header, lint_pairs, lint_range
from colsynth.verify.plans.switches import lint_group_pairs, lint_groups


def lint_plan(plan: Plan, profile: Profile, findings: Findings) -> bool:
    """Report what is wrong with the form of a plan; return whether it can be executed."""
    lint_header(plan, findings)
    for rank, gpu in enumerate(plan.gpus):
        _Gpu(plan, gpu, rank, profile, findings).lint()
    if findings.failed:
        return False
    lint_pairs(plan, findings)
    lint_group_pairs(plan, findings)
    lint_range(plan, findings)
    return not findings.failed


class _Gpu:
    """Checks one rank."""

    def __init__(
        self, plan: Plan, gpu: PlanGpu, rank: int, profile: Profile, findings: Findings
    ) -> None:
        self.plan, self.gpu, self.rank = plan, gpu, rank
        self.profile, self.findings = profile, findings
        self.ends = {
            kind: [p for c in gpu.channels if c.channel_type == kind for p in c.connected_to]
            for kind in TYPES
        }

    def lint(self) -> None:
        gpu = self.gpu
        if gpu.id != self.rank:
            self._add("P02", f"the GPU at place {self.rank} has id {gpu.id}")
        if gpu.input_chunks < 1 or gpu.output_chunks < 1 or gpu.scratch_chunks < 0:
            self._add("P02", "input and output need at least one chunk each")
        for number, semaphore in enumerate(gpu.semaphores):
            if semaphore.init_value < 0:
                self._add("P02", f"semaphore {number} begins at {semaphore.init_value}")
        if not gpu.threadblocks:
            self._add("P02", "a GPU without threadblocks cannot be launched")
        for what in BUFFERS:
            count = chunks_in(gpu, what) or 0
            self._limit(f"chunks of buffer {what}", count, self.profile.max_offset + 1)
        self._channels()
        lint_groups(self.plan, self.gpu, self.rank, self.findings)
        for buffer in gpu.remote_buffers:
            self._remote(buffer.rank, buffer.type, buffer.access_channel_types)
        for place, block in enumerate(gpu.threadblocks):
            self._block(block, place)
        self._limit("threadblocks", len(gpu.threadblocks), self.profile.max_threadblocks)

    def _channels(self) -> None:
        for channels in self.gpu.channels:
            if channels.channel_type not in (*TYPES, SWITCH_TYPE):
                self._add("P05", f"there are no channels of type {channels.channel_type!r}")
        for kind, peers in self.ends.items():
            for peer in peers:
                if not 0 <= peer < len(self.plan.gpus) or peer == self.rank:
                    self._add("P05", f"a {kind} channel is connected to rank {peer}")
        self._limit("port channels", len(self.ends["port"]), self.profile.plans["port_channels"])

    def _remote(self, owner: int, kind: str, types: tuple[str, ...]) -> None:
        if not 0 <= owner < len(self.plan.gpus) or kind not in BUFFERS:
            self._add("P05", f"there is no buffer {kind!r} of rank {owner}")
        if not set(types) <= set(TYPES):
            self._add("P05", f"a remote buffer is reached over {', '.join(types)}")
        if kind != "s":
            text = f"buffer {kind!r} of rank {owner} is reached from outside: every rank must"
            self._add("P14", f"{text} pass it at the same offset of its allocation")

    def _block(self, block: Block, place: int) -> None:
        if block.id != place:
            self._add("P02", f"the threadblock at place {place} has id {block.id}", place)
        checks = Operations.of(self.plan, self.rank, place, self.profile, self.findings)
        checks.limit("operations", len(operations(block)), "operations")
        for table, what, known in (
            (checks.channels, "channels", self._known()),
            (checks.buffers, "buffers", dict.fromkeys(TYPES, len(self.gpu.remote_buffers))),
        ):
            for kind, ids in table.items():
                checks.limit(f"{kind} {what}", len(ids), f"block_{what}")
                if any(not 0 <= one < known[kind] for one in ids):
                    checks.add("P05", f"{kind} {what} are used that the GPU does not list")
        for number, op in enumerate(block.ops):
            if op.name == "pipeline":
                lint_pipeline(checks, op, number)
            else:
                checks.lint(op, number)

    def _known(self) -> dict[str, int]:
        """Return how many channels the GPU has, by type."""
        known = {kind: len(ends) for kind, ends in self.ends.items()}
        return {**known, SWITCH_TYPE: len(switch_groups(self.gpu))}

    def _limit(self, what: str, found: int, most: int | None) -> None:
        lint_limit(self.findings, what, found, most, self.rank)

    def _add(self, rule: str, text: str, block: int | None = None) -> None:
        self.findings.add(rule, text, self.rank, block)
