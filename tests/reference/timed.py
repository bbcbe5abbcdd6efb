"""A timed schedule replayed transfer by transfer, as slowly and plainly as possible.

`faults` returns the codes of all kinds of fault, so that the checker's one must be among
them. `sums` adds up contributions as numbers would be, whatever the rules say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

from colsynth.model import Collective, Direction, Kind, TimedPhase, TimedSchedule


class Sent(NamedTuple):
    """One transfer."""

    start: int
    end: int
    source: int
    target: int
    chunk: int
    hop: int


def conditions(problem, each):
    """Return (kinds of phase, holders, wanted) of every chunk."""
    found = []
    if problem.collective is Collective.CUSTOM:
        for demand in problem.demands:
            for _ in range(demand.count * each):
                phases = ["sum"] if demand.reduces else ["copy"]
                found.append((phases, set(demand.holders), set(demand.wanted)))
        return found
    for members in problem.members:
        everyone = set(members)
        root = None if problem.root is None else {members[problem.root]}
        for i in members:
            copies = {
                Collective.ALLGATHER: [({i}, everyone)],
                Collective.SCATTER: [(root, {i})],
                Collective.GATHER: [({i}, root)],
                Collective.ALLTOALL: [({i}, {j}) for j in members],
            }
            sums = {Collective.REDUCE_SCATTER, Collective.ALLREDUCE}
            for holders, wanted in copies.get(problem.collective, []):
                found += [(["copy"], holders, wanted)] * each
            if problem.collective in sums:
                phases = ["sum"] + ["spread"] * (problem.collective is Collective.ALLREDUCE)
                found += [(phases, everyone, {i})] * each
        if problem.collective is Collective.BROADCAST:
            found += [(["copy"], root, everyone)] * each
        if problem.collective is Collective.REDUCE:
            found += [(["sum"], everyone, root)] * each
    return found


def transfers(phase: TimedPhase) -> list[Sent]:
    """Return all transfers of a phase."""
    hops, found, place = phase.hops, [], 0
    for hop in range(len(hops)):
        links = range(hops.first[hop], hops.first[hop + 1])
        stride = max(int(hops.end[i] - hops.begin[i]) for i in links)
        duration = int(hops.end[hops.first[hop + 1] - 1] + hops.lag[hop])
        for run in range(phase.run_first[hop], phase.run_first[hop + 1]):
            for k in range(phase.run_length[run]):
                start = int(phase.run_start[run]) + k * stride
                ends = int(hops.source[hop]), int(hops.target[hop])
                chunk = int(phase.chunk[place])
                found.append(Sent(start, start + duration, *ends, chunk, hop))
                place += 1
    return found


def faults(schedule: TimedSchedule) -> set[str]:
    """Return the codes of everything wrong with a schedule whose arrays are in order."""
    phases = [(phase, transfers(phase)) for phase in schedule.phases]
    sent = [t for _, some in phases for t in some]
    codes = set()
    if schedule.ticks != max((t.end for t in sent), default=0) or any(t.start < 0 for t in sent):
        codes.add("CS510")
    hops = [(phase.hops, hop) for phase in schedule.phases for hop in range(len(phase.hops))]
    if not all(possible(schedule, *hop) for hop in hops):
        codes.add("CS511")
    if meetings(phases):
        codes.add("CS512")
    if strangers(schedule.problem, sent):
        codes.add("CS513")
    return codes | data_faults(schedule, phases)


def strangers(problem, sent):
    """Whether GPUs take part that must not."""
    if problem.transit or not problem.groups:
        return False
    return not all(
        any({t.source, t.target} <= set(members) for members in problem.groups) for t in sent
    )


def data_faults(schedule, phases):
    """Return codes of all that is wrong with who has what."""
    codes, ready = set(), {}
    for phase, sent in phases:
        for chunk, condition in enumerate(conditions(schedule.problem, schedule.chunks_per_gpu)):
            moves = [t for t in sent if t.chunk == chunk]
            if phase.direction is Direction.IN:
                codes |= chunk_in(moves, condition)
                arrived = [t.end for t in moves if {t.target} == condition[2]]
                ready[chunk] = max(arrived, default=0)
            else:
                codes |= chunk_out(moves, condition, ready.get(chunk))
    return codes


def chunk_in(moves, condition):
    kinds, holders, wanted = condition
    if "sum" in kinds:
        return sum_faults(moves, holders, *wanted)
    return {"CS517"} if moves else set()


def chunk_out(moves, condition, ready):
    kinds, holders, wanted = condition
    if "spread" in kinds:
        return copy_faults(moves, dict.fromkeys(wanted, ready), holders)
    if "copy" in kinds:
        return copy_faults(moves, dict.fromkeys(holders, 0), wanted)
    return {"CS515"} if moves else set()


def possible(schedule, hops, hop):
    """Whether a chunk passes a hop's links in time, sent on as early as it can be."""
    topology = schedule.problem.topology
    at, head, tail = topology.ranks[hops.source[hop]], Fraction(0), Fraction(0)
    goal = topology.ranks[hops.target[hop]]
    for place in range(hops.first[hop], hops.first[hop + 1]):
        link = topology.links[hops.links[place]]
        if link.source != at or at == goal:
            return False
        stores = "store-and-forward" in topology.nodes[at].capabilities
        moving = schedule.chunk_bytes / link.bandwidth / schedule.tick
        start = max(Fraction(int(hops.begin[place])), tail if stores else head, tail - moving)
        head = start + link.latency / schedule.tick
        tail = head + moving
        if start + moving > int(hops.end[place]):
            return False
        at = link.target
        if at != goal and topology.nodes[at].kind is Kind.GPU:
            return False
    return at == goal and tail <= int(hops.end[place] + hops.lag[hop])


