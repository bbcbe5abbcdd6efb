"""Rules P03 to P05, P16 and P17: one operation of a threadblock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from colsynth.runtimes.plans.form import Op, Operand, Plan, PlanGpu
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.units import plural
from colsynth.verify.plans.lists import TYPES, block_lists, buffer_lists, chunks_in
from colsynth.verify.plans.shapes import (
    BARRIERS,
    MEMORY_ONLY,
    NEWER,
    PACKETS,
    PAIRED,
    REMOTE_FROM,
    SHAPES,
    SWITCH,
    UNTRIED,
)
from colsynth.verify.plans.switches import lint_switch

_GROUP = 1024
"""Most slices of an operation: no GPU holds more threadblocks."""


@dataclass(frozen=True, slots=True)
class Operations:
    """Checks the operations of one threadblock.

    Parameters
    ----------
    plan : Plan
    rank, place : int
        The rank, and the number of the threadblock in it.
    channels, buffers : mapping of str to sequence of int
        What the threadblock lists, by type of channel (`block_lists`, `buffer_lists`).
    profile : Profile
    findings : Findings
    """

    plan: Plan
    rank: int
    place: int
    channels: Mapping[str, Sequence[int]]
    buffers: Mapping[str, Sequence[int]]
    profile: Profile
    findings: Findings

    @property
    def gpu(self) -> PlanGpu:
        """The GPU of the threadblock."""
        return self.plan.gpus[self.rank]

    @classmethod
    def of(
        cls, plan: Plan, rank: int, place: int, profile: Profile, findings: Findings
    ) -> Operations:
        """Return the checks for a threadblock, which refers to what it lists."""
        block = plan.gpus[rank].threadblocks[place]
        channels, buffers = block_lists(block), buffer_lists(block)
        return cls(plan, rank, place, channels, buffers, profile, findings)

    def lint(self, op: Op, step: int) -> None:
        """Check an operation that is no pipeline."""
        shape = SHAPES.get(op.name)
        if shape is None:
            self.add("P04", f"{op.name!r} is never right", step)
            return
        if op.name in NEWER and tuple(self.profile.plans["version"]) < NEWER[op.name]:
            text = f"{op.name} needs version {'.'.join(map(str, NEWER[op.name]))} of MSCCL++"
            self.add("P17", text, step)
        if op.name in UNTRIED:
            self.add("P16", f"{op.name} is not executed: its result is not checked", step)
            return
        if op.name in SWITCH:
            block = self.gpu.threadblocks[self.place]
            lint_switch(self.plan, self.gpu, self.rank, block, op, step, self.findings)
            return
        least, most = shape
        if not (least[0] <= len(op.src_buff) and least[1] <= len(op.dst_buff)):
            self.add("P04", f"{op.name} lacks an operand", step)
        if len(op.src_buff) > most[0] or (most[1] is not None and len(op.dst_buff) > most[1]):
            self.add("P04", f"{op.name} has too many operands", step)
        self.limit("sources", len(op.src_buff), "operands", step)
        self.limit("destinations", len(op.dst_buff), "operands", step)
        group = op.tbg_info
        if group is not None and not 0 <= group.tb_id < group.tbg_size <= _GROUP:
            self.add("P05", f"slice {group.tb_id} of {group.tbg_size}", step)
        self._channel_ids(op, step)
        self._sizes(op, step)
        self._operands(op, step)
        self._counters(op, step)

    def _channel_ids(self, op: Op, step: int) -> None:
        names = op.name in ("signal", "wait", "rlxsignal", "rlxwait", "flush", "pws", "pwsf")
        puts = op.name in ("put", "ppkt", "rppkt") and op.channel_type == "port"
        if op.name in ("pws", "pwsf", "flush") and op.channel_type != "port":
            text = f"{op.name} on a {op.channel_type} channel signals nobody: the peer hangs"
            self.add("P04", text, step)
        if op.name in MEMORY_ONLY and op.channel_type == "port":
            self.add("P04", f"{op.name} needs memory channels", step)
        if (names or puts) and op.channel_type not in TYPES:
            self.add("P04", f"{op.name} names no type of channel", step)
        if not names and not puts:
            return
        self.limit("channels", len(op.channel_ids), "op_channels", step)
        if not op.channel_ids:
            self.add("P04", f"{op.name} names no channel", step)
        known = len(self.channels.get(op.channel_type or "", ()))
        if any(not 0 <= one < known for one in op.channel_ids):
            self.add("P05", f"{op.name} uses a channel that the threadblock lacks", step)
        if len(set(op.channel_ids)) < len(op.channel_ids):
            self.add("P04", f"{op.name} uses a channel twice", step)
        if op.name in ("put", "pws", "pwsf", "ppkt", "rppkt") and len(op.channel_ids) != len(
            op.dst_buff
        ):
            self.add("P04", f"{op.name} needs one channel per destination", step)

    def _sizes(self, op: Op, step: int) -> None:
        sizes = {operand.size for operand in (*op.src_buff, *op.dst_buff)}
        if op.name not in PAIRED and len(sizes) > 1:
            self.add("P04", f"{op.name} has operands of different sizes", step)
        if op.name in PAIRED and len(op.src_buff) != len(op.dst_buff):
            self.add("P04", f"{op.name} needs one source per destination", step)
        if any(a.size != b.size for a, b in zip(op.src_buff, op.dst_buff, strict=False)):
            self.add("P04", f"{op.name} copies to another size", step)

    def _operands(self, op: Op, step: int) -> None:
        remote_source, remote_target = REMOTE_FROM.get(op.name, (None, None))
        for operands, first in ((op.src_buff, remote_source), (op.dst_buff, remote_target)):
            remote = sum(operand.buffer_id is not None for operand in operands)
            self.limit("remote operands", remote, "remote", step)
            for k, operand in enumerate(operands):
                far = first is not None and k >= first
                self._operand(op, operand, far, step)
        if op.name == "put" and op.channel_type == "memory":
            kinds = {operand.type for operand in op.src_buff}
            if len(kinds) > 1:
                self.add("P04", "all sources of a put must lie in one buffer", step)
        for side, first_packet in PACKETS.get(op.name, ()):
            operands = op.src_buff if side == "src" else op.dst_buff
            for operand in operands[first_packet:]:
                if operand.type not in (None, "s"):
                    self.add("P04", f"{op.name} keeps packets outside scratch", step)

    def _operand(self, op: Op, operand: Operand, far: bool, step: int) -> None:
        chunks = None
        if far != (operand.buffer_id is not None) or far == (operand.type is not None):
            where = "of a peer" if far else "of its own"
            self.add("P04", f"an operand of {op.name} must be a buffer {where}", step)
            return
        if far:
            known = self.buffers.get(op.channel_type or "memory", [])
            if not 0 <= (operand.buffer_id or 0) < len(known):
                text = f"{op.name} uses a remote buffer that the threadblock lacks"
                self.add("P05", text, step)
                return
            chunks = self._remote_chunks(known[operand.buffer_id or 0])
        else:
            chunks = chunks_in(self.gpu, operand.type)
        if chunks is None:
            self.add("P05", f"there is no buffer {operand.type!r}", step)
        elif operand.size < 1 or not 0 <= operand.index <= chunks - operand.size:
            last = operand.index + operand.size - 1
            text = f"{op.name} reaches chunk {last} of a buffer of {plural(chunks, 'chunk')}"
            self.add("P05", text, step)

    def _remote_chunks(self, number: int) -> int | None:
        """Return the chunks of a remote buffer, None where there is no such buffer."""
        if not 0 <= number < len(self.gpu.remote_buffers):
            return None
        remote, gpus = self.gpu.remote_buffers[number], self.plan.gpus
        if not 0 <= remote.rank < len(gpus):
            return None
        return chunks_in(gpus[remote.rank], remote.type)

    def _counters(self, op: Op, step: int) -> None:
        if op.name in ("sem_acquire", "sem_release"):
            count = len(op.semaphore_ids)
            self.limit("semaphores", count, "op_semaphores", step)
            known = len(self.gpu.semaphores)
            if not count or any(not 0 <= one < known for one in op.semaphore_ids):
                self.add("P05", f"{op.name} uses a semaphore that is not listed", step)
        if op.name == "barrier":
            if not 0 <= (-1 if op.barrier_id is None else op.barrier_id) < BARRIERS:
                text = f"barrier {op.barrier_id} is none of 0 to {BARRIERS - 1}"
                self.add("P05", text, step)
            if not op.num_threadblocks:
                self.add("P04", "the barrier does not say who takes part", step)
        most = max(len(op.channel_ids), len(op.semaphore_ids))
        if most > self.plan.num_threads_per_block:
            self.add("P03", f"{op.name} needs {most} threads", step)

    def limit(self, what: str, found: int, name: str, step: int | None = None) -> None:
        """Check a number against a limit of the runtime (P03)."""
        most = self.profile.plans[name]
        lint_limit(self.findings, what, found, most, self.rank, self.place, step)

    def add(self, rule: str, text: str, step: int | None = None) -> None:
        """Report a rule that the threadblock, or an operation of it, breaks."""
        self.findings.add(rule, text, self.rank, self.place, step)


def lint_limit(
    findings: Findings, what: str, found: int, most: int | None, *where: int | None
) -> None:
    """Check a number against a limit, if any (P03); `where` are rank, threadblock and step."""
    if most is not None and found > most:
        findings.add("P03", f"{what}: {found}, but there can be {most}", *where)
