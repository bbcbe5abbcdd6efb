"""Pass assign-threadblocks: ChunkProgram -> ThreadblockProgram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, LimitError
from colsynth.lowering.hazards import Op, operations, waits
from colsynth.lowering.lanes import Hop, Lane, Lanes, Limits
from colsynth.lowering.layout import Layout
from colsynth.lowering.order_transfers import is_relay
from colsynth.model import (
    ChunkProgram,
    Gpu,
    Header,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Transfer,
    Wait,
)
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class AssignThreadblocks:
    """Staff every transfer with a threadblock at each end, and fuse relays.

    Chains of the global order are placed one after the other, each on the channel where
    it needs the fewest new threadblocks; a chain that fits nowhere whole is cut into its
    transfers. Where that still exceeds a limit, relays are not fused and everything is
    packed more tightly. Fewest threadblocks win: parallel copies are asked for by name
    (``lower-forest{instances=...}``) and get channels of their own.

    Parameters
    ----------
    max_channels, max_threadblocks, max_steps : int
        Tighter limits than the runtime's; 0 takes the runtime's.
    fuse : bool
        Whether receive-and-send steps may be used where the runtime has them.
    """

    max_channels: int = 0
    max_threadblocks: int = 0
    max_steps: int = 0
    fuse: bool = True

    name: ClassVar[str] = "assign-threadblocks"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ThreadblockProgram

    def run(self, value: ChunkProgram, target: Target) -> ThreadblockProgram:
        """Return the program with threadblocks; its steps may have several waits.

        Raises
        ------
        LimitError
            CS401: the runtime's threadblocks, steps or channels do not suffice.
        InputError
            CS403: slots are not placed yet.
        """
        if not value.scratch:
            raise InputError(
                Diagnostic(
                    "CS403",
                    "assign-threadblocks must come after place-slots",
                    help="give the passes in the order that `colsynth passes` lists",
                )
            )
        ops = operations(value.transfers)
        layout = Layout(value.problem, value.chunks)
        needed = waits(value.transfers, ops, layout, target.in_place)
        limits = self._limits(target)
        for fuse in (True, False) if self.fuse and target.profile.fuses else (False,):
            staffing = _Staffing(value, ops, needed, limits, fuse)
            if staffing.fill():
                return _emit(value, staffing, layout, target)
        raise _too_many(limits, target)

    def _limits(self, target: Target) -> Limits:
        profile = target.profile
        most = min(profile.max_threadblocks, profile.resident_threadblocks)
        return Limits(
            threadblocks=self.max_threadblocks or most,
            steps=self.max_steps or profile.max_steps,
            channels=self.max_channels or profile.max_channels,
            per_channel=profile.max_threadblocks_per_channel,
        )


def _too_many(limits: Limits, target: Target) -> LimitError:
    return LimitError(
        Diagnostic(
            "CS401",
            f"the schedule does not fit the threadblocks of {target.profile.name}",
            notes=(
                f"limits: {limits.threadblocks} threadblocks per GPU, {limits.steps} steps each, "
                f"{limits.channels} channels",
            ),
            help="use fewer trees (--trees) or fewer --instances",
        )
    )


class _Staffing:
    """Fills lanes with the chains of a program."""

    def __init__(
        self,
        program: ChunkProgram,
        ops: tuple[Op, ...],
        needed: tuple[tuple[int, ...], ...],
        limits: Limits,
        fuse: bool,
    ) -> None:
        self.program = program
        self.ops = ops
        self.needed = needed
        self.lanes = Lanes(limits)
        self._fuse = fuse
        self._instances = 1 + max(t.origin.instance for t in program.transfers)

    def fill(self) -> bool:
        """Place everything; return whether the limits allowed it."""
        for chain in self._chains():
            if chain[0].recv is None and chain[0].send is None:
                self._place_local(chain[0])
            elif not self._place(chain) and not all(self._place(part) for part in _cut(chain)):
                return False
        return all(n <= self.lanes.limits.threadblocks for n in self.lanes.on_rank.values())

    def _place(self, chain: list[Hop]) -> bool:
        transfer = self.program.transfers[self.ops[chain[0].ops[0]].transfer]
        instance = transfer.origin.instance
        channels = range(instance, self.lanes.limits.channels, self._instances)
        channel = self.lanes.choose(chain, channels)
        if channel is None:
            return False
        self.lanes.put(chain, channel)
        return True

    def _place_local(self, hop: Hop) -> None:
        """Put a local step behind the arrival it follows, else on a lane without peers."""
        previous = hop.ops[0] - 1
        if previous >= 0 and previous in self.needed[hop.ops[0]]:
            for number in range(len(self.lanes.lanes) - 1, -1, -1):
                lane = self.lanes.lanes[number]
                if lane.rank == hop.rank and lane.hops[-1].ops[-1] == previous:
                    if self.lanes.put_behind(hop, number):
                        return
                    break
        transfer = self.program.transfers[self.ops[hop.ops[0]].transfer]
        self.lanes.put_local(hop, transfer.origin.instance)

    def _weight(self, *ops: int) -> int:
        outside = {p for op in ops for p in self.needed[op]} - set(ops)
        return 1 + max(0, len(outside) - 1)

    def _chains(self) -> Iterator[list[Hop]]:
        """Yield the chains of the global order as hops from rank to rank."""
        number = 0
        while number < len(self.ops):
            op = self.ops[number]
            if not op.sends:
                yield [Hop(op.rank, None, None, (number,), self._weight(number))]
                number += 1
                continue
            chain, number = self._chain_from(number)
            yield chain

    def _chain_from(self, first: int) -> tuple[list[Hop], int]:
        """Return the chain that starts with send operation `first`, and what follows it."""
        transfers, ops = self.program.transfers, self.ops
        chain = [Hop(ops[first].rank, None, ops[first + 1].rank, (first,), self._weight(first))]
        arrival = first + 1
        while self._relayed(arrival):
            source, target = ops[arrival - 1].rank, ops[arrival + 2].rank
            pair = arrival, arrival + 1
            chain.append(Hop(ops[arrival].rank, source, target, pair, self._weight(*pair)))
            arrival += 2
        source = transfers[ops[arrival].transfer].source
        chain.append(Hop(ops[arrival].rank, source, None, (arrival,), self._weight(arrival)))
        return chain, arrival + 1

    def _relayed(self, arrival: int) -> bool:
        """Whether the send right behind an arrival passes on exactly what arrived.

        Its other waits must be over before the arrival's place in the order.
        """
        departure = arrival + 1
        if not self._fuse or departure >= len(self.ops) or not self.ops[departure].sends:
            return False
        first = self.program.transfers[self.ops[arrival].transfer]
        second = self.program.transfers[self.ops[departure].transfer]
        return is_relay(first, second) and first.write == second.read


def _cut(chain: list[Hop]) -> Iterator[list[Hop]]:
    """Yield the transfers of a chain one by one, their ends no longer fused."""
    for here, there in zip(chain, chain[1:], strict=False):
        send = here._replace(recv=None, ops=here.ops[-1:])
        receive = there._replace(send=None, ops=there.ops[:1])
        yield [send, receive]


def _emit(
    program: ChunkProgram, staffing: _Staffing, layout: Layout, target: Target
) -> ThreadblockProgram:
    """Spell lanes as threadblocks, rank by rank."""
    size = program.problem.topology.size
    by_rank: list[list[Lane]] = [[] for _ in range(size)]
    for lane in staffing.lanes.lanes:
        by_rank[lane.rank].append(lane)
    passing = _passing_sums(program.transfers)
    gpus = tuple(
        Gpu(
            rank,
            layout.input_chunks,
            layout.output_chunks,
            program.scratch[rank],
            _threadblocks(_sorted_lanes(by_rank[rank]), program, staffing, passing),
        )
        for rank in range(size)
    )
    return ThreadblockProgram(_header(program, staffing, target), gpus)


def _sorted_lanes(lanes: list[Lane]) -> list[Lane]:
    def key(lane: Lane) -> tuple[int, int, int]:
        none = -1
        recv = none if lane.recv is None else lane.recv
        return lane.channel, none if lane.send is None else lane.send, recv

    return sorted(lanes, key=key)


def _threadblocks(
    lanes: list[Lane],
    program: ChunkProgram,
    staffing: _Staffing,
    passing: frozenset[int],
) -> tuple[Threadblock, ...]:
    place = {
        op: Wait(number, step)
        for number, lane in enumerate(lanes)
        for step, hop in enumerate(lane.hops)
        for op in hop.ops
    }
    blocks = []
    for number, lane in enumerate(lanes):
        steps = []
        for hop in lane.hops:
            needed = [place[p] for op in hop.ops for p in staffing.needed[op]]
            step = _step(hop, program.transfers, staffing.ops, passing)
            steps.append((step, _latest([w for w in needed if w.threadblock != number])))
        spelt = tuple(
            Step(s.op, s.source, s.target, s.count, waits=w, origin=s.origin) for s, w in steps
        )
        blocks.append(Threadblock(number, lane.send, lane.recv, lane.channel, spelt))
    return tuple(blocks)


def _latest(needed: list[Wait]) -> tuple[Wait, ...]:
    """Keep the last step of each threadblock: it comes after the others."""
    last: dict[int, int] = {}
    for wait in needed:
        last[wait.threadblock] = max(wait.step, last.get(wait.threadblock, -1))
    return tuple(Wait(block, step) for block, step in sorted(last.items()))


def _step(
    hop: Hop,
    transfers: tuple[Transfer, ...],
    ops: tuple[Op, ...],
    passing: frozenset[int],
) -> Step:
    """Return the instruction of a hop, without waits (contract 4.1)."""
    transfer = transfers[ops[hop.ops[0]].transfer]
    read: Slot | None
    write: Slot | None
    if transfer.is_local:
        kind = "re" if transfer.operand is not None else "cpy"
        read, write = transfer.read, transfer.write
    elif hop.recv is None:
        kind, read, write = "s", transfer.read, None
    elif hop.send is None:
        kind = "rrc" if transfer.reduces else "r"
        read, write = transfer.operand, transfer.write
    elif not transfer.reduces:
        kind, read, write = "rcs", None, transfer.write
    elif ops[hop.ops[0]].transfer in passing:
        kind, read, write = "rrs", transfer.operand, None
    else:
        kind, read, write = "rrcs", transfer.operand, transfer.write
    return Step(kind, read, write, transfer.count, origin=transfer.origin)


def _passing_sums(transfers: tuple[Transfer, ...]) -> frozenset[int]:
    """Return reducing transfers whose sum is read by nothing but the send behind them."""
    reads: dict[tuple[int, Slot], int] = {}
    for transfer in transfers:
        for rank, slot in ((transfer.source, transfer.read), (transfer.target, transfer.operand)):
            if slot is not None:
                for offset in range(slot.offset, slot.offset + transfer.count):
                    cell = rank, Slot(slot.buffer, offset)
                    reads[cell] = reads.get(cell, 0) + 1
    found = []
    for number, (first, second) in enumerate(zip(transfers, transfers[1:], strict=False)):
        slot = first.write
        if not first.reduces or slot is None or not is_relay(first, second):
            continue
        cells = [(first.target, Slot(slot.buffer, slot.offset + k)) for k in range(first.count)]
        if slot == second.read and all(reads.get(cell, 0) == 1 for cell in cells):
            found.append(number)
    return frozenset(found)


def _header(program: ChunkProgram, staffing: _Staffing, target: Target) -> Header:
    problem = program.problem
    profile = target.profile
    most = profile.default_max_bytes if target.max_bytes is None else target.max_bytes
    return Header(
        name=f"colsynth {problem.collective} {problem.topology.name}"[:63],
        collective=problem.collective,
        protocol=target.protocol,
        ranks=problem.topology.size,
        chunks=program.chunks,
        channels=1 + max(lane.channel for lane in staffing.lanes.lanes),
        in_place=target.in_place,
        out_of_place=target.out_of_place,
        min_bytes=max(target.min_bytes, profile.least_min_bytes),
        max_bytes=most,
        root=problem.root,
    )
