"""What a threadblock executes: steps with their dependencies and connections resolved.

A nop only hands its dependency to the step behind it (contract 4.5), so units are the
steps other than nops, each with all the dependencies it really waits for. Fused local
reductions stay separate units: one after the other they do the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from colsynth.verify.table import NOP, RECEIVES, SENDS, UNKNOWN, Bools, Ints, Table


@dataclass(frozen=True)
class Units:
    """A program ready to be executed; what is not said otherwise is indexed by step.

    Parameters
    ----------
    table : Table
    first : int array, one entry more than threadblocks
        Where the units of each threadblock begin in `unit`.
    unit : int array
        Units, in the order of threadblocks.
    wait_first : int array, one entry more than steps
        Where the waits of each step begin in the next three.
    wait_block, wait_ordinal : int arrays
        What a unit waits for; a threadblock number of ``table.threadblocks`` stands for one
        that does not exist.
    cause : int array
        The unit whose flag ends each wait: the first flagged one at or after the ordinal. -1
        where nothing does in the same pass.
    send, recv : int arrays
        Connection used, -1 for none.
    match : int array
        The sending unit that a receiving one takes its message from, -1 for none.
    connections : list of tuple of int
        (source rank, target rank, channel) by connection number.
    sender, receiver : list of int
        Threadblock at each end of a connection, -1 for none.
    """

    table: Table
    first: Ints
    unit: Ints
    wait_first: Ints
    wait_block: Ints
    wait_ordinal: Ints
    cause: Ints
    send: Ints
    recv: Ints
    match: Ints
    connections: list[tuple[int, int, int]]
    sender: list[int]
    receiver: list[int]

    def of(self, threadblock: int) -> Ints:
        """Return the units of a threadblock, in order."""
        return self.unit[self.first[threadblock] : self.first[threadblock + 1]]

    @cached_property
    def origin(self) -> Ints:
        """The plain send whose message each unit moves on, -1 for units without one.

        A receive-and-send passes its message on, so a chain of them shares an origin.
        """
        return self._chains[0]

    @property
    def longest_chain(self) -> int:
        """Most receive-and-sends that one message passes through."""
        return max(0, int(self._chains[1].max(initial=0)) - 1)

    @cached_property
    def _chains(self) -> tuple[Ints, Ints]:
        """Origin and number of hops from it, per step."""
        from colsynth.kernels.messages import origins

        found: tuple[Ints, Ints] = origins(self.unit, self.match, self.send >= 0)
        return found

    @property
    def total(self) -> int:
        """Number of units."""
        return len(self.unit)


class _Connections:
    """Numbers the connections and remembers which threadblock is at which end."""

    def __init__(self) -> None:
        self.names: list[tuple[int, int, int]] = []
        self.sender: list[int] = []
        self.receiver: list[int] = []
        self._number: dict[tuple[int, int, int], int] = {}

    def claim(self, name: tuple[int, int, int], threadblock: int, *, sends: bool) -> int:
        """Return the connection's number; a second claim of an end gets one of its own."""
        number = self._number.get(name)
        ends = self.sender if sends else self.receiver
        if number is None or ends[number] >= 0:
            fresh = len(self.names)
            self._number.setdefault(name, fresh)
            self.names.append(name)
            self.sender.append(-1)
            self.receiver.append(-1)
            number = fresh
        ends[number] = threadblock
        return number


def resolve(table: Table) -> Units:
    """Return the units of a program."""
    connections = _Connections()
    ends = np.array(_claim_all(table, connections), dtype=np.int64).reshape(-1, 2)
    runs = ~np.isin(table.op, (NOP, UNKNOWN))
    unit = np.flatnonzero(runs)
    waits = _waits(table, unit)
    send = np.where(SENDS[table.op], ends[table.threadblock, 0], -1)
    recv = np.where(RECEIVES[table.op], ends[table.threadblock, 1], -1)
    return Units(
        table=table,
        first=np.searchsorted(unit, table.start),
        unit=unit,
        wait_first=waits[0],
        wait_block=waits[1],
        wait_ordinal=waits[2],
        cause=_causes(table, runs, *waits[1:]),
        send=send,
        recv=recv,
        match=_match(send, recv),
        connections=connections.names,
        sender=connections.sender,
        receiver=connections.receiver,
    )


def _match(send: Ints, recv: Ints) -> Ints:
    """Return, for every receive, the send of the same connection and place among its messages."""
    steps = len(send)
    keys = []
    for end in (send, recv):
        used = np.flatnonzero(end >= 0)
        used = used[np.argsort(end[used], kind="stable")]
        place = np.arange(len(used)) - np.searchsorted(end[used], end[used])
        keys.append((used, end[used] * (steps + 1) + place))
    (senders, sent), (receivers, taken) = keys
    match = np.full(steps, -1)
    if len(sent):
        found = np.searchsorted(sent, taken).clip(max=len(sent) - 1)
        match[receivers] = np.where(sent[found] == taken, senders[found], -1)
    return match


def _claim_all(table: Table, connections: _Connections) -> list[tuple[int, int]]:
    """Return the outgoing and incoming connection of every threadblock."""
    ends = []
    peers = zip(
        table.rank.tolist(),
        table.send.tolist(),
        table.recv.tolist(),
        table.channel.tolist(),
        strict=True,
    )
    for block, (rank, send, recv, channel) in enumerate(peers):
        out_end = in_end = -1
        if send != -1:
            out_end = connections.claim((rank, send, channel), block, sends=True)
        if recv != -1:
            in_end = connections.claim((recv, rank, channel), block, sends=False)
        ends.append((out_end, in_end))
    return ends


def _waits(table: Table, unit: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the waits of each step, as `Units` has them: those of nops wait behind them."""
    target = np.where(table.wait < -1, table.threadblocks, table.wait)
    waiting = np.flatnonzero(target >= 0)
    behind = np.searchsorted(unit, waiting)
    kept = behind < len(unit)
    kept[kept] = table.threadblock[unit[behind[kept]]] == table.threadblock[waiting[kept]]
    waiting, waiter = waiting[kept], unit[behind[kept]]
    first = np.searchsorted(waiter, np.arange(table.steps + 1))
    return first, target[waiting], table.wait_step[waiting]


def _causes(table: Table, runs: Bools, block: Ints, ordinal: Ints) -> Ints:
    """Return, for every wait, the unit whose flag ends it within one pass."""
    flagged = np.append(np.flatnonzero(table.signals & runs), table.steps)
    there = np.minimum(block, table.threadblocks - 1)
    cause = flagged[
        np.searchsorted(flagged, (table.start[there] + ordinal.clip(0)).clip(max=table.steps))
    ]
    exists = (block < table.threadblocks) & (cause < table.start[there + 1])
    return np.where(exists, cause, -1)
