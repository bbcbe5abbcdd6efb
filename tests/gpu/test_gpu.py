"""Schedule files on a GPU, and the tables that it reads, which need none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from colsynth import api
from colsynth.execute.definition import Call
from colsynth.model import (
    Collective,
    Gpu,
    Header,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
)
from colsynth.runtimes import profile
from tests.gpu.tables import tables_of
from tests.gpu.twin import execute

CASES = (
    ("msccl", "allreduce", "ring"),
    ("msccl", "allgather", "forest"),
    ("msccl", "alltoall", "pairwise"),
    ("rccl", "reduce-scatter", "allpairs2"),
    ("rccl", "allreduce", "allpairs2"),
)


def compiled(runtime, collective, algorithm, ranks=4):
    topology = api.load_topology(f"clique:{ranks}")
    problem = api.make_problem(topology, collective)
    found = api.compile(problem, runtime, algorithm=algorithm, level=0, several=False)
    return found.artefacts[0].program


def shifted(program):
    """Return a program in which what one step receives goes to the chunk beside the right one."""
    gpu = program.gpus[1]
    room = {"i": gpu.input_chunks, "o": gpu.output_chunks, "s": gpu.scratch_chunks}
    at, block, place, step = next(
        (at, block, place, step)
        for at, block in enumerate(gpu.threadblocks)
        for place, step in enumerate(block.steps)
        if step.op in {"r", "rcs"} and room[step.target.buffer] > step.count
    )
    buffer, first = step.target
    beside = Slot(buffer, first + (1 if first + step.count < room[buffer] else -1))
    steps = list(block.steps)
    steps[place] = Step(step.op, step.source, beside, step.count, step.waits, step.signals)
    blocks = list(gpu.threadblocks)
    blocks[at] = Threadblock(block.id, block.send, block.recv, block.channel, tuple(steps))
    gpus = list(program.gpus)
    gpus[1] = replace(gpu, threadblocks=tuple(blocks))
    return ThreadblockProgram(program.header, tuple(gpus))


def exchange(calls):
    """Return a program of two ranks that send so many chunks each before they receive any."""
    header = Header("x", Collective.ALLTOALL, "Simple", 2, calls, 1, False, True)
    sends = tuple(Step("s", Slot("i", n), Slot("i", n), 1) for n in range(calls))
    takes = tuple(Step("r", Slot("o", n), Slot("o", n), 1) for n in range(calls))
    return ThreadblockProgram(
        header,
        tuple(
            Gpu(rank, calls, calls, 0, (Threadblock(0, 1 - rank, 1 - rank, 0, sends + takes),))
            for rank in range(2)
        ),
    )


def wrong(program):
    """Return the wrong elements after the twin has executed a program out of place."""
    header, chunk = program.header, 6
    elements = chunk * header.chunks
    calls = [
        Call(header, False, rank, np.dtype(np.float32), elements, in_place=False)
        for rank in range(header.ranks)
    ]
    for call in calls:
        call.fill(0)
    buffers = [
        [call.given, call.taken, np.zeros(gpu.scratch_chunks * chunk, np.float32)]
        for call, gpu in zip(calls, program.gpus, strict=True)
    ]
    assert execute(tables_of(program), buffers, chunk) == 0
    return sum(call.wrong(0)[0] for call in calls)


def out_of_place(case):
    program = compiled(*case)
    if program.header.out_of_place:
        return program
    problem = api.make_problem(api.load_topology("clique:4"), case[1])
    options = {"algorithm": case[2], "level": 0, "several": False, "mode": "out-of-place"}
    return api.compile(problem, case[0], **options).artefacts[0].program


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_tables_say_what_the_program_says(case):
    program = out_of_place(case)
    assert wrong(program) == 0
    assert wrong(shifted(program)) > 0


@pytest.fixture(scope="module")
def device():
    pytest.importorskip("cupy")
    from tests.gpu import device

    return device


@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.parametrize("fence", [False, True])
def test_files_are_right_on_a_gpu_and_a_fault_shows(device, case, fence):
    program, target = out_of_place(case), profile(case[0])
    size = 16 * 1024 * program.header.chunks
    for own, right in ((program, True), (shifted(program), False)):
        loaded = device.Loaded(own, target, fence=fence)
        memory = device.Memory(own, size, in_place=False, real=True)
        found = loaded.measure(memory, size, launches=1, looks=3)
        assert not found.stuck
        assert (found.wrong == 0) is right


@pytest.mark.parametrize(("calls", "stuck"), [(2, False), (3, True)])
def test_the_depth_of_a_fifo_is_that_of_the_contract(device, calls, stuck):
    size = calls * (2 << 20)  # chunks of which a call moves one
    program = exchange(calls)
    memory = device.Memory(program, size, in_place=False, real=False)
    found = device.Loaded(program, profile("msccl")).measure(memory, size, launches=1, looks=0)
    assert found.stuck is stuck
