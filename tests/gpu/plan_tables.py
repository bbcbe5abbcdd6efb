"""MSCCL++ plans as the tables that ``plans.cu`` reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from colsynth.execute.addresses import BUFFERS
from colsynth.execute.moves import FIRST_PACKET, FIRST_SENT
from colsynth.execute.team import Team, listed
from tests.gpu.plan_layout import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from colsynth.execute.definition import Call
    from colsynth.runtimes.plans.form import Block, Op, Operand, Plan
    from colsynth.runtimes.profile import Profile

CODES = (
    "nop", "barrier", "move", "packets", "signal", "rlxsignal", "wait", "rlxwait", "sem_acquire",
    "sem_release", "post", "port signal", "flush", "pipeline",
)  # fmt: skip
"""Operations of the kernel, by code."""
WRAPS, PACKED, HALVES, USER = 1, 2, 4, 8
"""Flags of an operand: its iterations wrap in scratch; it is packets; it lies in the half of
scratch that the call uses; it lies in the user's buffers."""
_PUTS = frozenset({"put", "pws", "pwsf", "ppkt", "rppkt"})


@dataclass(frozen=True)
class Tables:
    """A plan at one message size, of B threadblocks and proxies.

    Parameters
    ----------
    blocks : int64 (B, 12)
        Rank; first operation, first operand and first number, each with how many there are; bytes
        to the second half of scratch; S, behind which slots begin again; threadblocks of the rank;
        queue to its proxy, or -1; whether it is the proxy itself.
    ops : int32 (O, 10)
        Code; first operand, sources, targets; first number and how many, of a pipeline how many
        operations; slice and slices; two values of the operation's own.
    operands : int64 (P, 3)
        First byte in the arena, bytes, flags.
    ids : int32 (I,)
        Numbers of channels and semaphores, over all ranks.
    workers : int
        Threadblocks; proxies stand behind them in `blocks`.
    channels, barriers, queues : int
    semaphores : int32 (S,)
        What they begin with.
    user_bytes : int
        Of the user's buffers of all ranks, for one call.
    bytes : int
        Of the arena: user's buffers for so many calls, then scratch.
    """

    blocks: NDArray[np.int64]
    ops: NDArray[np.int32]
    operands: NDArray[np.int64]
    ids: NDArray[np.int32]
    workers: int
    channels: int
    barriers: int
    queues: int
    semaphores: NDArray[np.int32]
    user_bytes: int
    bytes: int

    @property
    def shared_bytes(self) -> int:
        """Shared memory in which every threadblock can hold its part."""
        operands, ops, ids = (self.blocks[:, column].max() for column in (4, 2, 6))
        return max(64, int(8 * 3 * operands + 4 * 10 * ops + 4 * ids + 8))


@dataclass
class Rows:
    """Rows of the tables, as they come."""

    layout: Layout
    ops: list[list[int]] = field(default_factory=list)
    operands: list[list[int]] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


