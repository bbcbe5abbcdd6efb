"""Links as a lower bound sees them: how long a chunk keeps each busy, and when it can.

A link that is busy for `busy` ticks with the bytes of every chunk, and on which none can start
before some tick nor end later than some ticks before the end, passes at most
``floor((T - delay) / busy)`` chunks in T ticks. That is all a bound on a cut needs. Latency is
a part of the delay: chunks that follow each other as one message pay it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.network import to_int64
from colsynth.bounds.offsets import group_by
from colsynth.bounds.timed.ticks import Ticks, link_kinds
from colsynth.kernels.distances import FAR, spread
from colsynth.model import Kind, Problem

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Wires:
    """The links that data may take.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    tail, head : int64 (L,)
        Nodes.
    busy : int64 (L,)
        Ticks that the bytes of a chunk occupy the link.
    delay : int64 (L,)
        Ticks before the first and after the last chunk in which the link is of no use, with
        its latency.
    """

    nodes: int
    tail: Ints
    head: Ints
    busy: Ints
    delay: Ints


def open_ranks(problem: Problem) -> Flags:
    """Return which ranks may send and receive: all, or the members of the groups alone."""
    found = np.ones(problem.topology.size, np.bool_)
    if problem.groups and not problem.transit:
        found[:] = False
        found[[rank for members in problem.groups for rank in members]] = True
    return found


def csr(size: int, tail: Ints, head: Ints, length: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (first, head, length) of arcs sorted by their tails."""
    first, order = group_by(tail, size)
    return first, head[order], length[order]


def wires_of(
    problem: Problem,
    chunk_bytes: Fraction,
    ticks: Ticks,
    before: Ints,
    after: Ints,
    used: NDArray[np.int32],
) -> Wires:
    """Return the links of a problem.

    Parameters
    ----------
    before : int64 (N,)
        Ticks until each rank can have anything to send.
    after : int64 (N,)
        Ticks that data still needs from each rank to where it is wanted.
    used : int32
        Links of the hops; with a sketch, data takes no others.
    """
    topology = problem.topology
    ranks = np.array(topology.ranks, np.int64)
    tail = np.array([link.source for link in topology.links], np.int64)
    head = np.array([link.target for link in topology.links], np.int64)
    kinds, kind_of = link_kinds(topology)
    times = [(ticks.at_least(chunk_bytes / rate), ticks.at_most(lag)) for rate, lag in kinds]
    busy, latency = np.array(times, np.int64).reshape(-1, 2)[kind_of].T
    start, rest = np.full((2, len(topology.nodes)), FAR)
    start[ranks], rest[ranks] = before, after
    if len(ranks) < len(topology.nodes):
        _pass_switches(problem, latency, tail, head, start, rest)
    is_open = np.ones(len(topology.nodes), np.bool_)
    is_open[ranks] = open_ranks(problem)
    kept = is_open[tail] & is_open[head] & (start[tail] < FAR) & (rest[head] < FAR)
    if problem.sketch is not None:
        kept &= np.isin(np.arange(len(tail)), used)
    delay = start[tail[kept]] + latency[kept] + rest[head[kept]]
    return Wires(len(topology.nodes), tail[kept], head[kept], busy[kept], delay)


def _pass_switches(
    problem: Problem, latency: Ints, tail: Ints, head: Ints, start: Ints, rest: Ints
) -> None:
    """Set the times of switches and NICs: the least latency from and to a GPU."""
    topology = problem.topology
    forwards = np.array([node.kind is not Kind.GPU for node in topology.nodes])
    into, out = forwards[head], forwards[tail]
    spread(*csr(len(start), tail[into], head[into], latency[into]), start)
    spread(*csr(len(rest), head[out], tail[out], latency[out]), rest)


def least_times(need: Ints, first: Ints, links: Ints, wires: Wires) -> Ints:
    """Return, for each cut, the fewest ticks in which its links pass what they must.

    Parameters
    ----------
    need : int64 (k,)
        Chunks, one or more.
    first : int64 (k + 1,)
    links : int64
        Cut i has ``links[first[i]:first[i + 1]]``, one or more.
    """
    if len(need) == 0:
        return need
    starts, sizes = first[:-1], np.diff(first)
    busy, delay = wires.busy[links], wires.delay[links]
    each = -(-need // sizes)
    slowest = np.maximum.reduceat(busy, starts)
    to_int64([int(each.max()) * int(slowest.max())], "chunks times their duration")
    high = each * slowest + np.maximum.reduceat(delay, starts)
    low = np.zeros_like(high)
    while (low < high).any():
        middle = (low + high) // 2
        left = np.repeat(middle, sizes) - delay
        enough = np.add.reduceat(np.maximum(left, 0) // busy, starts) >= need
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle + 1)
    return high
