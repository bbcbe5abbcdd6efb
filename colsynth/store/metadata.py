"""Everything of a timed schedule but its long arrays, as plain data and back."""

from __future__ import annotations

from collections.abc import Sequence
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

FORMAT, VERSION = "colsynth timed schedule", 1


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


def read_topology(data: dict[str, Any], columns: Sequence[Sequence[int]]) -> Topology:
    """Return the topology that `describe` and `link_columns` wrote down."""
    kinds = [(Fraction(rate), Fraction(delay)) for rate, delay in data["kinds"]]
    return Topology(
        name=data["name"],
        nodes=tuple(
            Node(name, Kind(kind), box, tuple(capabilities))
            for name, kind, box, capabilities in data["nodes"]
        ),
        links=tuple(
            Link(source, target, *kinds[kind])
            for source, target, kind in zip(*columns, strict=True)
        ),
        ranks=tuple(data["ranks"]),
    )


def read_problem(data: dict[str, Any], topology: Topology) -> Problem:
    """Return the problem that `describe` wrote down."""
    return Problem(
        topology=topology,
        collective=Collective(data["collective"]),
        root=data["root"],
        groups=tuple(tuple(group) for group in data["groups"]),
        transit=data["transit"],
        demands=tuple(
            Demand(tuple(holders), tuple(wanted), count, reduces)
            for holders, wanted, count, reduces in data["demands"]
        ),
    )


def read_directions(data: dict[str, Any]) -> tuple[Direction, ...]:
    """Return the directions of the phases."""
    return tuple(Direction(word) for word in data["phases"])
