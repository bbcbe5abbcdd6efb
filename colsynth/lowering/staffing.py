"""Staffing: every chain of the global order finds its threadblocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from colsynth.lowering.abreast import in_turn, relays
from colsynth.lowering.demand import lanes
from colsynth.lowering.hazards import Op
from colsynth.lowering.lanes import Hop, Lanes, Limits
from colsynth.lowering.order_transfers import is_relay
from colsynth.lowering.paired import PairedLanes, paired_lanes, partners
from colsynth.lowering.rounds import in_rounds, places
from colsynth.model import ChunkProgram, Transfer
from colsynth.runtimes.target import Target


class Staffing:
    """Fills lanes with the chains of a program.

    Parameters
    ----------
    program : ChunkProgram
        Ordered, with slots.
    ops : tuple of Op
        Its operations, `colsynth.lowering.hazards.operations`.
    needed : tuple of tuple of int
        The waits of each operation, `colsynth.lowering.hazards.waits`.
    limits : Limits
    fuse : bool
        Whether a relay may share a step with its arrival: in a program with an order of its
        own wherever it stands (`abreast`), else right behind it.
    apart : bool
        Whether phases have threadblocks of their own.
    abreast : bool
        Whether what a threadblock does for several transfers is sorted once more, so that
        it sends what it can before it receives.
    even : Target or None
        What for connections get as many threadblocks as their load needs
        (`colsynth.lowering.demand`); None: as few as suffice. With `limits.paired`, where
        nothing is fused, all that there may be share it, in rounds (`colsynth.lowering.rounds`).
    """

    def __init__(
        self,
        program: ChunkProgram,
        ops: tuple[Op, ...],
        needed: tuple[tuple[int, ...], ...],
        limits: Limits,
        fuse: bool,
        apart: bool = False,
        abreast: bool = False,
        even: Target | None = None,
    ) -> None:
        self.program = program
        self.ops = ops
        self.needed = needed
        self._chunks = [transfer.count for transfer in program.transfers]
        self._abreast = abreast
        self._departure = self._departures() if fuse else {}
        self._instances = 1 + max(t.origin.instance for t in program.transfers)
        self._phases = 1 + max(t.origin.phase for t in program.transfers) if apart else 1
        self._paired = limits.paired
        self._depth = 0 if even is None else even.profile.fifo_calls[even.protocol]
        self.lanes = self._empty(limits, even)

    def _empty(self, limits: Limits, even: Target | None) -> Lanes:
        if even is None:
            return Lanes(limits)
        if not self._paired:
            return Lanes(limits, self._needs(limits, even))
        loads: Counter[tuple[int, int, int]] = Counter()
        for transfer in self.program.transfers:
            if not transfer.is_local:
                connection = transfer.source, transfer.target
                loads[self._first_channel(transfer), *connection] += transfer.count
        pairs = partners(self.program.problem.topology)
        return PairedLanes(limits, paired_lanes(loads, pairs, limits.threadblocks), pairs=pairs)

    def _needs(self, limits: Limits, target: Target) -> dict[tuple[int, int, int], int]:
        """Return how many lanes each connection needs."""
        transfers, topology = self.program.transfers, self.program.problem.topology
        return lanes(transfers, self._first_channel, limits.steps, topology, target)

    def fill(self) -> bool:
        """Place everything; return whether the limits allowed it."""
        for chain in self._chains():
            if chain[0].recv is None and chain[0].send is None:
                self._place_local(chain[0])
            elif not self._place(chain) and not all(self._place(part) for part in _cut(chain)):
                return False
        if self._abreast and not self._take_turns():
            return False
        if self._paired and max(self._chunks) <= self._depth:
            self._go_round()
        return all(n <= self.lanes.limits.threadblocks for n in self.lanes.on_rank.values())

    def _take_turns(self) -> bool:
        """Sort the hops of every lane; return whether that was possible."""
        for lane in self.lanes.lanes:
            hops = in_turn(lane.hops, self.needed)
            if hops is None:
                return False
            lane.hops = hops
        return True

    def _go_round(self) -> None:
        order = places(self.program.transfers, self.ops, self.needed)
        for lane in self.lanes.lanes:
            lane.hops = in_rounds(lane.hops, order)

    def _place(self, chain: list[Hop]) -> bool:
        transfer = self.program.transfers[self.ops[chain[0].ops[0]].transfer]
        channels = range(
            self._first_channel(transfer),
            self.lanes.limits.channels,
            self._instances * self._phases,
        )
        channel = self.lanes.choose(chain, channels)
        if channel is None:
            return False
        self.lanes.put(chain, channel, channels[0])
        return True

    def _place_local(self, hop: Hop) -> None:
        """Put a local step behind the arrival it follows, else on a lane without peers.

        Behind its arrival it need not wait for it.
        """
        previous = hop.ops[0] - 1
        if previous in self.needed[hop.ops[0]]:
            behind = hop._replace(weight=max(1, hop.weight - 1))
            if self.lanes.put_behind(behind, self.lanes.holder[previous]):
                return
        transfer = self.program.transfers[self.ops[hop.ops[0]].transfer]
        self.lanes.put_local(hop, self._first_channel(transfer))

    def _first_channel(self, transfer: Transfer) -> int:
        """Return the least channel that a transfer may take."""
        origin = transfer.origin
        return origin.instance * self._phases + origin.phase % self._phases

    def _hop(self, recv: int | None, send: int | None, *ops: int) -> Hop:
        """Return the hop that performs operations of one rank."""
        first = self.ops[ops[0]]
        outside = {p for op in ops for p in self.needed[op]} - set(ops)
        weight = 1 + max(0, len(outside) - 1)
        return Hop(first.rank, recv, send, ops, weight, self._chunks[first.transfer])

    def _chains(self) -> Iterator[list[Hop]]:
        """Yield the chains as hops from rank to rank, in the order of their first operations."""
        fused = set(self._departure.values())
        for number, op in enumerate(self.ops):
            if op.sends and number not in fused:
                yield self._chain_from(number)
            elif not op.sends and not op.receives:
                yield [self._hop(None, None, number)]

    def _chain_from(self, first: int) -> list[Hop]:
        """Return the chain that starts with send operation `first`."""
        ops = self.ops
        chain = [self._hop(None, ops[first + 1].rank, first)]
        arrival = first + 1
        while arrival in self._departure:
            departure = self._departure[arrival]
            source, target = ops[arrival - 1].rank, ops[departure + 1].rank
            chain.append(self._hop(source, target, arrival, departure))
            arrival = departure + 1
        chain.append(self._hop(ops[arrival - 1].rank, None, arrival))
        return chain

    def _departures(self) -> dict[int, int]:
        """Map each arrival to the send that shares its step.

        A send right behind the arrival has all its other waits behind it too.
        """
        transfers, ops = self.program.transfers, self.ops
        if self._abreast:
            return relays(transfers, ops, self.needed)
        return {
            number: number + 1
            for number, (here, there) in enumerate(pairwise(ops))
            if here.receives
            and there.sends
            and is_relay(transfers[here.transfer], transfers[there.transfer])
            and transfers[here.transfer].write == transfers[there.transfer].read
        }


def _cut(chain: list[Hop]) -> Iterator[list[Hop]]:
    """Yield the transfers of a chain one by one, their ends no longer fused."""
    for here, there in pairwise(chain):
        send = here._replace(recv=None, ops=here.ops[-1:])
        receive = there._replace(send=None, ops=there.ops[:1])
        yield [send, receive]
