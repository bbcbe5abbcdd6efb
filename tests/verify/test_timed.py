"""Timed schedules: right ones pass, and every rule refuses what breaks it."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from colsynth.errors import VerificationError
from colsynth.model import (
    Collective,
    Demand,
    Direction,
    Hops,
    Kind,
    Link,
    Node,
    Problem,
    TimeBound,
    TimedPhase,
    TimedSchedule,
    Topology,
)
from colsynth.verify import check_timed
from colsynth.verify import timed as module
from tests.each import each
from tests.reference.timed import faults, sums
from tests.verify.timed_schedules import (
    assemble,
    moves_of,
    random_fabric,
    random_schedule,
    schedule_of,
    with_ticks,
)

IN, OUT = Direction.IN, Direction.OUT


def code_of(schedule) -> str | None:
    try:
        check_timed(schedule)
    except VerificationError as fault:
        return fault.diagnostic.code
    return None


def refusal(schedule) -> tuple[str, str]:
    with pytest.raises(VerificationError) as caught:
        check_timed(schedule)
    return caught.value.diagnostic.code, str(caught.value.diagnostic)


def line(gpus=3, latency=1, **problem) -> Problem:
    """Return a problem on GPUs in a row: a link moves 10 bytes in 10 seconds."""
    ends = [(a, b) for a in range(gpus) for b in (a - 1, a + 1) if 0 <= b < gpus]
    links = tuple(Link(a, b, Fraction(1), Fraction(latency)) for a, b in ends)
    nodes = tuple(Node(f"g{n}", Kind.GPU) for n in range(gpus))
    return Problem(Topology("line", nodes, links, tuple(range(gpus))), **problem)


def hops_of_links(topology, occupied=11) -> Hops:
    """Return every link as a hop, numbered by (target, source)."""
    rows = sorted((x.target, x.source, i) for i, x in enumerate(topology.links))
    count = len(rows)
    return Hops(
        source=np.array([source for _, source, _ in rows], np.int32),
        target=np.array([target for target, _, _ in rows], np.int32),
        first=np.arange(count + 1),
        links=np.array([link for _, _, link in rows], np.int32),
        begin=np.zeros(count, np.int64),
        end=np.full(count, occupied),
        lag=np.zeros(count, np.int64),
    )


def made(problem, *phases, each=1, chunks=3, shares=3, hops=None) -> TimedSchedule:
    """Return a schedule of (direction, [(source, target, start, chunk)]) phases."""
    hops = hops or hops_of_links(problem.topology)
    pairs = list(zip(hops.source.tolist(), hops.target.tolist(), strict=True))
    found = tuple(
        assemble(way, hops, [(pairs.index((a, b)), start, chunk) for a, b, start, chunk in sent])
        for way, sent in phases
    )
    second = Fraction(1)
    bound = TimeBound(Fraction(0), "nothing")
    figures = (shares * 10, each, chunks, Fraction(10), second, 0)
    return with_ticks(TimedSchedule(problem, *figures, found, bound))


ALLGATHER = line(collective=Collective.ALLGATHER)
GATHERED = [(0, 1, 0, 0), (1, 2, 0, 1), (1, 0, 0, 1), (2, 1, 0, 2), (1, 2, 11, 0), (1, 0, 11, 2)]
ALLREDUCE = line(collective=Collective.ALLREDUCE)
SUMMED = [(0, 1, 0, 2), (2, 1, 0, 0), (1, 0, 11, 0), (1, 2, 11, 2), (0, 1, 11, 1), (2, 1, 11, 1)]
SPREAD = [(0, 1, 22, 0), (2, 1, 22, 2), (1, 0, 22, 1), (1, 2, 22, 1), (1, 2, 33, 0), (1, 0, 33, 2)]


def changed(sent, *, drop=(), add=()):
    return [t for t in sent if t not in drop] + list(add)


def test_schedules_written_by_hand_pass():
    check_timed(made(ALLGATHER, (OUT, GATHERED)))
    check_timed(made(replace(ALLREDUCE, collective=Collective.REDUCE_SCATTER), (IN, SUMMED)))
    check_timed(made(ALLREDUCE, (IN, SUMMED), (OUT, SPREAD)))


@pytest.mark.parametrize(
    ("drop", "add", "code", "said"),
    [
        ([], [(0, 1, 11, 0)], "CS515", "g0 (rank 0) sends chunk 0 to g1 (rank 1) at 1.1e+07 us"),
        ([], [(2, 1, 11, 1)], "CS515", "which holds it from the start"),
        ([(1, 2, 11, 0)], [(1, 2, 11, 2)], "CS515", "sends chunk 2 to g2"),
        ([(1, 2, 0, 1)], [(1, 2, 22, 1)], None, ""),
        ([(1, 2, 0, 1), (1, 2, 11, 0)], [(1, 2, 0, 0), (1, 2, 11, 1)], "CS514", "(tick 11)"),
        ([(1, 2, 11, 0)], [], "CS516", "g2 (rank 2) wants chunk 0"),
        ([(0, 1, 0, 0)], [], "CS514", "but never has it"),
        ([(1, 2, 11, 0)], [(1, 2, 10, 0)], "CS512", "link g1 -> g2 carries two chunks"),
    ],
)
def test_copies(drop, add, code, said):
    schedule = made(ALLGATHER, (OUT, changed(GATHERED, drop=drop, add=add)))
    if code is None:
        check_timed(schedule)
        return
    found, text = refusal(schedule)
    assert found == code
    assert said in text
    assert code in faults(schedule)


@pytest.mark.parametrize(
    ("drop", "add", "said"),
    [
        ([(0, 1, 0, 2)], [], "g0 (rank 0) never sends its contribution to chunk 2"),
        ([(1, 2, 11, 2)], [], "g1 (rank 1) never sends its contribution to chunk 2"),
        ([], [(0, 1, 22, 1)], "and does so twice"),
        ([], [(1, 0, 0, 1)], "but is to keep its sum"),
        ([(1, 0, 11, 0), (2, 1, 0, 0)], [(1, 0, 0, 0), (2, 1, 0, 0)], "has come"),
    ],
)
def test_sums(drop, add, said):
    problem = replace(ALLREDUCE, collective=Collective.REDUCE_SCATTER)
    schedule = made(problem, (IN, changed(SUMMED, drop=drop, add=add)))
    code, text = refusal(schedule)
    assert code == "CS517"
    assert said in text
    assert faults(schedule) == {"CS517"}


def test_a_relay_sends_exactly_what_it_received():
    problem = replace(line(collective=Collective.REDUCE, root=0), groups=((0, 2),), transit=True)
    sent = [(2, 1, 0, 0), (1, 0, 11, 0)]
    check_timed(made(problem, (IN, sent), chunks=1, shares=1))
    code, text = refusal(made(problem, (IN, sent[1:]), chunks=1, shares=1))
    assert (code, "but has nothing to send" in text) == ("CS517", True)
    code, text = refusal(made(problem, (IN, sent[:1]), chunks=1, shares=1))
    assert (code, "never sends what it received of chunk 0" in text) == ("CS517", True)


def test_a_sum_is_copied_only_when_it_is_complete():
    early = changed(SPREAD, drop=[(0, 1, 22, 0)], add=[(0, 1, 0, 0)])
    late = changed(SUMMED, drop=[(0, 1, 0, 2)], add=[(0, 1, 33, 2)])
    code, text = refusal(made(ALLREDUCE, (IN, late), (OUT, SPREAD)))
    assert code == "CS517"
    freed = changed(SUMMED, drop=[(0, 1, 0, 2), (1, 2, 11, 2)], add=[(0, 1, 33, 2), (1, 2, 44, 2)])
    assert refusal(made(ALLREDUCE, (IN, freed), (OUT, SPREAD)))[0] == "CS514"
    code, text = refusal(made(ALLREDUCE, (IN, SUMMED), (OUT, early)))
    assert code == "CS512"
    assert "in the in phase" in text
    assert "in the out phase" in text


def test_gpus_outside_all_groups_stay_out_unless_transit_is_allowed():
    problem = replace(line(collective=Collective.BROADCAST, root=1), groups=((0, 2),), transit=True)
    schedule = made(problem, (OUT, [(2, 1, 0, 0), (1, 0, 11, 0)]), chunks=1, shares=1)
    check_timed(schedule)
    code, text = refusal(replace(schedule, problem=replace(problem, transit=False)))
    assert code == "CS513"
    assert "g1 (rank 1) is in no group" in text


def test_gpus_of_another_group_stay_out_unless_transit_is_allowed():
    groups = ((0, 2), (1, 3))
    problem = replace(line(4, collective=Collective.BROADCAST, root=1), groups=groups, transit=True)
    sent = [(2, 1, 0, 0), (1, 0, 11, 0), (3, 2, 0, 1), (2, 1, 11, 1)]
    schedule = made(problem, (OUT, sent), chunks=2, shares=1)
    check_timed(schedule)
    code, text = refusal(replace(schedule, problem=replace(problem, transit=False)))
    assert code == "CS513"
    assert "groups mix but no transit is allowed" in text


def test_chunks_that_nobody_lacks_do_not_move():
    problem = line(2, collective=Collective.ALLTOALL)
    sent = [(0, 1, 0, 1), (1, 0, 0, 2)]
    check_timed(made(problem, (OUT, sent), chunks=4, shares=2))
    for idle in ((0, 1, 11, 0), (0, 1, 11, 3)):
        assert refusal(made(problem, (OUT, [*sent, idle]), chunks=4, shares=2))[0] == "CS515"


def test_custom_demands_are_served_by_their_own_kind_of_phase():
    sums_up = Demand((0, 1), (1,), reduces=True)
    problem = line(2, collective=Collective.CUSTOM, demands=(Demand((0,), (1,), 2), sums_up))
    copies = [(0, 1, 0, 0), (0, 1, 11, 1)]
    check_timed(made(problem, (IN, [(0, 1, 22, 2)]), (OUT, copies)))
    code, text = refusal(made(problem, (IN, [(0, 1, 22, 2)]), (OUT, [*copies, (0, 1, 33, 2)])))
    assert (code, "nobody is to receive it" in text) == ("CS515", True)
    code, text = refusal(made(problem, (IN, [(0, 1, 22, 2), (0, 1, 33, 0)]), (OUT, copies)))
    assert (code, "not to be reduced" in text) == ("CS517", True)
    assert refusal(made(problem, (OUT, copies)))[0] == "CS510"


RIGHT = made(ALLGATHER, (OUT, GATHERED))
PHASE = RIGHT.phases[0]


@pytest.mark.parametrize(
    "figures",
    [
        {"chunks": 4},
        {"chunk_bytes": Fraction(9)},
        {"size": 31},
        {"size": 0},
        {"chunks_per_gpu": 2},
        {"chunks_per_gpu": 0},
        {"ticks": RIGHT.ticks + 1},
        {"ticks": RIGHT.ticks - 1},
        {"tick": Fraction(0)},
        {"phases": ()},
        {"phases": (PHASE, PHASE)},
        {"phases": (replace(PHASE, direction=IN),)},
        {"problem": replace(ALLGATHER, groups=((0, 1), (1, 2)))},
        {"problem": replace(ALLGATHER, groups=((0, 1, 3),))},
        {"problem": replace(ALLGATHER, groups=((0, 1, 1),))},
        {"problem": replace(ALLGATHER, collective=Collective.CUSTOM)},
        {"problem": replace(ALLGATHER, collective=Collective.SCATTER, root=3)},
        {"problem": replace(ALLGATHER, root=0)},
        {"problem": replace(ALLGATHER, collective=Collective.BROADCAST)},
        {"bound": TimeBound(RIGHT.seconds + 1, "nothing")},
        {"bound": TimeBound(Fraction(-1), "nothing")},
    ],
    ids=str,
)
def test_figures_must_agree(figures):
    assert refusal(replace(RIGHT, **figures))[0] == "CS510"


@pytest.mark.parametrize(
    "arrays",
    [
        {"first": PHASE.first[:-1]},
        {"first": PHASE.first + 1},
        {"first": PHASE.first[::-1]},
        {"first": PHASE.first.astype(np.float64)},
        {"chunk": PHASE.chunk + np.uint16(3)},
        {"chunk": PHASE.chunk.astype(np.int64) - 1},
        {"chunk": PHASE.chunk[:-1]},
        {"run_first": PHASE.run_first[:-1]},
        {"run_start": PHASE.run_start - 1},
        {"run_start": PHASE.run_start + 2**62},
        {"run_length": PHASE.run_length + 1},
        {"run_length": PHASE.run_length * 0},
        {"run_length": np.roll(PHASE.run_length, 1)},
    ],
    ids=str,
)
def test_arrays_of_a_phase_must_fit_each_other(arrays):
    code = refusal(replace(RIGHT, phases=(replace(PHASE, **arrays),)))[0]
    assert code == "CS510"


@pytest.mark.parametrize(
    "arrays",
    [
        {"source": PHASE.hops.source - 1},
        {"target": PHASE.hops.target + 1},
        {"source": PHASE.hops.source[:-1]},
        {"first": PHASE.hops.first[:-1]},
        {"first": np.array([0, 0, 2, 3, 4])},
        {"links": PHASE.hops.links + 1},
        {"begin": PHASE.hops.begin - 1},
        {"end": PHASE.hops.end[:-1]},
        {name: getattr(PHASE.hops, name)[::-1] for name in ("source", "target", "links")},
    ],
    ids=str,
)
def test_arrays_of_hops_must_fit_each_other(arrays):
    hops = replace(PHASE.hops, **arrays)
    assert refusal(replace(RIGHT, phases=(replace(PHASE, hops=hops),)))[0] == "CS510"


def test_runs_of_a_hop_follow_each_other():
    assert np.diff(PHASE.first).tolist() == [2, 1, 1, 2]
    wrong = replace(
        PHASE,
        run_first=np.array([0, 1, 2, 3, 5]),
        run_start=np.array([0, 0, 0, 11, 0]),
        run_length=np.array([2, 1, 1, 1, 1]),
    )
    code, text = refusal(replace(RIGHT, phases=(wrong,)))
    assert code == "CS510"
    assert "g1 (rank 1) sends chunk 0 to g2 (rank 2) at 0 us (tick 0)" in text


def switched(first=1, second=1, *capabilities) -> Problem:
    """Return two GPUs with a switch between; bandwidths of the links to and from it."""
    nodes = (Node("a", Kind.GPU), Node("b", Kind.GPU), Node("sw", Kind.SWITCH, None, capabilities))
    links = (Link(0, 2, Fraction(first), Fraction(3)), Link(2, 1, Fraction(second), Fraction(4)))
    return Problem(Topology("switched", nodes, links, (0, 1)), Collective.BROADCAST, 0)


def through(problem, begin, end, links=(0, 1), lag=0) -> TimedSchedule:
    hops = Hops(
        source=np.array([0], np.int32),
        target=np.array([1], np.int32),
        first=np.array([0, len(links)]),
        links=np.array(links, np.int32),
        begin=np.array(begin),
        end=np.array(end),
        lag=np.array([lag]),
    )
    return made(problem, (OUT, [(0, 1, 0, 0)]), chunks=1, shares=1, hops=hops)


@pytest.mark.parametrize(
    ("first", "second", "begin", "end", "allowed"),
    [
        (1, 1, (0, 3), (13, 17), True),  # the head moves on when it arrives
        (1, 1, (0, 3), (9, 17), False),  # a link faster than it is
        (1, 1, (0, 3), (10, 13), True),  # latency occupies no link, but takes its time
        (1, 1, (0, 3), (10, 12), False),
        (1, 1, (0, 8), (13, 17), False),
        (1, 1, (0, 2), (13, 12), False),  # before the head arrived
        (1, 1, (0, 2), (13, 17), True),  # taken earlier than needed, which harms nobody
        (1, 2, (0, 8), (13, 17), True),  # as late as lets it send at full speed
        (1, 2, (0, 7), (13, 12), False),  # the last byte leaves before it came
        (2, 1, (0, 3), (8, 17), True),
        (2, 1, (0, 3), (8, 12), False),
    ],
)
def test_a_chunk_passes_a_switch_no_faster_than_its_links_allow(first, second, begin, end, allowed):
    schedule = through(switched(first, second), begin, end, lag=max(0, 17 - end[1]))
    assert code_of(schedule) == (None if allowed else "CS511")
    assert faults(schedule) == (set() if allowed else {"CS511"})


def test_a_switch_that_stores_sends_on_when_all_has_come():
    problem = switched(1, 1, "store-and-forward")
    assert code_of(through(problem, (0, 13), (13, 27))) is None
    code, text = refusal(through(problem, (0, 12), (13, 26)))
    assert code == "CS511"
    assert "a (rank 0) to b (rank 1)" in text
    assert "a -> sw, sw -> b" in text


def test_times_may_be_longer_than_exact_ones_and_ticks_of_any_length():
    problem = switched(3, 7)
    begin = (0, 6)  # the tail comes after 19/3 seconds, moving on takes 10/7
    assert code_of(through(problem, begin, (7, 12))) is None
    assert code_of(through(problem, begin, (3, 12))) == "CS511"


@pytest.mark.parametrize("links", [(0,), (1,), (1, 0), (0, 1, 1), (0, 0)])
def test_the_links_of_a_hop_are_a_path(links):
    wide = range(0, 100 * len(links), 100)
    code, text = refusal(through(switched(), list(wide), [x + 99 for x in wide], links))
    assert (code, "is out of place" in text) == ("CS511", True)


def test_a_hop_passes_no_third_gpu():
    problem = line(3, collective=Collective.BROADCAST, root=0)
    order = [problem.topology.link_between[pair] for pair in ((0, 1), (1, 2))]
    hops = Hops(
        source=np.array([0, 0], np.int32),
        target=np.array([1, 2], np.int32),
        first=np.array([0, 1, 3]),
        links=np.array([order[0], *order], np.int32),
        begin=np.array([0, 0, 11]),
        end=np.array([11, 11, 22]),
        lag=np.zeros(2, np.int64),
    )
    sent = (OUT, [(0, 1, 0, 0), (0, 2, 11, 0)])
    assert refusal(made(problem, sent, chunks=1, shares=1, hops=hops))[0] == "CS511"


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_schedules_on_random_fabrics_pass(seed):
    for case in range(seed, seed + 20):
        schedule = random_schedule(case)
        check_timed(schedule)
        assert faults(schedule) == set()
        assert sums(schedule)


def mutated(schedule, rng) -> tuple[str, TimedSchedule]:
    """Return a schedule with one thing changed, and what that was."""
    at = rng.randrange(len(schedule.phases))
    phase = schedule.phases[at]
    moves, hops = moves_of(phase), phase.hops
    kind = rng.choice(MUTATIONS if moves else ["add"])
    which = rng.randrange(len(moves)) if moves else 0
    hop, start, chunk = moves[which] if moves else (0, 0, 0)
    if kind == "chunk":
        moves[which] = hop, start, rng.randrange(schedule.chunks)
    elif kind == "start":
        moves[which] = hop, start + rng.choice((-1, 1)) * rng.randint(1, schedule.ticks), chunk
    elif kind == "a little":
        moves[which] = hop, start + rng.choice((-1, 1)), chunk
    elif kind == "drop":
        del moves[which]
    elif kind == "again":
        moves.append((hop, schedule.ticks + rng.randint(0, 5), chunk))
    elif kind == "add":
        late = rng.randint(0, 2 * schedule.ticks)
        moves.append((rng.randrange(len(hops)), late, rng.randrange(schedule.chunks)))
    elif kind == "hop":
        moves[which] = rng.randrange(len(hops)), start, chunk
    elif kind == "swap":
        other = rng.randrange(len(moves))
        there = moves[other]
        moves[which], moves[other] = (hop, start, there[2]), (*there[:2], chunk)
    elif kind == "all":
        shift = rng.randint(1, min(start for _, start, _ in moves) + 1)
        moves = [(hop, start - shift, chunk) for hop, start, chunk in moves]
    else:
        hops = _mutated_hops(kind, hops, rng, len(schedule.problem.topology.links))
    phases = list(schedule.phases)
    phases[at] = assemble(phase.direction, hops, moves)
    return kind, with_ticks(replace(schedule, phases=tuple(phases)))


def _mutated_hops(kind, hops, rng, links):
    place = rng.randrange(len(hops.links))
    begin, end, names = hops.begin.copy(), hops.end.copy(), hops.links.copy()
    if kind == "link":
        names[place] = rng.randrange(links)
    elif kind == "begin":
        begin[place] += rng.choice((1, 1, 1, -1) if begin[place] else (1,))
    else:
        end[place] += rng.choice((-1, -1, -1, 1))
    if np.any(end - begin < 1):
        return hops
    return replace(hops, begin=begin, end=end, links=names)


MUTATIONS = [
    "chunk", "start", "a little", "drop", "again", "add", "hop", "swap", "all", "link", "begin",
    "end",
]  # fmt: skip


@each("seed", range(0, 1200, 40))
def test_the_checker_finds_what_a_slow_replay_finds(seed):
    rng = random.Random(seed)
    wrong = 0
    for case in range(seed, seed + 40):
        kind, schedule = mutated(random_schedule(case // 4), rng)
        expected, found = faults(schedule), code_of(schedule)
        assert (found in expected) if expected else found is None, (case, kind, expected, found)
        if any(phase.direction is IN for phase in schedule.phases) and not sums(schedule):
            assert found is not None, (case, kind)
        wrong += found is not None
    assert wrong > 10


def test_random_changes_reach_every_rule_and_every_kind_matters():
    rng = random.Random(5)
    codes, kinds = set(), set()
    for case in range(250):
        kind, schedule = mutated(random_schedule(case % 100), rng)
        found = code_of(schedule)
        codes.add(found)
        kinds |= {kind} if found else set()
    assert codes >= {None, "CS511", "CS512", "CS513", "CS514", "CS515", "CS516", "CS517"}
    assert kinds == set(MUTATIONS)


def test_lost_sums_are_sums_that_do_not_add_up():
    """The rules for reductions are there for the sum: the slow adder agrees with them."""
    problem = replace(ALLREDUCE, collective=Collective.REDUCE_SCATTER)
    assert sums(made(problem, (IN, SUMMED)))
    for gone in SUMMED:
        assert not sums(made(problem, (IN, changed(SUMMED, drop=[gone]))))
    again = (0, 1, 22, 1)
    assert not sums(made(problem, (IN, changed(SUMMED, add=[again]))))


def test_the_work_may_be_cut_into_blocks_of_chunks(monkeypatch):
    """The same faults are found, whatever the number of chunks looked at together."""
    rng = random.Random(1)
    cases = [mutated(random_schedule(case), rng)[1] for case in range(60)]
    cases += [random_schedule(case) for case in range(20)]

    def verdict(schedule):
        try:
            check_timed(schedule)
        except VerificationError as fault:
            return str(fault)
        return None

    whole = [verdict(schedule) for schedule in cases]
    for room in (1, 100):
        monkeypatch.setattr(module, "_LEAST_TABLE", room)
        assert [verdict(schedule) for schedule in cases] == whole


def finer(schedule, scale) -> TimedSchedule:
    """Return the same schedule in ticks that are `scale` times as short."""
    phases = []
    for phase in schedule.phases:
        old = phase.hops
        times = {"begin": old.begin * scale, "end": old.end * scale, "lag": old.lag * scale}
        hops = replace(old, **times)
        phases.append(replace(phase, hops=hops, run_start=phase.run_start * scale))
    figures = {"tick": schedule.tick / scale, "ticks": schedule.ticks * scale}
    return replace(schedule, phases=tuple(phases), **figures)


def test_times_beyond_32_bits():
    rng = random.Random(2)
    for case in range(40):
        schedule = mutated(random_schedule(case), rng)[1]
        assert code_of(finer(schedule, 2**33)) == code_of(schedule)


def test_many_chunks_take_wide_numbers():
    schedule = random_schedule(3)
    phases = tuple(replace(p, chunk=p.chunk.astype(np.uint32)) for p in schedule.phases)
    check_timed(replace(schedule, phases=phases))


def test_a_phase_without_transfers_or_hops():
    problem = replace(ALLGATHER, groups=((1,),))
    none = np.zeros(0, np.int64)
    hops = Hops(none, none, np.zeros(1, np.int64), none, none, none, none)
    offsets = np.zeros(1, np.int64)
    phase = TimedPhase(OUT, hops, offsets, none.astype(np.uint16), offsets, none, none)
    alone = replace(RIGHT, problem=problem, size=10, chunks=1, ticks=0, phases=(phase,))
    check_timed(alone)
    empty = replace(RIGHT, ticks=0, phases=(phase,))
    assert refusal(empty)[0] == "CS516"


def test_a_larger_fabric_with_everybody_busy(threads):
    topology = random_fabric(11)
    schedule = schedule_of(Problem(topology, Collective.ALLREDUCE), size=6 * 16 * 60, each=16)
    check_timed(schedule)
    threads(2)
    check_timed(schedule)
    faster = replace(schedule, tick=schedule.tick * Fraction(99, 100))
    assert refusal(faster)[0] == "CS511"