def meetings(phases):
    """Whether two transfers ever occupy one link."""
    taken = defaultdict(list)
    for phase, sent in phases:
        for t in sent:
            for place in range(phase.hops.first[t.hop], phase.hops.first[t.hop + 1]):
                times = t.start + int(phase.hops.begin[place]), t.start + int(phase.hops.end[place])
                taken[int(phase.hops.links[place])].append(times)
    return any(
        later[0] < earlier[1]
        for times in taken.values()
        for place, later in enumerate(sorted(times))
        for earlier in sorted(times)[:place]
    )


def copy_faults(moves, ready, wanted):
    """Return codes for one chunk that is there from `ready[rank]` on."""
    codes = set()
    if moves and wanted <= set(ready):
        codes.add("CS515")
    has = dict(ready)
    for t in moves:
        if t.target in has:
            codes.add("CS515")
        has[t.target] = min(t.end, has.get(t.target, t.end))
    if any(t.source not in has or has[t.source] > t.start for t in moves):
        codes.add("CS514")
    if wanted - set(has):
        codes.add("CS516")
    return codes


def sum_faults(moves, holders, final):
    """Return codes for one chunk that `final` is to have the sum of."""
    sends = Counter(t.source for t in moves)
    touched = holders | {t.target for t in moves}
    once = all(sends[rank] == (rank != final) for rank in touched | set(sends))
    known = set(sends) <= touched
    late = any(a.target == b.source and a.end > b.start for a in moves for b in moves)
    return set() if once and known and not late else {"CS517"}


def sums(schedule: TimedSchedule) -> bool:
    """Whether every final rank ends with each contribution exactly once."""
    chunks = conditions(schedule.problem, schedule.chunks_per_gpu)
    for phase in schedule.phases:
        if phase.direction is Direction.IN:
            moved = defaultdict(list)
            for t in sorted(transfers(phase)):
                moved[t.chunk].append(t)
            for chunk, (kinds, holders, wanted) in enumerate(chunks):
                found = added(moved[chunk], holders)
                if "sum" in kinds and any(found[rank] != Counter(holders) for rank in wanted):
                    return False
    return True


def added(moves, holders):
    """Return what ranks have in the end; every transfer carries all its sender has then."""
    has = defaultdict(Counter, {rank: Counter([rank]) for rank in holders})
    coming = []
    for t in moves:
        for other in [c for c in coming if c[0] <= t.start]:
            has[other[1]] += other[2]
            coming.remove(other)
        coming.append((t.end, t.target, Counter(has[t.source])))
    for _, target, what in coming:
        has[target] += what
    return has
