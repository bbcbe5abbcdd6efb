"""Pipelines that fill quickly: what is varied, how many pieces fit, and how large they are."""

import pytest

from colsynth import api
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.lower_forest import LowerForest
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.modes import Mode
from colsynth.pipeline.pipelined import (
    changed,
    in_pieces,
    in_rounds,
    in_waves,
    leaves_open,
    shape,
)
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.pipeline.target import aim
from colsynth.pipeline.walk import Request, compile_problem
from colsynth.runtimes import profile

FOREST = Pipeline.from_text(ALGORITHMS["forest"])


def compiled(collective, runtime, boxes):
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=boxes), collective)
    request = Request(mode=Mode.AUTO, several=False, measured=False)
    return compile_problem(problem, aim(problem, profile(runtime), "Simple"), request)


@pytest.mark.parametrize("number", [1, 2, 5, 12])
@pytest.mark.parametrize(("rises", "falls"), [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_sizes_add_up_and_are_small_where_they_should_be(number, rises, falls):
    for chunks in (number, number + 3, 4 * number):
        sizes = list(map(int, shape(number, chunks, rises=rises, falls=falls).split("-")))
        assert len(sizes) == number
        assert sum(sizes) == chunks
        half = number // 2
        if rises:
            assert sizes[:half] == sorted(sizes[:half])
        if falls:
            assert sizes[number - half :] == sorted(sizes[number - half :], reverse=True)


def test_sizes_by_hand():
    assert shape(6, 16, rises=False, falls=True) == "4-4-3-2-2-1"
    assert shape(6, 16, rises=True, falls=True) == "1-3-4-4-3-1"
    assert shape(4, 8, rises=False, falls=False) == "2-2-2-2"


def test_only_what_is_left_open_is_varied():
    assert leaves_open(FOREST)
    assert not leaves_open(changed(FOREST, "order-transfers", order="paced"))
    assert not leaves_open(changed(FOREST, "lower-forest", pieces="1-1"))
    assert not leaves_open(changed(FOREST, "assign-threadblocks", turns=1))
    assert not leaves_open(changed(FOREST, "assign-threadblocks", even=True))
    assert not leaves_open(Pipeline.from_text(ALGORITHMS["ring"]))
    assert not leaves_open(Pipeline.from_text(ALGORITHMS["ten"]))


def test_waves_vary_order_and_threadblocks_alone():
    for found in in_waves(FOREST):
        back = changed(found, "order-transfers", order="chains")
        assert changed(back, "assign-threadblocks", even=False, turns=0) == FOREST


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_pieces_are_ever_fewer_and_fit_the_file(runtime, collective):
    made = compiled(collective, runtime, 4)
    program, limits = made.artefacts[0].program, profile(runtime)
    steps = max(sum(len(block.steps) for block in gpu.threadblocks) for gpu in program.gpus)
    numbers = []
    for found in in_pieces(FOREST, made.schedule, program, 10**9, limits):
        lowering = found.passes[2]
        assert isinstance(lowering, LowerForest)
        sizes = list(map(int, lowering.pieces.split("-")))
        assert sum(sizes) == 64
        numbers.append(len(sizes))
    assert numbers == sorted(set(numbers), reverse=True)
    assert 2 <= numbers[0] <= 12
    assert numbers[0] * steps < limits.max_xml_nodes


def test_messages_of_few_bytes_are_not_cut():
    made = compiled("allgather", "msccl", 2)
    program = made.artefacts[0].program
    assert list(in_pieces(FOREST, made.schedule, program, 2**20, profile("msccl"))) == []


@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
def test_rounds_are_for_sums_that_are_steps(collective):
    made = compiled(collective, "rccl", 4)
    program, limits = made.artefacts[0].program, profile("rccl")
    found = list(in_rounds(FOREST, made.schedule, program, 10**9, limits))
    numbers = []
    for pipeline in found:
        lowering, staffing = pipeline.passes[2], pipeline.passes[-2]
        assert isinstance(lowering, LowerForest)
        assert isinstance(staffing, AssignThreadblocks)
        assert staffing.share
        sizes = list(map(int, lowering.pieces.split("-")))
        assert max(sizes) <= limits.fifo_calls["Simple"]
        assert sizes == sizes[::-1]
        assert sum(sizes).bit_count() == 1  # else messages of a power of two are not served
        numbers.append(len(sizes))
    assert len(numbers) > 1
    assert numbers == sorted(set(numbers), reverse=True)


@pytest.mark.parametrize(
    ("collective", "runtime", "size"),
    [
        ("allgather", "rccl", 10**9),
        ("reduce-scatter", "msccl", 10**9),
        ("reduce-scatter", "rccl", 10**6),
    ],
)
def test_copies_fused_sums_and_few_bytes_need_no_rounds(collective, runtime, size):
    made = compiled(collective, runtime, 2)
    program, limits = made.artefacts[0].program, profile(runtime)
    assert not list(in_rounds(FOREST, made.schedule, program, size, limits))