@dataclass
class BlockRows:
    """Writes the rows of one threadblock; operands and numbers are counted from its first."""

    rows: Rows
    rank: int
    block: Block

    def __post_init__(self) -> None:
        self.program = self.rows.layout.programs[self.rank]
        lists = listed(self.block.channels), listed(self.block.remote_buffer_refs)
        self.team = Team(self.block, *lists)
        self.begins = len(self.rows.ops), len(self.rows.operands), len(self.rows.ids)

    def write(self) -> list[int]:
        """Write all operations; return first row and number of operations, operands, and ids."""
        for op in self.block.ops:
            self.op(op, inner=False)
        ends = len(self.rows.ops), len(self.rows.operands), len(self.rows.ids)
        pairs = zip(self.begins, ends, strict=True)
        return [number for first, end in pairs for number in (first, end - first)]

    def op(self, op: Op, *, inner: bool) -> None:
        """Write an operation."""
        name, kind = op.name, op.channel_type or "memory"
        if name == "pipeline":
            self._pipeline(op)
        elif name == "nop":
            self._row("nop", op)
        elif name == "barrier":
            place = 16 * self.rank + (op.barrier_id or 0)
            self._row("barrier", op, values=(place, max(1, op.num_threadblocks or 1)))
        elif name.startswith("sem_"):
            first = self.rows.layout.semaphores[self.rank, ""]
            self._row(name, op, ids=[first + k for k in op.semaphore_ids])
        elif name in {"signal", "rlxsignal"}:
            self._row("port signal" if kind == "port" else name, op, ids=self._there(op))
        elif name in {"wait", "rlxwait"}:
            ids = [self._channel(self.rank, kind, number) for number in self._numbers(op)]
            self._row(name if kind == "memory" else "wait", op, ids=ids)
        elif name == "flush":
            self._row(name, op, ids=self._there(op)[: len(op.dst_buff)])
        elif kind == "port" and name in _PUTS:
            self._post(op)
        else:
            self._move(op, inner=inner)

    # Numbers of channels

    def _numbers(self, op: Op) -> list[int]:
        listed_here = self.team.channels[op.channel_type or "memory"]
        return [listed_here[k] for k in op.channel_ids]

    def _channel(self, rank: int, kind: str, number: int) -> int:
        return self.rows.layout.channels[rank, kind] + number

    def _there(self, op: Op) -> list[int]:
        """Return the counters at the other ends of an operation's channels."""
        kind = op.channel_type or "memory"
        ends = [self.program.partner[kind, number] for number in self._numbers(op)]
        if any(number < 0 for _, number in ends):
            raise ValueError(f"a channel of rank {self.rank} has no other end")
        return [self._channel(peer, kind, number) for peer, number in ends]

    # Rows

    def _row(
        self,
        code: str,
        op: Op,
        *,
        sources: Sequence[list[int]] = (),
        targets: Sequence[list[int]] = (),
        ids: Sequence[int] = (),
        values: tuple[int, int] = (0, 0),
    ) -> None:
        rows, group = self.rows, op.tbg_info
        lengths = {operand[1] for operand in (*sources, *targets)}
        if len(lengths) > 1 or any(length % 16 for length in lengths):
            raise ValueError(f"operands of {op.name} have {sorted(lengths)} bytes")
        slices = (group.tb_id, group.tbg_size) if group else (0, 1)
        first, number = (len(rows.operands) - self.begins[1], len(rows.ids) - self.begins[2])
        many = len(sources), len(targets)
        rows.ops.append([CODES.index(code), first, *many, number, len(ids), *slices, *values])
        rows.operands += [*sources, *targets]
        rows.ids += ids

    def _operand(
        self, op: Op, operand: Operand, *, packets: bool = False, wraps: bool | None = None
    ) -> list[int]:
        """Return the row of an operand, of its first iteration in the first half of scratch."""
        program, whole = self.program, msgspec.structs.replace(op, tbg_info=None)
        remote = operand.buffer_id is not None
        if remote:
            found = program.moves.remote(self.team, whole, operand, None, packets=packets)
            rank, buffer, start = found
        else:
            rank, buffer = self.rank, BUFFERS.index(operand.type or "s")
            start = program.where.place(whole, operand, buffer == 2, None)[0]
            start = start * (2 if packets else 1) + program.shift[buffer]
        length = program.where.place(whole, operand, buffer == 2, None)[1]
        if wraps is None:
            wraps = buffer == 2 and program.plan.reuse_resources
        flags = WRAPS * wraps + PACKED * packets + USER * (buffer < 2)
        flags += HALVES * (buffer == 2 and (packets or not remote))
        return [self.rows.layout.bases[rank][buffer] + start, length, flags]

    def _post(self, op: Op) -> None:
        """Write a put that a proxy executes, one for each channel."""
        packets = op.name in {"ppkt", "rppkt"}
        sources = op.src_buff
        if op.name == "rppkt":
            own = self._operand(op, op.src_buff[0], packets=True)
            self._row("packets", op, sources=[own])
            self._row("nop", op)
            sources = (op.src_buff[0],) * len(op.dst_buff)
        ids = self._there(op)
        many = len(ids)
        values = int(op.name in {"pws", "pwsf"}), int(op.name == "pwsf" and self.program.flushes)
        self._row(
            "post",
            op,
            sources=[self._operand(op, one, packets=packets) for one in sources[:many]],
            targets=[self._operand(op, one, packets=packets) for one in op.dst_buff[:many]],
            ids=ids,
            values=values,
        )

    def _move(self, op: Op, *, inner: bool) -> None:
        """Write what all threads do: copies, sums, and packets."""
        name = op.name
        if name in {"glres", "gstore", "gstorepkt"}:
            raise ValueError(f"{name} needs a switch that multicasts; it is not executed here")
        if name in {"pws", "pwsf"}:
            raise ValueError(f"{name} never signals on a memory channel")
        first, sent = FIRST_PACKET.get(name, 99), FIRST_SENT.get(name, 99)
        packets = name in FIRST_PACKET or name in FIRST_SENT
        if packets and inner:
            raise ValueError(f"{name} stands in a pipeline")
        sources, targets = list(op.src_buff), list(op.dst_buff)
        if name == "get":  # it exchanges the offsets of its operands (contract T5)
            far, near = sources[0].index, targets[0].index
            sources = [msgspec.structs.replace(sources[0], index=near)]
            targets = [msgspec.structs.replace(targets[0], index=far)]
        if name == "re":
            targets = targets[:1]
        wraps = self.program.moves._wraps
        given = [
            self._operand(op, one, packets=k >= first, wraps=wraps(op, k))
            for k, one in enumerate(sources)
        ]
        taken = [
            self._operand(op, one, packets=packets and (one.buffer_id is not None or k >= sent))
            for k, one in enumerate(targets)
        ]
        code = "packets" if packets else "move"
        if name in {"put", "ppkt"}:
            for source, target in zip(given, taken, strict=True):
                self._row(code, op, sources=[source], targets=[target])
        else:
            self._row(code, op, sources=given, targets=taken)

    def _pipeline(self, op: Op) -> None:
        """Write a pipeline: its head, then its operations."""
        assert op.iter_context is not None
        turns, unit = len(self.program.where.turns(op)), op.iter_context.unit_size
        place, first = len(self.rows.ops), len(self.rows.operands)
        self._row("pipeline", op, values=(turns, unit))
        for one in op.ops:
            self.op(one, inner=True)
        self.rows.ops[place][5] = len(self.rows.ops) - place - 1
        if any(row[1] <= (turns - 1) * unit for row in self.rows.operands[first:]):
            raise ValueError("an iteration of a pipeline is behind an operand")


