"""Roots that carry a chunk less, so that an allreduce of a power of two uses the file."""

from collections import Counter
from re import findall

import pytest

from colsynth import api
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes import profile, taken_sizes
from colsynth.runtimes.target import Target
from colsynth.verify import verify_program
from tests.synthesis.baselines.reading import problem_of

MSCCL = profile("msccl")
MACHINES = "ring:6", "mesh:3x3", "clique:12", "mesh:3x4"
HEAD = "pack-trees{trees=1},round-weights,lower-forest"
TAIL = "coalesce-chunks,order-transfers,place-slots,assign-threadblocks{strategy=spread}"


def made(machine, options, size, collective="allreduce"):
    problem = api.make_problem(api.load_topology(machine), collective)
    text = f"{HEAD}{options},{TAIL},spell-dependencies"
    return Pipeline.from_text(text).run(problem, Target(MSCCL, out_of_place=False, size=size))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "options", ["", "{instances=2}", "{segments=1-2-4-4}", "{segments=1-2-4-4-4}", "{most=5}"]
)
def test_calls_of_a_power_of_two_use_a_right_file(machine, options):
    """Or an even one, where so many chunks for each root are too far from a power of two."""
    program = made(machine, options, 2**30)
    assert verify_program(program, MSCCL, subject="test").ok
    whole = program.header.ranks * sum(map(int, findall(r"\d+", options)))
    near = whole - (1 << whole.bit_length() >> 1) <= program.header.ranks
    law = taken_sizes(program.header, MSCCL)
    assert law.takes(2**30) == ("segments" not in options or near)
    assert not any(law.takes(2**20 + 4 * k) for k in range(1, 5))


@pytest.mark.parametrize("machine", MACHINES)
def test_roots_hardly_differ(machine):
    """The busiest carries 2 % more than its share at most."""
    problem = api.make_problem(api.load_topology(machine), "allreduce")
    program = Pipeline.from_text(HEAD).run(problem, Target(MSCCL, size=2**30))
    received = Counter()
    for move in program.transfers:
        received[move.target, move.origin.phase] += move.count
    ranks = problem.topology.size
    roots = [program.chunks - received[rank, 1] for rank in range(ranks)]
    assert sum(roots) == program.chunks
    assert max(roots) - min(roots) == 1
    assert max(roots) * ranks <= 1.021 * program.chunks


def test_shards_stay_equal_where_they_may():
    """A message that ranks divide, and shards that belong to ranks."""
    for size, collective in ((9 * 2**20, "allreduce"), (None, "allgather"), (2**30, "allgather")):
        assert made("mesh:3x3", "", size, collective).header.chunks % 9 == 0


def test_powers_of_two_use_a_file_for_no_named_size():
    """All that people send to any number of ranks are powers of two, since nccl-tests does."""
    assert made("mesh:3x3", "", None).header.chunks == made("mesh:3x3", "", 2**30).header.chunks


@pytest.mark.parametrize(("boxes", "gpus"), [(3, 4), (2, 6)])
def test_unequal_roots_are_hardly_slower(boxes, gpus):
    """They carry many chunks or single ones, so one more or less costs little."""
    problem = problem_of(boxes, gpus)
    equal, unequal = (
        api.compile(problem, "msccl", algorithm="forest", several=False, size=size)
        for size in (3 << 28, 1 << 30)
    )
    assert unequal.taken().takes(1 << 30)
    assert unequal.predicted[-1].algbw > 0.98 * equal.predicted[-1].algbw


def test_the_search_finds_such_files():
    """Without them, an allreduce of 1 MiB on 12 GPUs was left to a tree of half the speed."""
    machine = api.load_topology("gb200-nvl72", settings={"gpus": "12"})
    problem = api.make_problem(machine, "allreduce")
    done = api.compile(problem, "msccl", several=False, size=2**20)
    tree = api.compile(problem, "msccl", several=False, size=2**20, algorithm="tree")
    assert done.taken().takes(2**20)
    assert done.predicted[-1].seconds < 0.7 * tree.predicted[-1].seconds
