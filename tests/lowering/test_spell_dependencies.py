"""One wait per step, nops in front, signals exactly where somebody waits."""

from dataclasses import replace

import pytest

from colsynth import api, topology
from colsynth.errors import LimitError
from colsynth.model import Collective, Problem, Wait


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce"])
def test_waits_are_spelt_as_the_runtime_collects_them(lowered, runtime, collective):
    program = lowered("mi250", collective, runtime=runtime)
    for gpu in program.gpus:
        awaited = set()
        signalled = set()
        for block in gpu.threadblocks:
            for number, step in enumerate(block.steps):
                assert len(step.waits) <= 1
                awaited.update(step.waits)
                if step.signals:
                    signalled.add(Wait(block.id, number))
                if step.op == "nop":
                    assert step.waits
                    assert block.steps[number + 1].waits
                for wait in step.waits:
                    assert wait.threadblock != block.id
                    assert gpu.threadblocks[wait.threadblock].steps[wait.step].op != "nop"
        assert awaited == signalled


def test_scratch_is_dense(lowered):
    program = lowered("mi250", "reduce-scatter")
    for gpu in program.gpus:
        touched = {
            slot.offset + k
            for block in gpu.threadblocks
            for step in block.steps
            for slot in (step.source, step.target)
            if slot is not None and slot.buffer == "s"
            for k in range(step.count)
        }
        assert touched == set(range(gpu.scratch_chunks))


def test_a_limit_is_refused_by_its_name(lowered):
    with pytest.raises(LimitError) as caught:
        lowered("ring:8", "allgather", trees="5000")
    assert "chunks per buffer: 40000" in caught.value.diagnostic.phrase


def test_names_are_spelt_in_letters_that_scanners_read():
    machine = replace(topology.load("ring:4"), name='Zürich "<&>" ' + "x" * 99)
    problem = Problem(machine, Collective.ALLGATHER)
    (artefact,) = api.compile(problem, "rccl").artefacts
    name = artefact.program.header.name
    assert name.startswith("colsynth allgather Z_rich _____ xxx")
    assert len(name) == 63
