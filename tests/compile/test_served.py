"""The byte range of a file: sizes at which the library by itself is not predicted faster."""

import re
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import log
from random import Random

import pytest

from colsynth import api
from colsynth.bounds.runtime import RuntimeBound
from colsynth.compile.served import SLOWER, served
from colsynth.errors import ColsynthError
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.selection import LARGE, usual_size
from colsynth.search.case import Case
from colsynth.search.library import Library
from colsynth.simulate import simulate
from colsynth.units import format_size

MACHINES = ("dgx-a100", 1), ("dgx-a100", 2), ("mi300x", 1), ("ndv2", 2), ("ring:6", None)
COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast")
RUNTIMES = ("msccl", "msccl-executor", "rccl", "torch")
SIZES = (None, 1 << 18, 1 << 22, 1 << 26)
_RANDOM = Random(7)
CASES = [tuple(map(_RANDOM.choice, (MACHINES, COLLECTIVES, RUNTIMES, SIZES))) for _ in range(7)]


def problem_of(machine, boxes, collective):
    topology = api.load_topology(machine, nodes=boxes)
    return api.make_problem(topology, collective, 0 if collective == "broadcast" else None)


def library_of(problem, runtime):
    """The slow twin: every algorithm and protocol of the library, compiled without a search."""
    library = profile(runtime).library or runtime
    programs = []
    for name in profile(library).built_in[problem.collective]:
        for protocol in ("Simple", "LL128", "LL"):
            options = {"algorithm": name, "protocol": protocol, "level": 0, "several": False}
            with suppress(ColsynthError):
                done = api.compile(problem, library, **options)
                programs.append(done.artefacts[0].program)

    def seconds(size):
        fit = [p for p in programs if p.header.protocol != "LL" or size <= 1 << 22]
        points = [simulate(p, problem.topology, profile(library), (size,))[0] for p in fit]
        return min(float(point.seconds) for point in points)

    return seconds


def lead_of(done, library_seconds):
    """How far a program is ahead of the library at a size, whether its file serves it or not."""
    program = done.artefacts[0].program
    whole = program.headed(replace(program.header, min_bytes=0, max_bytes=None))

    def lead(size):
        (point,) = simulate(whole, done.problem.topology, profile(done.runtime), (size,))
        return log(library_seconds(size) / float(point.seconds))

    return lead


def check_smaller(problem, law, lead, *, told):
    """A file that loses at its size serves what lies around the largest that it wins, or all."""
    sizes = [LARGE >> 2 * n for n in range(1, 11)]
    sizes = [usual_size(size, problem.collective, problem.topology.size) for size in sizes]
    won = [size for size in sizes if lead(size) >= -1e-3]
    if told:
        assert not won
        assert law.takes(LARGE)
        return
    assert law.takes(won[0])
    held = [size for size in sizes if law.takes(size)]
    assert all(lead(size) >= -log(SLOWER) - 1e-3 for size in held)
    above = [size for size in sizes if won[0] < size <= held[0]]
    assert sum(map(lead, above)) >= 0


@pytest.mark.parametrize(
    ("machine", "collective", "runtime"),
    [
        ("ring:4", "reduce-scatter", "msccl"),
        ("clique:3", "allreduce", "msccl"),
        ("mesh:2x2", "broadcast", "rccl"),
    ],
)
def test_a_file_that_loses_serves_what_it_wins_whatever_its_algorithm(machine, collective, runtime):
    problem = problem_of(machine, None, collective)
    library_seconds, lost = library_of(problem, runtime), 0
    for algorithm in ("allpairs", "allpairs2", "ring", "tree", "halving-doubling", "ten"):
        with suppress(ColsynthError):  # of algorithms for other machines
            done = api.compile(problem, runtime, algorithm=algorithm, several=False, budget=2)
            if any("times as fast at" in note for note in done.notes):
                told = any("only to measure" in note for note in done.notes)
                check_smaller(problem, done.taken(), lead_of(done, library_seconds), told=told)
                lost += 1
    assert lost


