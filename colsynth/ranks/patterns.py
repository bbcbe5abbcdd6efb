"""How long the algorithms of libraries take on hosts in an order: latencies and full links.

The model has a latency for each pair of hosts and links that data shares. It is no simulation: it
orders orders, thousands of them a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Program, RoundProgram
from colsynth.ranks.matrix import Floats, Ints, Network
from colsynth.synthesis.baselines.double_tree import double_tree

PATTERNS = ("ring", "tree", "halving-doubling")
"""Algorithms of an allreduce whose order can be chosen; or a schedule file."""

_EVEN = 1e-3
"""Weight of the mean load beside the largest: among equal maxima, less traffic is better."""


@dataclass(frozen=True)
class Stage:
    """Messages at the same time, from place to place of an order.

    Parameters
    ----------
    source, target : int64 (E,)
        Places.
    share : float64 (E,)
        Bytes of each, as a share of the message.
    times : float
        How often latencies count.
    mean : bool
        Whether latencies count on average, as where each rank only waits for its neighbour, or
        the largest of them.
    """

    source: Ints
    target: Ints
    share: Floats
    times: float
    mean: bool


def stages_of(pattern: str, hosts: int) -> tuple[Stage, ...]:
    """Return the stages of an allreduce among hosts.

    Raises
    ------
    InputError
        CS635: there is no such pattern, or not for so many hosts.
    """
    places = np.arange(hosts)
    if pattern == "ring":
        passed = 2 * (hosts - 1)
        share = np.full(hosts, passed / hosts)
        return (Stage(places, (places + 1) % hosts, share, passed, True),)
    if pattern == "halving-doubling" and hosts & (hosts - 1) == 0:
        return tuple(
            Stage(places, places ^ (1 << k), np.full(hosts, 1 / (1 << k)), 2, False)
            for k in range(hosts.bit_length() - 1)
        )
    if pattern == "tree":
        return _tree(hosts)
    phrase = f"no order can be found for {pattern} of {hosts} hosts"
    advice = f"known are {', '.join(PATTERNS)}; halving-doubling needs a power of two"
    raise InputError(Diagnostic("CS635", phrase, help=advice))


def _tree(hosts: int) -> tuple[Stage, ...]:
    """Return the levels of two trees, up and down: half of the message on every edge."""
    stages = []
    for parents in double_tree(hosts):
        depth: dict[int, int] = {}

        def level(place: int, parents: tuple[int | None, ...] = parents) -> int:
            parent = parents[place]
            return 0 if parent is None else 1 + level(parent)

        depth = {place: level(place) for place in range(hosts)}
        for number in range(1, max(depth.values()) + 1):
            child = np.array([place for place in range(hosts) if depth[place] == number])
            parent = np.array([parents[place] for place in child.tolist()], np.int64)
            ends = np.concatenate([child, parent]), np.concatenate([parent, child])
            # Half of the latency on each way: both trees run at the same time.
            stages.append(Stage(*ends, np.full(2 * len(child), 0.5), 1.0, False))
    return tuple(stages)


def _messages_of(program: Program) -> Iterator[tuple[int, int, int]]:
    """Yield (source, target, chunks) of everything that a schedule sends."""
    if isinstance(program, RoundProgram):
        for found in program.rounds:
            yield from ((m.source, m.target, m.count) for m in found.messages)
        return
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            for step in block.steps:
                if block.send is not None and step.op in ("s", "rcs", "rrs", "rrcs"):
                    yield gpu.rank, block.send, step.count


def stages_of_program(program: Program, per_host: int) -> tuple[Stage, ...]:
    """Return all messages between hosts of a schedule as one stage; latencies count on average."""
    chunks = program.header.chunks
    sent: dict[tuple[int, int], float] = {}
    messages: dict[tuple[int, int], int] = {}
    for source, target, count in _messages_of(program):
        if source // per_host != target // per_host:
            pair = source // per_host, target // per_host
            sent[pair] = sent.get(pair, 0.0) + count / chunks
            messages[pair] = messages.get(pair, 0) + 1
    pairs = sorted(sent)
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    each = sum(messages.values()) / max(1, program.header.ranks)
    share = np.array([sent[pair] for pair in pairs])
    return (Stage(ends[:, 0], ends[:, 1], share, each, True),)


def seconds_of(orders: Ints, stages: Sequence[Stage], network: Network, size: int) -> Floats:
    """Return the seconds of each order, for a message of `size` bytes.

    Parameters
    ----------
    orders : int64 (B, H)
        Hosts by place.
    stages : sequence of Stage
    network : Network
    size : int

    Returns
    -------
    float64 (B,)
        With a thousandth of the mean load, which breaks ties.
    """
    total = np.zeros(len(orders))
    joint = _joint(stages)
    for stage in stages:
        source, target = orders[:, stage.source], orders[:, stage.target]
        latency = network.latency[source, target]
        total += stage.times * (latency.mean(axis=1) if stage.mean else latency.max(axis=1))
    for stage in joint:
        source, target = orders[:, stage.source], orders[:, stage.target]
        total += size * _fullest(source, target, stage.share, network)
    return total


def _joint(stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages whose loads count one after the other; levels of trees run at once."""
    if len(stages) < 2 or not np.all(stages[0].share == 0.5):
        return list(stages)
    source, target, share = (
        np.concatenate([getattr(stage, name) for stage in stages])
        for name in ("source", "target", "share")
    )
    return [Stage(source, target, share, 1.0, False)]


def _fullest(source: Ints, target: Ints, share: Floats, network: Network) -> Floats:
    """Return the seconds per byte of the link that takes longest, in each order."""
    many, links = len(source), len(network.capacity)
    ways = network.links[source, target]
    part = network.share[source, target] * share[None, :, None] / network.capacity[ways]
    part[ways < 0] = 0.0
    if network.links.shape[2] == 1 and network.links.max() == links - 1 == network.size**2 - 1:
        busy = part[..., 0]  # every pair has a way of its own
        return np.asarray(busy.max(axis=1) + _EVEN * busy.mean(axis=1))
    flat = (np.arange(many)[:, None, None] * links + np.maximum(ways, 0)).reshape(-1)
    load = np.bincount(flat, part.reshape(-1), many * links).reshape(many, links)
    return np.asarray(load.max(axis=1) + _EVEN * load.mean(axis=1))
