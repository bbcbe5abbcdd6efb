"""A plan resolved: what every operation of every threadblock touches, in cells of memory.

A cell is the smallest part of a chunk that operations tell apart: an iteration of the pipelines,
a slice of a group of threadblocks, or a part of one where lengths do not divide each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from colsynth.model import Header
from colsynth.runtimes.plans.form import Loop, Op, Operand, Plan, scratch_stride
from colsynth.verify.contract import IN_PLACE, OUT_OF_PLACE, layout
from colsynth.verify.plans.lists import SWITCH_TYPE, block_lists, buffer_lists, switch_groups
from colsynth.verify.plans.resolved import (
    ACQUIRE,
    BARRIER,
    DATA,
    FLUSH,
    NOP,
    PACKET,
    PORT,
    RELEASE,
    SIGNAL,
    WAIT,
    Action,
    Cells,
    Move,
    Part,
    Resolved,
)
from colsynth.verify.plans.shapes import PACKETS, SWITCH

_KINDS = {
    "nop": NOP,
    "barrier": BARRIER,
    "signal": SIGNAL,
    "rlxsignal": SIGNAL,
    "wait": WAIT,
    "rlxwait": WAIT,
    "sem_acquire": ACQUIRE,
    "sem_release": RELEASE,
    "flush": FLUSH,
}
_PORTED = frozenset({"put", "pws", "pwsf", "ppkt", "rppkt"})


def loops_of(plan: Plan) -> set[Loop]:
    """Return how the pipelines of a plan cut their data."""
    ops = (op for gpu in plan.gpus for block in gpu.threadblocks for op in block.ops)
    return {op.iter_context for op in ops if op.iter_context is not None}


def uses_packets(plan: Plan) -> bool:
    """Whether any operation writes or reads packets."""
    return any(
        op.name in PACKETS for gpu in plan.gpus for block in gpu.threadblocks for op in block.ops
    )


def resolve(plan: Plan, header: Header, mode: str, chunk: Fraction) -> Resolved:
    """Return a plan at a message whose chunks have so many bytes."""
    return _Resolver(plan, header, mode, chunk).resolve()


class _Resolver:
    def __init__(self, plan: Plan, header: Header, mode: str, chunk: Fraction) -> None:
        self.plan, self.chunk = plan, chunk
        ops = [op for gpu in plan.gpus for block in gpu.threadblocks for op in block.ops]
        ops += [inner for op in ops for inner in op.ops]
        self.grain = lcm(1, *(op.tbg_info.tbg_size for op in ops if op.tbg_info is not None))
        loops = loops_of(plan)
        slots = [scratch_stride(plan, gpu) for gpu in plan.gpus]
        wraps = bool(loops) and plan.reuse_resources
        lengths = {loop.unit_size for loop in loops} | set(slots if wraps else ())
        self.per_byte = Fraction(
            self.grain * chunk.denominator,
            gcd(chunk.numerator, *(length * chunk.denominator for length in lengths)),
        )
        """Cells of a byte, so that all that operations tell apart are whole cells."""
        self.cells = int(chunk * self.per_byte)
        self.wraps = [int(slot * self.per_byte) if wraps else None for slot in slots]
        memory = layout(header, mode, np.zeros(header.ranks, np.int64))
        self.base = (memory.base * self.cells).tolist()
        factor = (2 if uses_packets(plan) else 1) * (2 if plan.use_double_scratch_buffer else 1)
        at = memory.locations * self.cells
        for rank, gpu in enumerate(plan.gpus):
            self.base[rank][2] = at
            at += gpu.scratch_chunks * self._stride(rank) * factor
        self.halves = 2 if plan.use_double_scratch_buffer else 1
        self.out = Resolved(header, self.cells, memory, at)
        self.ends: dict[tuple[int, str, int], int] = {}
        self.partner: dict[tuple[int, str, int], tuple[int, str, int]] = {}
        self.lane: dict[tuple[int, str, int], int] = {}

    def resolve(self) -> Resolved:
        self._channels()
        first_semaphore = 0
        for rank, gpu in enumerate(self.plan.gpus):
            for block in gpu.threadblocks:
                self.rank, self.gpu = rank, gpu
                self.lists = block_lists(block)
                self.buffers = buffer_lists(block)
                self.first_semaphore = first_semaphore
                self.out.blocks.append((rank, block.id))
                self.out.parts.append([])
                self.out.actions.append(
                    [list(self._actions(block.ops, half)) for half in range(self.halves)]
                )
            self.out.start += [one.init_value for one in gpu.semaphores]
            first_semaphore += len(gpu.semaphores)
        return self.out

    def _channels(self) -> None:
        """Number the ends of channels and join those that belong together (contract 2)."""
        ordinal: dict[tuple[int, str, int], list[tuple[int, str, int]]] = {}
        for rank, gpu in enumerate(self.plan.gpus):
            for kind in ("memory", "port"):
                peers = [p for c in gpu.channels if c.channel_type == kind for p in c.connected_to]
                for number, peer in enumerate(peers):
                    end = (rank, kind, number)
                    self.ends[end] = len(self.ends)
                    ordinal.setdefault((rank, kind, peer), []).append(end)
                    if kind == "port":
                        self.lane[end] = len(self.lane)
        for (rank, kind, peer), ends in ordinal.items():
            for one, other in zip(ends, ordinal.get((peer, kind, rank), ()), strict=False):
                self.partner[one] = other
        self.out.queues, self.out.lanes = len(self.ends), len(self.lane)

    def _actions(self, ops: tuple[Op, ...], half: int) -> Iterator[Action]:
        parts, loops = self.out.parts[-1], 0
        for step, op in enumerate(ops):
            if op.iter_context is None:
                one = self._action(op, None, half, step)
                parts += [Part(one)] * (half == 0)
                yield one
                continue
            turns = self._turns(op.iter_context)
            # What moves nothing is the same in every iteration.
            kept = [self._action(i, turns[0], half, step) for i in op.ops]
            rate = Fraction(op.iter_context.num_chunks, op.iter_context.unit_size)
            parts += [Part(one, loops, rate) for one in kept if half == 0]
            loops += 1
            for turn in turns:
                for inner, first in zip(op.ops, kept, strict=True):
                    again = turn.start and first.moves
                    yield self._action(inner, turn, half, step) if again else first

    def _turns(self, loop: Loop) -> list[Cells]:
        """Return what each iteration of a pipeline takes of an operand, in cells."""
        unit, end = int(loop.unit_size * self.per_byte), loop.num_chunks * self.cells
        return [range(first, min(first + unit, end)) for first in range(0, end, unit)]

    def _action(self, op: Op, turn: Cells | None, half: int, step: int) -> Action:
        kind = _KINDS.get(op.name, PACKET if op.name in PACKETS else DATA)
        if kind in (NOP, BARRIER):
            return Action(kind, op, step)
        if kind in (ACQUIRE, RELEASE):
            return Action(kind, op, step, tuple(self.first_semaphore + k for k in op.semaphore_ids))
        keys = [(self.rank, op.channel_type or "", self._gid(op, k)) for k in op.channel_ids]
        lanes = tuple(self.lane.get(key, -1) for key in keys)
        if kind == WAIT:
            return Action(kind, op, step, tuple(self.ends[key] for key in keys), lanes)
        if kind == FLUSH:
            return Action(kind, op, step, (), lanes[: len(op.dst_buff)])
        signals = kind == SIGNAL or op.name in ("pws", "pwsf")
        far = tuple(self.ends[self.partner[key]] for key in keys) if signals else ()
        if kind == SIGNAL:
            return Action(kind, op, step, far, lanes)
        ported = op.channel_type == "port" and op.name in _PORTED
        return Action(PORT if ported else kind, op, step, far, lanes, self._moves(op, turn, half))

    def _gid(self, op: Op, k: int) -> int:
        return self.lists[op.channel_type or ""][k]

    def _moves(self, op: Op, turn: Cells | None, half: int) -> tuple[Move, ...]:
        if op.name in SWITCH:
            ends = (op.src_buff[0], op.dst_buff[0])
            all_of = [self._everywhere(op, operand, turn, half) for operand in ends]
            return (Move(all_of[0], (), all_of[1], ()),)
        marks = dict(PACKETS.get(op.name, ()))
        packet = {"src": marks.get("src", len(op.src_buff)), "dst": marks.get("dst", 99)}
        raw = op.name == "ppkt" and op.channel_type == "port"  # its source holds packets already
        src = [
            self._cells(op, o, turn, half, raw or k >= packet["src"])
            for k, o in enumerate(op.src_buff)
        ]
        after = {"respkt": 1, "recspkt": 1}.get(op.name, packet["dst"])
        dst = [self._cells(op, o, turn, half, k >= after) for k, o in enumerate(op.dst_buff)]
        if op.name in ("put", "pws", "pwsf", "ppkt"):
            pairs = zip(src, dst, strict=True)
            if op.name == "ppkt":
                one = ((), (0,)) if raw else ((0,), ())
                return tuple(
                    Move((s,) * len(one[0]), (s,) * len(one[1]), (), (d,)) for s, d in pairs
                )
            return tuple(Move((s,), (), (d,), ()) for s, d in pairs)
        if op.name == "re":
            dst = dst[:1]  # further ones only tell the executor how sources wrap
        first, then = packet["src"], after
        return (Move(tuple(src[:first]), tuple(src[first:]), tuple(dst[:then]), tuple(dst[then:])),)

    def _everywhere(
        self, op: Op, operand: Operand, turn: Cells | None, half: int
    ) -> tuple[Cells, ...]:
        """Return the cells of an operand at all ranks of its switch channel."""
        if operand.switch_channel_id is None:
            return (self._cells(op, operand, turn, half, False),)
        number = self.lists[SWITCH_TYPE][operand.switch_channel_id]
        kind, group = switch_groups(self.gpu)[number]
        ends = ((rank, kind) for rank in group.ranks)
        return tuple(self._range(end, op, operand, turn, 0, False) for end in ends)

    def _cells(
        self, op: Op, operand: Operand, turn: Cells | None, half: int, packets: bool
    ) -> Cells:
        """Return the cells of an operand; those of packets are two apart."""
        if operand.buffer_id is None:
            end = self.rank, operand.type or "s"
            return self._range(end, op, operand, turn, half, packets)
        table = self.buffers[op.channel_type or "memory"]
        remote = self.gpu.remote_buffers[table[operand.buffer_id]]
        half *= packets  # plain data is not shifted at a peer (T7)
        return self._range((remote.rank, remote.type), op, operand, turn, half, packets)

    def _range(
        self,
        end: tuple[int, str],
        op: Op,
        operand: Operand,
        turn: Cells | None,
        half: int,
        packets: bool,
    ) -> Cells:
        """Return the cells of an operand in a buffer of a rank."""
        rank, kind = end
        scratch = kind == "s"
        base = self.base[rank]["ios".index(kind)]
        if scratch and self.halves == 2 and half:
            base += (self._scratch_end(rank) - base) // 2
        wrap = self.wraps[self.rank] if scratch else None
        at = operand.index * (self._stride(self.rank) if scratch else self.cells)
        length = operand.size * self.cells
        if turn is not None:
            at += turn.start if wrap is None else turn.start % wrap
            length = len(turn)
        elif op.tbg_info is not None:
            length //= op.tbg_info.tbg_size
            at += op.tbg_info.tb_id * length
        if packets:
            return range(base + 2 * at, base + 2 * (at + length), 2)
        return range(base + at, base + at + length)

    def _stride(self, rank: int) -> int:
        """Return the cells of a chunk of scratch, as a rank counts them."""
        wrap = self.wraps[rank]
        return self.cells if wrap is None else min(self.cells, wrap)

    def _scratch_end(self, rank: int) -> int:
        following = rank + 1
        if following < len(self.base):
            return int(self.base[following][2])
        return self.out.locations


def in_place(header: Header) -> str:
    """Return the mode of the calls that a plan serves."""
    return IN_PLACE if header.in_place else OUT_OF_PLACE