def test_a_least_size_that_is_given_stays_where_the_file_wins_only_below():
    done = compiled(algorithm="allpairs", min_bytes=1 << 20)
    assert done.taken().takes(1 << 20)
    assert done.taken().takes(1 << 30)
    assert any("only to measure" in note for note in done.notes)


@pytest.mark.parametrize(("machine", "collective", "runtime", "size"), CASES)
def test_a_file_serves_sizes_at_which_the_library_is_not_faster(machine, collective, runtime, size):
    problem = problem_of(*machine, collective)
    done = api.compile(problem, runtime, several=False, size=size)
    law, lead = done.taken(), lead_of(done, library_of(problem, runtime))
    main = size or usual_size(LARGE, problem.collective, problem.topology.size)
    if any("times as fast at" in note for note in done.notes):
        assert lead(main) < -log(SLOWER) + 1e-3
        if size is None:
            check_smaller(problem, law, lead, told=any("only to measure" in n for n in done.notes))
            return
    assert law.takes(main)
    below, above = [main], [main]
    while below[-1] // 4 >= 1024:
        below.append(usual_size(below[-1] // 4, problem.collective, problem.topology.size))
    while above[-1] * 4 <= LARGE:
        above.append(above[-1] * 4)
    for sizes in (below, above):
        leads = list(map(lead, sizes))
        count = sum(map(law.takes, sizes))
        assert all(map(law.takes, sizes[:count]))
        assert min(leads[1:count], default=0) >= -log(SLOWER) - 1e-3
        assert sum(leads[1:count]) >= -1e-3  # more is won than lost on that side
        won = 0.0
        for value in leads[count:]:  # no further part is won before the library is too fast
            if value < -log(SLOWER):
                break
            won += value
            assert won < 1e-3


@cache
def compiled(runtime="msccl", **options):
    return api.compile(problem_of("dgx-a100", 1, "allreduce"), runtime, several=False, **options)


def test_below_an_unusual_size_the_next_usual_one_is_compared_first():
    """Not what is left of a quarter, or the library would serve much where the file is faster."""
    problem, size = problem_of("ring:5", None, "allreduce"), 240 << 20
    done = api.compile(problem, "msccl", several=False, size=size)
    program, near = done.artefacts[0].program, usual_size(size, problem.collective, 5)
    (point,) = simulate(program, problem.topology, profile("msccl"), (near,))
    assert float(point.seconds) < library_of(problem, "msccl")(near)
    assert done.taken().min_bytes == near


def test_what_the_user_says_stays():
    free = compiled(algorithm="forest").taken()
    assert free.min_bytes > 1 << 20
    assert compiled(algorithm="forest", min_bytes=1).taken() == replace(free, min_bytes=1)
    small = compiled(size=1 << 20, algorithm="rails")
    assert (small.taken().min_bytes, small.taken().max_bytes < 1 << 30) == (1, True)
    given = compiled(size=1 << 20, algorithm="rails", max_bytes=1 << 30)
    assert given.taken().max_bytes == 1 << 30


def test_one_file_serves_small_and_large_messages_where_its_segments_suit_both():
    assert compiled().taken().takes(1 << 20)
    large, small = (compiled(size=size).predicted[-1] for size in (1 << 30, 1 << 20))
    both = {point.size_bytes: point.seconds for point in compiled().predicted}
    assert both[1 << 30] < 1.02 * large.seconds
    assert both[1 << 20] < 1.5 * small.seconds


@pytest.mark.parametrize(
    ("runtime", "options"),
    [
        ("msccl", {"level": 0}),
        ("msccl", {"passes": "build-ring,lower-forest,coalesce-chunks,order-transfers,place-slots,"
                   "assign-threadblocks,spell-dependencies"}),
        ("mscclpp", {}),
    ],
    ids=["no search", "own passes", "library not modelled"],
)  # fmt: skip
def test_files_that_are_not_compared_serve_all_sizes(runtime, options):
    done = compiled(runtime, **options)
    assert done.taken().takes(1 << 20)
    assert done.taken().takes(1 << 30)
    assert not any("the library's own" in note for note in done.notes)


def test_a_program_that_is_slower_at_its_own_size_serves_smaller_messages():
    done = compiled(algorithm="allpairs")
    lost, left = [note for note in done.notes if "the library's own" in note]
    found = re.fullmatch(
        r"the library's own \w+ is predicted to be (.*) times as fast at 1 GiB", lost
    )
    assert float(found[1]) > SLOWER
    end = done.taken().max_bytes + 1
    assert f"from {format_size(end)} on" in left
    assert 1 << 10 < end < 1 << 20
    assert [point.size_bytes for point in done.predicted] == [end // 2]
    lead = lead_of(done, library_of(done.problem, "msccl"))
    assert lead(end) <= -log(SLOWER)
    assert lead(end // 4) > -log(SLOWER)


def test_a_program_that_is_slower_everywhere_serves_all_sizes_and_says_so():
    done = compiled(algorithm="halving-doubling")
    assert any("only to measure" in note for note in done.notes)
    assert done.taken().takes(1 << 10)
    assert done.taken().takes(1 << 30)
    given = compiled(algorithm="allpairs", max_bytes=1 << 30)
    assert given.taken().max_bytes == 1 << 30


def test_a_file_that_is_slower_at_the_size_it_was_asked_for_serves_no_other_that_it_loses():
    done = compiled(algorithm="allpairs2", size=1 << 24)
    assert any("times as fast at 16 MiB" in note for note in done.notes)
    law = done.taken()
    assert (law.min_bytes, law.max_bytes) == (1 << 24, 1 << 24)
    assert law.takes(1 << 24)


def test_a_size_that_no_call_uses_limits_nothing():
    problem = problem_of("ring:4", None, "allreduce")
    done = api.compile(problem, "torch", algorithm="forest", size=4, several=False)
    assert not done.taken().takes(4)
    assert done.taken().max_bytes > 1 << 20
    assert any("no message of 4 B uses the file" in note for note in done.notes)


@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_calls_of_the_size_use_the_file_where_ranks_cannot_share_it(collective):
    """nccl-tests makes 1048560 bytes of 1 MiB on five ranks; the range begins there."""
    done = api.compile(problem_of("ring:5", None, collective), "torch", size=1 << 20)
    assert done.taken().min_bytes == 1048560
    assert done.taken().takes(1 << 20)
    assert done.predicted
    assert not any("uses the file" in note for note in done.notes)


def test_a_range_never_ends_before_the_first_byte(monkeypatch):
    """Five ranks share no 64 bytes: nccl-tests then calls with none."""

    def fastest(_library, size, below):
        seconds = 1.0 if size <= 16 else 1e-9
        return (seconds, "ring") if seconds < below else None

    monkeypatch.setattr(Library, "fastest", fastest)
    problem = problem_of("ring:5", None, "allgather")
    case = Case(problem, "msccl", (16,))
    done = api.compile(problem, "msccl", algorithm="ring", level=0, several=False)
    floor = RuntimeBound(16, "Simple", 0.0, 0.0, 0.0)
    found = served(done.artefacts[0].program, case, Library(case), {}, floor)
    assert found.max_bytes == 63


def test_a_second_process_changes_nothing():
    alone, beside = compiled(), compiled(jobs=2)
    assert [x.data for x in alone.artefacts] == [x.data for x in beside.artefacts]
    assert alone.notes == beside.notes


def test_files_of_all_modes_serve_the_same_sizes():
    problem = problem_of("dgx-a100", 1, "allreduce")
    done = api.compile(problem, "msccl", algorithm="forest")
    ranges = {(x.program.header.min_bytes, x.program.header.max_bytes) for x in done.artefacts}
    assert len(done.artefacts) == 2
    assert len(ranges) == 1
    assert min(ranges)[0] > 1 << 20
