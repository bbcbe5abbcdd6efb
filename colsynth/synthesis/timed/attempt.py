"""One try at a problem: every phase in turn, on what the ones before leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.timed.ticks import Ticks, choose_ticks
from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Collective, Direction, Hops, Problem, TimedPhase
from colsynth.synthesis.timed.demands import Lists, Wants, chunk_size, count_transfers, wants
from colsynth.synthesis.timed.hops import hops_of, reverse, select
from colsynth.synthesis.timed.match import Spread, Tactic, match_events
from colsynth.synthesis.timed.phases import (
    backwards,
    delayed,
    last_arrivals,
    last_end,
    last_uses,
)
from colsynth.synthesis.timed.progress import WorkMeter
from colsynth.synthesis.timed.reach import refuse_unreachable
from colsynth.synthesis.timed.regions import Region, held_together, regions
from colsynth.synthesis.timed.route import Trees, route, send_along
from colsynth.synthesis.timed.sketched import Part, parts, within
from colsynth.synthesis.timed.uniform import is_uniform, match_rounds

Ints = NDArray[np.int64]

_TURNS = 2**31
"""Seeds that differ; above, they are the same again."""

AUTO = "auto"
"""The policy that leaves the tactic to the tries."""


@dataclass(frozen=True)
class Task:
    """One phase: what is wanted, on which hops, and what all tries share.

    Parameters
    ----------
    wants : Wants
    hops : Hops
        Outwards: reversed where the phase reduces.
    was : int64 (H,)
        Which hop in data direction each of `hops` is.
    regions : tuple of Region
    parts : tuple of Part
        Which chunks may take which hops, where not everybody wants everything.
    """

    wants: Wants
    hops: Hops
    was: Ints
    regions: tuple[Region, ...]
    parts: tuple[Part, ...] = ()


class Setting:
    """A problem with its hops and ticks.

    Parameters
    ----------
    problem : Problem
    size : int
        Bytes of the message.
    chunks_per_gpu : int
    spaced : bool
        Whether messages are of one chunk and links stay occupied for their latency too.
    """

    def __init__(self, problem: Problem, size: int, chunks_per_gpu: int, spaced: bool) -> None:
        self.problem, self.topology = problem, problem.topology
        self.gpus, self.links = self.topology.size, len(self.topology.links)
        self.chunk_bytes: Fraction = chunk_size(problem, size, chunks_per_gpu)
        self.ticks: Ticks = choose_ticks(self.topology, self.chunk_bytes)
        self._confined = () if problem.transit else problem.groups
        hops = hops_of(self.topology, self.chunk_bytes, self.ticks, self._confined, spaced=spaced)
        self.all_hops: Hops = within(problem, hops)
        self.wants: tuple[Wants, ...] = wants(problem, chunks_per_gpu)
        self.transfers = count_transfers(problem, chunks_per_gpu)
        self._trees: dict[tuple[Direction, int, bool], Trees] = {}

    @cached_property
    def hops(self) -> Hops:
        """Hops that the problem may use."""
        if not self._confined:
            return self.all_hops
        group = np.full(self.gpus, -1)
        for number, ranks in enumerate(self._confined):
            group[list(ranks)] = number
        source, target = group[self.all_hops.source], group[self.all_hops.target]
        return select(self.all_hops, (source == target) & (source >= 0))

    def tasks(self) -> tuple[Task, ...]:
        """Return the phases.

        Raises
        ------
        InfeasibleError
            CS302: some chunk cannot reach somebody who wants it.
        """
        for item in self.wants:
            hops, _ = self.outwards(item)
            for index, keep in parts(self.problem, hops, item):
                refuse_unreachable(self.problem, select(hops, keep), item.take(index))
        return tuple(self._task(item) for item in self.wants)

    def outwards(self, item: Wants) -> tuple[Hops, Ints]:
        """Return the hops as chunks of a phase take them outwards, and which each was."""
        if item.direction is Direction.IN:
            return reverse(self.hops)
        return self.hops, np.arange(len(self.hops))

    def trees(self, task: Task, wanted: Lists, tactic: Tactic, meter: WorkMeter) -> Trees:
        """Return the trees that chunks take, by what a tactic says of them."""
        key = task.wants.direction, tactic.order, tactic.short
        if key not in self._trees:
            given = task.hops, self.gpus, self.links, task.wants, wanted
            self._trees[key] = route(*given, tactic, meter, task.parts)
        return self._trees[key]

    def _task(self, item: Wants) -> Task:
        hops, was = self.outwards(item)
        if item.wanted is not None:
            return Task(item, hops, was, (), parts(self.problem, hops, item))
        if self.rounds(hops):
            return Task(item, hops, was, ())
        inwards = item.direction is Direction.IN
        topology = self.topology.reversed() if inwards else self.topology
        found = _within(self.problem, regions(topology, hops))
        return Task(item, hops, was, held_together(found, hops))

    def rounds(self, hops: Hops) -> bool:
        """Whether everybody can be served round by round."""
        return not self.problem.groups and is_uniform(hops)


def _within(problem: Problem, found: tuple[Region, ...]) -> tuple[Region, ...]:
    """Return the parts of regions that lie in one group, short of the whole group."""
    groups = [set(group) for group in problem.members]
    parts = {
        part: None
        for region in found
        for group in groups
        if 1 < len(part := tuple(rank for rank in region if rank in group)) < len(group)
    }
    return tuple(parts)


def tactics(
    problem: Problem, tasks: tuple[Task, ...], policy: str, tries: int, seed: int
) -> Iterator[Tactic]:
    """Yield what `choose` returns for each try, and one of shortest ways where chunks have any."""
    for number in range(tries):
        yield choose(problem, tasks, policy, number, seed)
    if any(task.parts for task in tasks):
        yield replace(choose(problem, tasks, policy, 0, seed), short=True)


def choose(
    problem: Problem, tasks: tuple[Task, ...], policy: str, number: int, seed: int
) -> Tactic:
    """Return how a try chooses: by each policy in turn, strictly first where that differs.

    On networks whose links all take equally long oldest-first meets the bound most often;
    elsewhere rarest-first does (16x16 to 32x32 meshes with slow and missing links). So it
    does where a root has all chunks: oldest-first sends each over every link of the root.

    Parameters
    ----------
    problem : Problem
    tasks : tuple of Task
    policy : str
        `AUTO` or a key of `match.POLICIES`.
    number, seed : int
        Of the try.
    """
    matched = [task for task in tasks if not task.parts]
    even = not problem.collective.rooted and all(is_uniform(task.hops) for task in matched)
    both = ("oldest", "rarest") if even else ("rarest", "oldest")
    policies = both if policy == AUTO else (policy,)
    strictness = (True, False) if any(task.regions for task in matched) else (False,)
    ways = [(p, strict) for strict in strictness for p in policies][: None if matched else 1]
    turn, place = divmod(number, len(ways))
    order, whole = divmod(number, 2)
    return Tactic(*ways[place], (seed + turn) % _TURNS, bool(whole), order)


def attempt(
    setting: Setting, tasks: tuple[Task, ...], tactic: Tactic, meter: WorkMeter
) -> tuple[TimedPhase, ...]:
    """Return the phases of one try."""
    done: list[TimedPhase] = []
    for task in tasks:
        phase = _phase(setting, task, done, tactic, meter)
        # Where everybody wants everything, all phases have equally many transfers.
        if not task.parts and phase.transfers * len(tasks) < setting.transfers:
            raise DefectError(Diagnostic("CS905", "matching left some chunk undelivered"))
        if task.wants.direction is Direction.IN:
            phase = backwards(phase, setting.hops, task.was, last_end(phase))
        done.append(phase)
    return tuple(done)


def _phase(
    setting: Setting, task: Task, before: list[TimedPhase], tactic: Tactic, meter: WorkMeter
) -> TimedPhase:
    """Return one phase, outwards."""
    item, turn = task.wants, tactic.turn
    if not task.parts and tactic.policy == "oldest" and setting.rounds(task.hops):
        phase = match_rounds(task.hops, setting.gpus, item, turn, meter)
        return delayed(phase, max((last_end(other) for other in before), default=0))
    start = start_of_phase(setting, item, before)
    if item.wanted is not None:
        trees = setting.trees(task, item.wanted, tactic, meter)
        return send_along(task.hops, setting.gpus, item, trees, start, tactic, meter)
    spread = Spread(task.hops, setting.problem.members, setting.gpus, item, task.regions)
    return match_events(spread, start, tactic, meter)


def start_of_phase(setting: Setting, item: Wants, before: list[TimedPhase]) -> tuple[Ints, Ints]:
    """Return when each link falls free, and when each chunk of a phase is there."""
    busy = np.zeros(setting.links, np.int64)
    born = np.zeros(len(item.number), np.int64)
    for phase in before:
        np.maximum(busy, last_uses(phase, setting.links), out=busy)
        if setting.problem.collective is Collective.ALLREDUCE:
            np.maximum(born, last_arrivals(phase, item.holders.items), out=born)
    return busy, born
