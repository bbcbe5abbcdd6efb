"""A plan resolved: what every operation of every threadblock touches, in cells of memory.

A cell is the smallest part of a chunk that operations tell apart: an iteration of the pipelines,
or a slice of a group of threadblocks. A message is as long as wanted: `tiles` iterations per chunk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import lcm

import numpy as np

from colsynth.model import Header
from colsynth.runtimes.plans.form import Op, Operand, Plan, scratch_stride
from colsynth.verify.contract import IN_PLACE, OUT_OF_PLACE, Layout, layout
from colsynth.verify.plans.lists import SWITCH_TYPE, block_lists, buffer_lists, switch_groups
from colsynth.verify.plans.shapes import PACKETS, SWITCH

Cells = range
NOP, BARRIER, SIGNAL, WAIT, RELEASE, ACQUIRE, FLUSH, DATA, PORT, PACKET = range(10)
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


@dataclass(frozen=True, slots=True)
class Move:
    """A sum of sources, cell by cell, that goes to some targets.

    Packets are read and written as such; their cells are twice as far apart.
    """

    sources: tuple[Cells, ...]
    packets: tuple[Cells, ...]
    targets: tuple[Cells, ...]
    sent: tuple[Cells, ...]


@dataclass(slots=True)
class Action:
    """One operation in one iteration.

    Parameters
    ----------
    kind : int
    op : Op
    step : int
        Place in the threadblock's list, of the pipeline where it stands in one.
    ends : tuple of int
        Queues that are signalled or waited for, or semaphores, one per thread.
    lanes : tuple of int
        Of every end, the port channel whose order the signal follows; -1 for none.
    moves : tuple of Move
    """

    kind: int
    op: Op
    step: int
    ends: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass
class Resolved:
    """A plan at one length of message.

    Parameters
    ----------
    header
    cells : int
        Cells of a chunk.
    blocks : list of (int, int)
        Rank and id of every threadblock.
    actions : list of list of Action
        By threadblock and half of the scratch buffer (one half unless it is double).
    queues, semaphores : int
    start : list of int
        Initial values of the semaphores.
    lanes : int
        Ends of port channels.
    memory : Layout
        Input and output in chunks.
    locations : int
        Cells of all ranks.
    """

    header: Header
    cells: int
    memory: Layout
    locations: int
    blocks: list[tuple[int, int]] = field(default_factory=list)
    actions: list[list[list[Action]]] = field(default_factory=list)
    queues: int = 0
    lanes: int = 0
    start: list[int] = field(default_factory=list)


def units_of(plan: Plan) -> set[int]:
    """Return the bytes per iteration of all pipelines."""
    ops = (op for gpu in plan.gpus for block in gpu.threadblocks for op in block.ops)
    return {op.iter_context.unit_size for op in ops if op.iter_context is not None}


def depth_of(plan: Plan) -> int | None:
    """Return how many iterations a slot holds, None where slots never wrap."""
    units = units_of(plan)
    if not units or not plan.reuse_resources:
        return None
    return min(max(1, scratch_stride(plan, gpu) // max(units)) for gpu in plan.gpus)


def uses_packets(plan: Plan) -> bool:
    """Whether any operation writes or reads packets."""
    return any(
        op.name in PACKETS for gpu in plan.gpus for block in gpu.threadblocks for op in block.ops
    )


def most_ticks(program: Resolved, launches: int) -> int:
    """Return a number that no tick of a threadblock or a port channel exceeds."""
    ported = Counter(
        lane
        for halves in program.actions
        for half in halves
        for action in half
        for lane in action.lanes
        if lane >= 0
    )
    lengths = (len(half) for halves in program.actions for half in halves)
    return launches * max([1, *ported.values(), *lengths])


def resolve(plan: Plan, header: Header, mode: str, tiles: int) -> Resolved:
    """Return a plan at a message of `tiles` iterations per chunk."""
    return _Resolver(plan, header, mode, tiles).resolve()


class _Resolver:
    def __init__(self, plan: Plan, header: Header, mode: str, tiles: int) -> None:
        self.plan, self.tiles = plan, tiles
        ops = [op for gpu in plan.gpus for block in gpu.threadblocks for op in block.ops]
        ops += [inner for op in ops for inner in op.ops]
        self.grain = lcm(1, *(op.tbg_info.tbg_size for op in ops if op.tbg_info is not None))
        self.cells = self.grain * tiles
        depth = depth_of(plan)
        self.wrap = None if depth is None else depth * self.grain
        self.stride = self.cells if self.wrap is None else min(self.cells, self.wrap)
        memory = layout(header, mode, np.zeros(header.ranks, np.int64))
        self.base = (memory.base * self.cells).tolist()
        factor = (2 if uses_packets(plan) else 1) * (2 if plan.use_double_scratch_buffer else 1)
        at = memory.locations * self.cells
        for rank, gpu in enumerate(plan.gpus):
            self.base[rank][2] = at
            at += gpu.scratch_chunks * self.stride * factor
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
        for step, op in enumerate(ops):
            if op.iter_context is None:
                yield self._action(op, None, half, step)
                continue
            # What moves nothing is the same in every iteration.
            kept = [self._action(i, 0, half, step) for i in op.ops]
            for turn in range(op.iter_context.num_chunks * self.tiles):
                for inner, first in zip(op.ops, kept, strict=True):
                    again = turn and first.moves
                    yield self._action(inner, turn, half, step) if again else first

    def _action(self, op: Op, turn: int | None, half: int, step: int) -> Action:
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

    def _moves(self, op: Op, turn: int | None, half: int) -> tuple[Move, ...]:
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
        self, op: Op, operand: Operand, turn: int | None, half: int
    ) -> tuple[Cells, ...]:
        """Return the cells of an operand at all ranks of its switch channel."""
        if operand.switch_channel_id is None:
            return (self._cells(op, operand, turn, half, False),)
        number = self.lists[SWITCH_TYPE][operand.switch_channel_id]
        kind, group = switch_groups(self.gpu)[number]
        ends = ((rank, kind) for rank in group.ranks)
        return tuple(self._range(end, op, operand, turn, 0, False) for end in ends)

    def _cells(self, op: Op, operand: Operand, turn: int | None, half: int, packets: bool) -> Cells:
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
        turn: int | None,
        half: int,
        packets: bool,
    ) -> Cells:
        """Return the cells of an operand in a buffer of a rank."""
        rank, kind = end
        scratch = kind == "s"
        base = self.base[rank]["ios".index(kind)]
        if scratch and self.halves == 2 and half:
            base += (self._scratch_end(rank) - base) // 2
        at = operand.index * (self.stride if scratch else self.cells)
        length = operand.size * self.cells
        if turn is not None:
            shift = turn * self.grain
            at += shift % self.wrap if scratch and self.wrap is not None else shift
            length = self.grain
        elif op.tbg_info is not None:
            length //= op.tbg_info.tbg_size
            at += op.tbg_info.tb_id * length
        if packets:
            return range(base + 2 * at, base + 2 * (at + length), 2)
        return range(base + at, base + at + length)

    def _scratch_end(self, rank: int) -> int:
        following = rank + 1
        if following < len(self.base):
            return int(self.base[following][2])
        return self.out.locations


def in_place(header: Header) -> str:
    """Return the mode of the calls that a plan serves."""
    return IN_PLACE if header.in_place else OUT_OF_PLACE
