"""What links allow a schedule, beside what they allow any schedule of its problem."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.routes import Route
from colsynth.cost.shared_switch import shared_switch
from colsynth.model import (
    SENDS,
    Forest,
    Program,
    RoundProgram,
    ThreadblockProgram,
    TimedSchedule,
    Topology,
    chunks_on_links,
    unit_bandwidth,
)
from colsynth.simulate.multicast import most_over_switch
from colsynth.units import format_bandwidth

_NEARLY = Fraction(9, 10)
"""A lower rate than this share of another one is worth a note."""


@dataclass(frozen=True, slots=True)
class LinkRate:
    """The bandwidth that links allow a schedule, and any of its problem.

    Parameters
    ----------
    algbw : Fraction
        Bytes of the message per second, if the busiest link never idles.
    bound : Fraction
        The optimum of the problem, likewise.
    proven : bool
        Whether no schedule beats `bound`. Otherwise it is the best that is known of trees.
    """

    algbw: Fraction
    bound: Fraction
    proven: bool = True

    @property
    def gap(self) -> Fraction:
        """Lost share of time: bound / reached - 1; 0 is optimal where the bound is `proven`."""
        return self.bound / self.algbw - 1


def forest_rate(forest: Forest, bound: Fraction) -> LinkRate:
    """Return what links allow a forest, beside what they allow any schedule.

    A phase begins for the first chunks long before the one in front of it ends for the last, so
    what counts is how much each link carries in all phases. That is more than `Forest.algbw`, which
    has one phase follow the other, where phases load different links.
    """
    if forest.together or forest.in_network or len(forest.phases) < 2:
        return LinkRate(forest.algbw, bound)
    load = chunks_on_links(tree for phase in forest.phases for tree in phase.trees)
    unit = unit_bandwidth(forest.problem.topology, load)
    return LinkRate(max(forest.algbw, forest.chunks * unit), bound)


def link_rate(program: Program, topology: Topology, bound: Fraction) -> LinkRate | None:
    """Return the rate of a program's links; None where it sends nothing.

    Data takes the links that the simulator has it take.
    """
    chunks = program.header.chunks
    if isinstance(program, ThreadblockProgram) and program.multicasts:
        switch, passed = shared_switch(topology), most_over_switch(program)
        return None if switch is None else LinkRate(chunks * switch.bandwidth / passed, bound)
    moved: Iterator[tuple[Route, int | Fraction]]
    if isinstance(program, RoundProgram):
        moved = _by_round(program, topology)
    else:
        moved = _by_channel(program, topology)
    load = defaultdict[int, Fraction](Fraction)
    for route, share in moved:
        for link in route:
            load[link] += share
    return LinkRate(chunks * unit_bandwidth(topology, load), bound) if load else None


def _by_channel(program: ThreadblockProgram, topology: Topology) -> Iterator[tuple[Route, int]]:
    """Yield routes and the chunks that take them; the channel of a connection chooses its route."""
    sent: Counter[tuple[int, int, int]] = Counter()
    blocks = ((gpu.rank, block) for gpu in program.gpus for block in gpu.threadblocks)
    for (rank, block), chunks in zip(blocks, _sent(program), strict=True):
        if block.send is not None and chunks:
            sent[rank, block.send, block.channel] += chunks
    routes = pair_routes(topology, {(source, target) for source, target, _ in sent})
    for (source, target, channel), chunks in sent.items():
        choice = routes[source, target]
        yield choice[channel % len(choice)], chunks


def _by_round(program: RoundProgram, topology: Topology) -> Iterator[tuple[Route, Fraction]]:
    """Yield routes and the chunks that take them; equal routes share a message."""
    sent: Counter[tuple[int, int]] = Counter()
    for message in (message for found in program.rounds for message in found.messages):
        sent[message.source, message.target] += message.count
    routes = pair_routes(topology, set(sent))
    for pair, chunks in sent.items():
        yield from ((route, Fraction(chunks, len(routes[pair]))) for route in routes[pair])


def best_rate(schedule: object, taken: LinkRate | None, bound: Fraction) -> LinkRate | None:
    """Return what links allow a schedule, given what they allow the connections of its program.

    Of forests and timed schedules, what counts is how much each link carries: runtimes pass chunks
    on in small parts, so they neither keep times nor wait for whole chunks.
    """
    if isinstance(schedule, Forest):
        return forest_rate(schedule, bound)
    if not isinstance(schedule, TimedSchedule):
        return taken
    timed = LinkRate(schedule.link_rate, bound)
    return timed if taken is None else max(timed, taken, key=lambda rate: rate.algbw)


def detours(schedule: object, links: LinkRate | None, taken: LinkRate | None) -> tuple[str, ...]:
    """Return a note where connections cannot be told to take the ways a schedule counts on."""
    if not isinstance(schedule, Forest | TimedSchedule) or links is None or taken is None:
        return ()
    if taken.algbw >= _NEARLY * links.algbw:
        return ()
    counted, allowed = (format_bandwidth(rate.algbw) for rate in (links, taken))
    what = "trees count" if isinstance(schedule, Forest) else "the timed schedule counts"
    told = f"connections take the shortest, whose links allow {allowed}, and {what} on others"
    return (f"files cannot choose routes: {told} too ({counted}); predictions follow the shortest",)


def _sent(program: ThreadblockProgram) -> list[int]:
    """Return the chunks that each threadblock sends."""
    import numpy as np

    steps = program.steps
    so_far = np.cumsum(steps.count * steps.among(SENDS))
    ends = np.cumsum(program.lengths)
    found: list[int] = np.diff(np.append(0, so_far)[np.append(0, ends)]).tolist()
    return found
