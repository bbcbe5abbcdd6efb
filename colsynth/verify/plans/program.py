"""A plan resolved: which counters and operands every operation of every threadblock touches."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from colsynth.model import Header
from colsynth.runtimes.plans.form import Loop, Op, Operand, Plan
from colsynth.verify.contract import IN_PLACE, OUT_OF_PLACE
from colsynth.verify.plans.lists import (
    SWITCH_TYPE,
    block_lists,
    buffer_lists,
    every_op,
    switch_groups,
)
from colsynth.verify.plans.resolved import (
    ACQUIRE,
    BARRIER,
    DATA,
    FLUSH,
    NOP,
    OPERAND,
    PACKET,
    PORT,
    RELEASE,
    SIGNAL,
    WAIT,
    Action,
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
_BUFFERS = {"i": 0, "o": 1, "s": 2}

_Row = tuple[int, ...]
"""An operand, see `colsynth.verify.plans.resolved`."""


def loops_of(plan: Plan) -> set[Loop]:
    """Return how the pipelines of a plan cut their data."""
    return {op.iter_context for op in every_op(plan) if op.iter_context is not None}


def uses_packets(plan: Plan) -> bool:
    """Whether any operation writes or reads packets."""
    return any(one.name in PACKETS for op in every_op(plan) for one in (op, *op.ops))


def resolve(plan: Plan, header: Header) -> Resolved:
    """Return a plan with its channels, semaphores and operands numbered."""
    return _Resolver(plan, header).resolve()


class _Resolver:
    def __init__(self, plan: Plan, header: Header) -> None:
        self.plan = plan
        self.out = Resolved(header)
        self.ends: dict[tuple[int, str, int], int] = {}
        self.partner: dict[tuple[int, str, int], tuple[int, str, int]] = {}
        self.lane: dict[tuple[int, str, int], int] = {}
        self.rates: dict[Loop, Fraction] = {}
        self.rows, self.firsts, self.moves = array("q"), array("q"), 0

    def resolve(self) -> Resolved:
        self._channels()
        out = self.out
        self.first_semaphore = out.channels
        for rank, gpu in enumerate(self.plan.gpus):
            self.rank, self.gpu, self.switches = rank, gpu, switch_groups(gpu)
            for block in gpu.threadblocks:
                self.lists = block_lists(block)
                self.buffers = buffer_lists(block)
                out.blocks.append((rank, block.id))
                out.parts.append(list(self._parts(block.ops)))
            out.start += [one.init_value for one in gpu.semaphores]
            self.first_semaphore += len(gpu.semaphores)
        out.operands = np.frombuffer(self.rows, np.int64).reshape(-1, OPERAND)
        self.firsts.extend([len(out.operands)] * 4)
        out.moves = np.frombuffer(self.firsts, np.int64).reshape(-1, 4)
        return out

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
        self.out.channels, self.out.lanes = len(self.ends), len(self.lane)
        self.out.start = [0] * len(self.ends)

    def _parts(self, ops: tuple[Op, ...]) -> Iterator[Part]:
        loops = 0
        for step, op in enumerate(ops):
            loop = op.iter_context
            if loop is None:
                self.out.groups.append((1, None))
                yield Part(self._action(op, step))
                continue
            self.out.groups.append((len(op.ops), loop))
            if loop not in self.rates:
                self.rates[loop] = Fraction(loop.num_chunks, loop.unit_size)
            for inner in op.ops:
                yield Part(self._action(inner, step), loops, self.rates[loop])
            loops += 1

    def _action(self, op: Op, step: int) -> Action:
        kind = _KINDS.get(op.name, PACKET if op.name in PACKETS else DATA)
        if kind in (NOP, BARRIER):
            return Action(kind, op, step)
        if kind in (ACQUIRE, RELEASE):
            return Action(kind, op, step, tuple(self.first_semaphore + k for k in op.semaphore_ids))
        named = op.channel_type or ""
        keys = [(self.rank, named, self.lists[named][k]) for k in op.channel_ids]
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
        first = self.moves
        self._move(op)
        moves = range(first, self.moves)
        return Action(PORT if ported else kind, op, step, far, lanes, moves)

    def _move(self, op: Op) -> None:
        """Append what an operation moves."""
        if op.name in SWITCH:
            source, target = (self._everywhere(op, o) for o in (op.src_buff[0], op.dst_buff[0]))
            self._append(source, (), target, ())
            return
        marks = dict(PACKETS.get(op.name, ()))
        first = marks.get("src", len(op.src_buff))
        raw = op.name == "ppkt" and op.channel_type == "port"  # its source holds packets already
        src = [self._row(op, o, raw or k >= first) for k, o in enumerate(op.src_buff)]
        then = {"respkt": 1, "recspkt": 1}.get(op.name, marks.get("dst", len(op.dst_buff)))
        dst = [self._row(op, o, k >= then) for k, o in enumerate(op.dst_buff)]
        if op.name in ("put", "pws", "pwsf"):
            for one, other in zip(src, dst, strict=True):
                self._append((one,), (), (other,), ())
        elif op.name == "ppkt":
            for one, other in zip(src, dst, strict=True):
                self._append(() if raw else (one,), (one,) if raw else (), (), (other,))
        elif op.name == "rppkt" and op.channel_type == "port":
            for other in dst:
                self._append((), src, (), (other,))
        else:
            if op.name == "re":
                dst = dst[:1]  # further ones only tell the executor how sources wrap
            self._append(src[:first], src[first:], dst[:then], dst[then:])

    def _append(self, *groups: Iterable[_Row]) -> None:
        """Append a move: sources, packets that are read, targets, and packets that are sent."""
        rows = self.rows
        for group in groups:
            self.firsts.append(len(rows) // OPERAND)
            for row in group:
                rows.extend(row)
        self.moves += 1

    def _everywhere(self, op: Op, operand: Operand) -> list[_Row]:
        """Return an operand at all ranks of its switch channel."""
        if operand.switch_channel_id is None:
            return [self._row(op, operand, False)]
        kind, group = self.switches[self.lists[SWITCH_TYPE][operand.switch_channel_id]]
        return [self._at(op, operand, rank, kind, False, False) for rank in group.ranks]

    def _row(self, op: Op, operand: Operand, packets: bool) -> _Row:
        if operand.buffer_id is None:
            return self._at(op, operand, self.rank, operand.type or "s", packets, True)
        table = self.buffers[op.channel_type or "memory"]
        remote = self.gpu.remote_buffers[table[operand.buffer_id]]
        # Plain data is not shifted at a peer (T7).
        return self._at(op, operand, remote.rank, remote.type, packets, packets)

    def _at(
        self, op: Op, operand: Operand, owner: int, kind: str, packets: bool, halved: bool
    ) -> _Row:
        one, of = (0, 1) if op.tbg_info is None else (op.tbg_info.tb_id, op.tbg_info.tbg_size)
        chunks = operand.index, operand.size
        return (owner, _BUFFERS[kind], self.rank, *chunks, packets, one, of, halved)


def call_mode(header: Header) -> str:
    """Return the mode of the calls that a plan serves."""
    return IN_PLACE if header.in_place else OUT_OF_PLACE
