"""Everything of a timed schedule but its long arrays, as plain data and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from colsynth.model import (
    Collective,
    Demand,
    Direction,
    Kind,
    Link,
    Node,
    Problem,
    TimedSchedule,
    Topology,
)
from colsynth.units import parse_fraction

FORMAT, VERSION = "colsynth timed schedule", 2

WITHOUT_LAG = 1
"""The version in which a chunk was there as soon as its last link fell free."""

_MOST, _MOST_CHUNKS = 2**62, 2**31
"""Of sizes and ticks, which kernels reckon with in 64 bits, and of chunks, numbered in 32."""


@dataclass(frozen=True, slots=True)
class Version:
    """What every version of the format says."""

    format: str
    version: int


@dataclass(frozen=True, slots=True)
class TopologyData:
    """A topology without its links."""

    name: str
    nodes: tuple[tuple[str, Kind, int | None, tuple[str, ...]], ...]
    ranks: tuple[int, ...]
    kinds: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The form of what `describe` returns."""

    topology: TopologyData
    collective: Collective
    root: int | None
    groups: tuple[tuple[int, ...], ...]
    transit: bool
    demands: tuple[tuple[tuple[int, ...], tuple[int, ...], int, bool], ...]
    size: int
    chunks_per_gpu: int
    chunks: int
    chunk_bytes: str
    tick: str
    ticks: int
    bound: tuple[str, str]
    phases: tuple[Direction, ...]
    claim: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that no schedule has."""
        counts = (self.chunks_per_gpu, self.chunks, *(x[2] for x in self.demands))
        if not all(0 < count < _MOST_CHUNKS for count in counts):
            raise ValueError("a number of chunks is below one or beyond 32 bits")
        if not (0 < self.size < _MOST and 0 <= self.ticks < _MOST):
            raise ValueError("a number is below its least or beyond 64 bits")


def describe(schedule: TimedSchedule) -> dict[str, Any]:
    """Return plain data, ready for JSON; links are in `link_columns`."""
    problem, topology = schedule.problem, schedule.problem.topology
    return {
        "format": FORMAT,
        "version": VERSION,
        "topology": {
            "name": topology.name,
            "nodes": [[x.name, str(x.kind), x.box, list(x.capabilities)] for x in topology.nodes],
            "ranks": list(topology.ranks),
            "kinds": [[str(rate), str(delay)] for rate, delay in link_kinds(topology)],
        },
        "collective": str(problem.collective),
        "root": problem.root,
        "groups": [list(group) for group in problem.groups],
        "transit": problem.transit,
        "demands": [[list(x.holders), list(x.wanted), x.count, x.reduces] for x in problem.demands],
        "size": schedule.size,
        "chunks_per_gpu": schedule.chunks_per_gpu,
        "chunks": schedule.chunks,
        "chunk_bytes": str(schedule.chunk_bytes),
        "tick": str(schedule.tick),
        "ticks": schedule.ticks,
        "bound": [str(schedule.bound.seconds), schedule.bound.reason],
        "phases": [str(phase.direction) for phase in schedule.phases],
        "claim": schedule.claim,
    }


def link_kinds(topology: Topology) -> dict[tuple[Fraction, Fraction], int]:
    """Return the place of each (bandwidth, latency), in the order of the links."""
    kinds: dict[tuple[Fraction, Fraction], int] = {}
    for link in topology.links:
        kinds.setdefault((link.bandwidth, link.latency), len(kinds))
    return kinds


def link_columns(topology: Topology) -> dict[str, list[int]]:
    """Return source, target and kind of every link."""
    kinds = link_kinds(topology)
    return {
        "link_source": [link.source for link in topology.links],
        "link_target": [link.target for link in topology.links],
        "link_kind": [kinds[link.bandwidth, link.latency] for link in topology.links],
    }


def read_topology(data: TopologyData, columns: Sequence[Sequence[int]]) -> Topology:
    """Return the topology that `describe` and `link_columns` wrote down."""
    kinds = [(above_zero(rate), parse_fraction(delay)) for rate, delay in data.kinds]
    if any(delay < 0 for _, delay in kinds):
        raise ValueError("a latency is below zero")
    return Topology(
        name=data.name,
        nodes=tuple(Node(*node) for node in data.nodes),
        links=tuple(
            Link(source, target, *kinds[kind])
            for source, target, kind in zip(*columns, strict=True)
        ),
        ranks=data.ranks,
    )


def above_zero(text: str) -> Fraction:
    """Return a fraction; raise ValueError where it is none above zero."""
    value = parse_fraction(text)
    if value <= 0:
        raise ValueError(f"{text} is not above zero")
    return value


def read_problem(data: Metadata, topology: Topology) -> Problem:
    """Return the problem that `describe` wrote down."""
    return Problem(
        topology=topology,
        collective=data.collective,
        root=data.root,
        groups=data.groups,
        transit=data.transit,
        demands=tuple(Demand(*demand) for demand in data.demands),
    )
