"""Rules P02 to P08 and P12 to P17: what can be seen without executing a plan."""

from __future__ import annotations

from colsynth.runtimes.plans.form import (
    Block,
    Loop,
    Op,
    Operand,
    Plan,
    PlanGpu,
    operations,
    scratch_stride,
)
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.units import plural
from colsynth.verify.plans.lists import (
    SWITCH_TYPE,
    TYPES,
    block_lists,
    buffer_lists,
    switch_groups,
)
from colsynth.verify.plans.ranges import OFFSETS, lint_header, lint_pairs, lint_range
from colsynth.verify.plans.shapes import (
    BARRIERS,
    MEMORY_ONLY,
    NEWER,
    PACKETS,
    REMOTE_FROM,
    SHAPES,
    SWITCH,
    UNTRIED,
)
from colsynth.verify.plans.switches import lint_group_pairs, lint_groups, lint_switch

_ITERATIONS = 65535
_GROUP = 1024
"""Most slices of an operation: no GPU holds more threadblocks."""
_BUFFERS = ("i", "o", "s")


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
        self.limits = profile.plans
        self.chunks = _sizes(gpu)
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
        for what, count in self.chunks.items():
            self._limit(f"chunks of buffer {what}", count, None, self.profile.max_offset + 1)
        self._channels()
        lint_groups(self.plan, self.gpu, self.rank, self.findings)
        for buffer in gpu.remote_buffers:
            self._remote(buffer.rank, buffer.type, buffer.access_channel_types)
        for place, block in enumerate(gpu.threadblocks):
            self._block(block, place)
        self._limit("threadblocks", len(gpu.threadblocks), None, self.profile.max_threadblocks)

    def _channels(self) -> None:
        for channels in self.gpu.channels:
            if channels.channel_type not in (*TYPES, SWITCH_TYPE):
                self._add("P05", f"there are no channels of type {channels.channel_type!r}")
        for kind, peers in self.ends.items():
            for peer in peers:
                if not 0 <= peer < len(self.plan.gpus) or peer == self.rank:
                    self._add("P05", f"a {kind} channel is connected to rank {peer}")
        self._limit("port channels", len(self.ends["port"]), "port_channels")

    def _remote(self, owner: int, kind: str, types: tuple[str, ...]) -> None:
        if not 0 <= owner < len(self.plan.gpus) or kind not in _BUFFERS:
            self._add("P05", f"there is no buffer {kind!r} of rank {owner}")
        if not set(types) <= set(TYPES):
            self._add("P05", f"a remote buffer is reached over {', '.join(types)}")
        if kind != "s":
            text = f"buffer {kind!r} of rank {owner} is reached from outside: every rank must"
            self._add("P14", f"{text} pass it at the same offset of its allocation")

    def _block(self, block: Block, place: int) -> None:
        if block.id != place:
            self._add("P02", f"the threadblock at place {place} has id {block.id}", place)
        self._limit("operations", len(operations(block)), "operations", block=place)
        lists, buffers = block_lists(block), buffer_lists(block)
        for table, what, known in (
            (lists, "channels", self._known()),
            (buffers, "buffers", dict.fromkeys(TYPES, len(self.gpu.remote_buffers))),
        ):
            for kind, ids in table.items():
                self._limit(f"{kind} {what}", len(ids), f"block_{what}", block=place)
                if any(not 0 <= one < known[kind] for one in ids):
                    self._add("P05", f"{kind} {what} are used that the GPU does not list", place)
        for number, op in enumerate(block.ops):
            if op.name == "pipeline":
                self._pipeline(op, lists, buffers, place, number)
            else:
                self._op(op, lists, buffers, place, number)

    def _known(self) -> dict[str, int]:
        """Return how many channels the GPU has, by type."""
        known = {kind: len(ends) for kind, ends in self.ends.items()}
        return {**known, SWITCH_TYPE: len(switch_groups(self.gpu))}

    def _pipeline(
        self,
        op: Op,
        channels: dict[str, list[int]],
        buffers: dict[str, list[int]],
        place: int,
        number: int,
    ) -> None:
        loop = op.iter_context
        if loop is None or loop.unit_size < 1 or loop.num_chunks < 1:
            self._add("P12", "the pipeline does not say how to cut its data", place, number)
            return
        self._loop(loop, place, number)
        for inner in op.ops:
            if inner.name == "pipeline":
                self._add("P12", "pipelines do not nest", place, number)
                continue
            self._op(inner, channels, buffers, place, number)
            sizes = {operand.size for operand in (*inner.src_buff, *inner.dst_buff)}
            sliced = inner.tbg_info is not None and inner.tbg_info.tbg_size > 1
            if sliced or sizes - {loop.num_chunks}:
                text = f"{inner.name} moves other than the {loop.num_chunks} chunks of the loop"
                self._add("P12", text, place, number)
            if self.plan.reuse_resources and inner.name in ("re", "res"):
                self._wraps(inner, place, number)

    def _loop(self, loop: Loop, place: int, number: int) -> None:
        """Check how a pipeline cuts its data."""
        unit, most = loop.unit_size, min(self.plan.max_message_size, OFFSETS - 1)
        if unit % max(1, self.plan.buffer_alignment):
            self._add("P12", f"{unit} bytes are no multiple of the alignment", place, number)
        if self.plan.reuse_resources and self.gpu.scratch_chunks:
            stride = scratch_stride(self.plan, self.gpu)
            if stride % unit:
                text = f"units of {unit} bytes do not divide the {stride} of a slot"
                self._add("P12", text, place, number)
        chunk = most // max(self.gpu.input_chunks, self.gpu.output_chunks, 1)
        turns = -(-loop.num_chunks * chunk // unit)
        if turns > _ITERATIONS:
            text = f"{turns} iterations at the largest message; 16 bits count them"
            self._add("P12", text, place, number)

    def _wraps(self, op: Op, place: int, number: int) -> None:
        """Check that later sources wrap as they should: the executor asks the target's type."""
        for k, source in enumerate(op.src_buff[1:], 1):
            target = op.dst_buff[k] if k < len(op.dst_buff) else None
            wraps = target is not None and (target.type == "s" or target.buffer_id == 2)
            if wraps != (source.type == "s"):
                text = f"source {k} of {op.name} is read at the wrong place once slots wrap"
                self._add("P13", text, place, number)

    def _op(
        self,
        op: Op,
        channels: dict[str, list[int]],
        buffers: dict[str, list[int]],
        place: int,
        number: int,
    ) -> None:
        shape = SHAPES.get(op.name)
        if shape is None:
            self._add("P04", f"{op.name!r} is never right", place, number)
            return
        if op.name in NEWER and tuple(self.limits["version"]) < NEWER[op.name]:
            text = f"{op.name} needs version {'.'.join(map(str, NEWER[op.name]))} of MSCCL++"
            self._add("P17", text, place, number)
        if op.name in UNTRIED:
            self._add("P16", f"{op.name} is not executed: its result is not checked", place, number)
            return
        if op.name in SWITCH:
            block = self.gpu.threadblocks[place]
            lint_switch(self.plan, self.gpu, self.rank, block, op, number, self.findings)
            return
        least, most = shape
        if not (least[0] <= len(op.src_buff) and least[1] <= len(op.dst_buff)):
            self._add("P04", f"{op.name} lacks an operand", place, number)
        if len(op.src_buff) > most[0] or (most[1] is not None and len(op.dst_buff) > most[1]):
            self._add("P04", f"{op.name} has too many operands", place, number)
        self._limit("sources", len(op.src_buff), "operands", block=place, step=number)
        self._limit("destinations", len(op.dst_buff), "operands", block=place, step=number)
        group = op.tbg_info
        if group is not None and not 0 <= group.tb_id < group.tbg_size <= _GROUP:
            self._add("P05", f"slice {group.tb_id} of {group.tbg_size}", place, number)
        self._channel_ids(op, channels, place, number)
        self._operands(op, buffers, place, number)
        self._counters(op, place, number)

    def _channel_ids(self, op: Op, channels: dict[str, list[int]], place: int, number: int) -> None:
        names = op.name in ("signal", "wait", "rlxsignal", "rlxwait", "flush", "pws", "pwsf")
        puts = op.name in ("put", "ppkt", "rppkt") and op.channel_type == "port"
        if op.name in ("pws", "pwsf", "flush") and op.channel_type != "port":
            text = f"{op.name} on a {op.channel_type} channel signals nobody: the peer hangs"
            self._add("P04", text, place, number)
        if op.name in MEMORY_ONLY and op.channel_type == "port":
            self._add("P04", f"{op.name} needs memory channels", place, number)
        if (names or puts) and op.channel_type not in TYPES:
            self._add("P04", f"{op.name} names no type of channel", place, number)
        if not names and not puts:
            return
        self._limit("channels", len(op.channel_ids), "op_channels", block=place, step=number)
        if not op.channel_ids:
            self._add("P04", f"{op.name} names no channel", place, number)
        known = len(channels.get(op.channel_type or "", ()))
        if any(not 0 <= one < known for one in op.channel_ids):
            self._add("P05", f"{op.name} uses a channel that the threadblock lacks", place, number)
        if len(set(op.channel_ids)) < len(op.channel_ids):
            self._add("P04", f"{op.name} uses a channel twice", place, number)
        if op.name in ("put", "pws", "pwsf", "ppkt", "rppkt") and len(op.channel_ids) != len(
            op.dst_buff
        ):
            self._add("P04", f"{op.name} needs one channel per destination", place, number)

    def _operands(self, op: Op, buffers: dict[str, list[int]], place: int, number: int) -> None:
        sizes = {operand.size for operand in (*op.src_buff, *op.dst_buff)}
        if op.name not in ("put", "pws", "pwsf", "ppkt") and len(sizes) > 1:
            self._add("P04", f"{op.name} has operands of different sizes", place, number)
        if any(a.size != b.size for a, b in zip(op.src_buff, op.dst_buff, strict=False)):
            self._add("P04", f"{op.name} copies to another size", place, number)
        remote_source, remote_target = REMOTE_FROM.get(op.name, (None, None))
        for operands, first in ((op.src_buff, remote_source), (op.dst_buff, remote_target)):
            remote = sum(operand.buffer_id is not None for operand in operands)
            self._limit("remote operands", remote, "remote", block=place, step=number)
            for k, operand in enumerate(operands):
                far = first is not None and k >= first
                self._operand(op, operand, far, buffers, place, number)
        if op.name == "put" and op.channel_type == "memory":
            kinds = {operand.type for operand in op.src_buff}
            if len(kinds) > 1:
                self._add("P04", "all sources of a put must lie in one buffer", place, number)
        for side, first_packet in PACKETS.get(op.name, ()):
            operands = op.src_buff if side == "src" else op.dst_buff
            for operand in operands[first_packet:]:
                if operand.type not in (None, "s"):
                    self._add("P04", f"{op.name} keeps packets outside scratch", place, number)

    def _operand(
        self,
        op: Op,
        operand: Operand,
        far: bool,
        buffers: dict[str, list[int]],
        place: int,
        number: int,
    ) -> None:
        chunks = None
        if far != (operand.buffer_id is not None) or far == (operand.type is not None):
            where = "of a peer" if far else "of its own"
            self._add("P04", f"an operand of {op.name} must be a buffer {where}", place, number)
            return
        if far:
            known = buffers.get(op.channel_type or "memory", [])
            if not 0 <= (operand.buffer_id or 0) < len(known):
                text = f"{op.name} uses a remote buffer that the threadblock lacks"
                self._add("P05", text, place, number)
                return
            chunks = self._remote_chunks(known[operand.buffer_id or 0])
        elif operand.type in self.chunks:
            chunks = self.chunks[operand.type or ""]
        if chunks is None:
            self._add("P05", f"there is no buffer {operand.type!r}", place, number)
        elif operand.size < 1 or not 0 <= operand.index <= chunks - operand.size:
            last = operand.index + operand.size - 1
            text = f"{op.name} reaches chunk {last} of a buffer of {plural(chunks, 'chunk')}"
            self._add("P05", text, place, number)

    def _remote_chunks(self, number: int) -> int | None:
        """Return the chunks of a remote buffer, None where there is no such buffer."""
        if not 0 <= number < len(self.gpu.remote_buffers):
            return None
        remote, gpus = self.gpu.remote_buffers[number], self.plan.gpus
        if not 0 <= remote.rank < len(gpus):
            return None
        return _sizes(gpus[remote.rank]).get(remote.type)

    def _counters(self, op: Op, place: int, number: int) -> None:
        if op.name in ("sem_acquire", "sem_release"):
            count = len(op.semaphore_ids)
            self._limit("semaphores", count, "op_semaphores", block=place, step=number)
            known = len(self.gpu.semaphores)
            if not count or any(not 0 <= one < known for one in op.semaphore_ids):
                self._add("P05", f"{op.name} uses a semaphore that is not listed", place, number)
        if op.name == "barrier":
            if not 0 <= (-1 if op.barrier_id is None else op.barrier_id) < BARRIERS:
                text = f"barrier {op.barrier_id} is none of 0 to {BARRIERS - 1}"
                self._add("P05", text, place, number)
            if not op.num_threadblocks:
                self._add("P04", "the barrier does not say who takes part", place, number)
        most = max(len(op.channel_ids), len(op.semaphore_ids))
        if most > self.plan.num_threads_per_block:
            self._add("P03", f"{op.name} needs {most} threads", place, number)

    def _limit(
        self,
        what: str,
        found: int,
        name: str | None,
        most: int | None = None,
        block: int | None = None,
        step: int | None = None,
    ) -> None:
        most = self.limits[name] if name is not None else most
        if most is not None and found > most:
            self._add("P03", f"{what}: {found}, but there can be {most}", block, step)

    def _add(self, rule: str, text: str, block: int | None = None, step: int | None = None) -> None:
        self.findings.add(rule, text, self.rank, block, step)


def _sizes(gpu: PlanGpu) -> dict[str, int]:
    return {"i": gpu.input_chunks, "o": gpu.output_chunks, "s": gpu.scratch_chunks}