def tables_of(plan: Plan, profile: Profile, calls: Sequence[Call], copies: int = 1) -> Tables:
    """Return the tables of a plan for calls of one size, whose buffers exist so many times.

    Raises
    ------
    ValueError
        The plan needs what ``plans.cu`` does not do, multicast for one.
    """
    layout = Layout(plan, profile, calls, copies)
    rows = Rows(layout)
    blocks: list[list[int]] = []
    proxies: list[list[int]] = []
    for rank, gpu in enumerate(plan.gpus):
        where, queue = layout.programs[rank].where, layout.queues.get(rank, -1)
        half = where.half if plan.use_double_scratch_buffer else 0
        ends = [half, max(16, where.wrap), len(gpu.threadblocks), queue]
        blocks += [
            [rank, *BlockRows(rows, rank, block).write(), *ends, 0] for block in gpu.threadblocks
        ]
        if queue >= 0:
            proxies.append([rank, *(0,) * 6, *ends, 1])
    return Tables(
        blocks=np.array([*blocks, *proxies], np.int64),
        ops=np.array(rows.ops, np.int32).reshape(-1, 10),
        operands=np.array(rows.operands or [[0] * 3], np.int64),
        ids=np.array(rows.ids or [0], np.int32),
        workers=len(blocks),
        channels=layout.channels[None],
        barriers=16 * len(plan.gpus),
        queues=len(layout.queues),
        semaphores=np.array(
            [one.init_value for gpu in plan.gpus for one in gpu.semaphores], np.int32
        ),
        user_bytes=layout.user_bytes,
        bytes=layout.bytes,
    )
