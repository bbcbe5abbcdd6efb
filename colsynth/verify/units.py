"""What a threadblock executes: steps with their dependencies and connections resolved.

A nop only hands its dependency to the step behind it (contract 4.5), so units are the
steps other than nops, each with all the dependencies it really waits for. Fused local
reductions stay separate units: one after the other they do the same.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from colsynth.verify.table import NOP, RECEIVES, SENDS, UNKNOWN, Table


@dataclass(frozen=True)
class Units:
    """A program ready to be executed; all lists are indexed by step unless said otherwise.

    Parameters
    ----------
    table : Table
    program : list of list of int
        Units of each threadblock, in order.
    waits : list of tuple
        (threadblock, ordinal) pairs; a threadblock number of ``table.threadblocks``
        stands for one that does not exist.
    causes : list of tuple of int
        The unit whose flag ends each wait: the first flagged one at or after the
        ordinal. -1 where nothing does in the same pass.
    send, recv : list of int
        Connection used, -1 for none.
    match : list of int
        The sending unit that a receiving one takes its message from, -1 for none.
    connections : list of tuple of int
        (source rank, target rank, channel) by connection number.
    sender, receiver : list of int
        Threadblock at each end of a connection, -1 for none.
    """

    table: Table
    program: list[list[int]]
    waits: list[tuple[tuple[int, int], ...]]
    causes: list[tuple[int, ...]]
    send: list[int]
    recv: list[int]
    match: list[int]
    connections: list[tuple[int, int, int]]
    sender: list[int]
    receiver: list[int]

    @cached_property
    def origin(self) -> list[int]:
        """The plain send whose message each unit moves on, -1 for units without one.

        A receive-and-send passes its message on, so a chain of them shares an origin.
        """
        return self._chains[0]

    @property
    def longest_chain(self) -> int:
        """Most receive-and-sends that one message passes through."""
        return max(0, max(self._chains[1], default=0) - 1)

    @cached_property
    def _chains(self) -> tuple[list[int], list[int]]:
        """Origin and number of hops from it, per step."""
        origin, hops = [-1] * self.table.steps, [0] * self.table.steps
        for units in self.program:
            for unit in units:
                path: list[int] = []
                at = unit
                while self.match[at] >= 0 and origin[at] < 0 and len(path) < len(origin):
                    path.append(at)
                    at = self.match[at]
                if origin[at] < 0 and self.send[at] >= 0:
                    origin[at] = at
                for passed in reversed(path):
                    origin[passed], hops[passed] = origin[at], hops[at] + 1
                    at = passed
        return origin, hops

    @property
    def total(self) -> int:
        """Number of units."""
        return sum(map(len, self.program))


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
    ends = _claim_all(table, connections)
    program, waits = _program(table)
    send, recv = [-1] * table.steps, [-1] * table.steps
    sends, receives = SENDS[table.op].tolist(), RECEIVES[table.op].tolist()
    outgoing: list[list[int]] = [[] for _ in connections.names]
    incoming: list[list[int]] = [[] for _ in connections.names]
    for threadblock, units in enumerate(program):
        out_end, in_end = ends[threadblock]
        for unit in units:
            if sends[unit] and out_end >= 0:
                send[unit] = out_end
                outgoing[out_end].append(unit)
            if receives[unit] and in_end >= 0:
                recv[unit] = in_end
                incoming[in_end].append(unit)
    match = [-1] * table.steps
    for sent, received in zip(outgoing, incoming, strict=True):
        for sender, receiver in zip(sent, received, strict=False):
            match[receiver] = sender
    return Units(
        table=table,
        program=program,
        waits=waits,
        causes=_causes(table, waits),
        send=send,
        recv=recv,
        match=match,
        connections=connections.names,
        sender=connections.sender,
        receiver=connections.receiver,
    )


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


def _program(table: Table) -> tuple[list[list[int]], list[tuple[tuple[int, int], ...]]]:
    """Return the units of each threadblock and the waits of each step."""
    waits: list[tuple[tuple[int, int], ...]] = [()] * table.steps
    target = np.where(table.wait < -1, table.threadblocks, table.wait).tolist()
    ordinal, idle = table.wait_step.tolist(), np.isin(table.op, (NOP, UNKNOWN)).tolist()
    start = table.start.tolist()
    program = []
    for first, last in itertools.pairwise(start):
        units: list[int] = []
        pending: tuple[tuple[int, int], ...] = ()
        for step in range(first, last):
            if target[step] >= 0:
                pending += ((target[step], ordinal[step]),)
            if idle[step]:
                continue
            if pending:
                waits[step], pending = pending, ()
            units.append(step)
        program.append(units)
    return program, waits


def _causes(table: Table, waits: list[tuple[tuple[int, int], ...]]) -> list[tuple[int, ...]]:
    """Return, for every wait, the unit whose flag ends it within one pass."""
    publishes = (table.signals & ~np.isin(table.op, (NOP, UNKNOWN))).tolist()
    start = table.start.tolist()
    following = [-1] * table.steps
    for first, last in itertools.pairwise(start):
        flagged = -1
        for step in range(last - 1, first - 1, -1):
            if publishes[step]:
                flagged = step
            following[step] = flagged

    def cause(threadblock: int, ordinal: int) -> int:
        if threadblock >= table.threadblocks:
            return -1
        first, last = start[threadblock], start[threadblock + 1]
        step = first + max(ordinal, 0)
        return following[step] if step < last else -1

    return [tuple(cause(*wait) for wait in found) if found else () for found in waits]
