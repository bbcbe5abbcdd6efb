"""In-place alltoall plans send from where data lies, and copy only what a NIC still reads."""

from dataclasses import replace

import pytest

from colsynth import api
from colsynth.lowering.unsaved import without_saves
from colsynth.model import (
    Collective,
    Direction,
    Gpu,
    Header,
    Origin,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Wait,
)
from colsynth.topology import load
from tests.verify.plans.test_execution import PAIRS

OWN = Origin(0, Direction.OUT, -1)


def compiled(topology, mode, runtime="mscclpp"):
    problem = api.make_problem(topology, "alltoall")
    return api.compile(problem, runtime, level=0, mode=mode)


def steps(done, kind):
    program = done.artefacts[0].program
    return [
        (gpu.rank, s)
        for gpu in program.gpus
        for b in gpu.threadblocks
        for s in b.steps
        if s.op == kind
    ]


@pytest.mark.parametrize("machine", ["clique:5", "clique:40", "torus:3x3"])
def test_in_place_costs_no_more_than_out_of_place(machine):
    topology = api.load_topology(machine)
    inside, outside = (compiled(topology, mode) for mode in ("in-place", "out-of-place"))
    assert steps(inside, "cpy") == []
    for point, other in zip(inside.predicted, outside.predicted, strict=True):
        assert point.seconds < 1.1 * other.seconds


def test_what_a_network_sends_is_copied_before_it_is_overwritten():
    done = compiled(load("pairs", data=PAIRS.encode()), "in-place")
    box = done.artefacts[0].program.header.boxes
    copies = steps(done, "cpy")
    assert copies
    assert {box[rank] == box[step.source.offset] for rank, step in copies} == {False}


def pair(first, second):
    """Two ranks that exchange shards; each saves what it sends, in `first` and then `second`."""
    save = Step("cpy", Slot("i", 1), Slot("s", 0), 1, (), True, OWN)
    gpus = []
    for rank, kinds in enumerate((first, second)):
        here = replace(save, source=Slot("i", 1 - rank))
        by = {
            "s": Step("s", Slot("s", 0), None, 1, (Wait(1, 0),)),
            "r": Step("r", None, Slot("o", 1 - rank), 1, (Wait(1, 0),)),
        }
        both = Threadblock(0, 1 - rank, 1 - rank, 0, tuple(by[kind] for kind in kinds))
        gpus.append(Gpu(rank, 2, 2, 1, (both, Threadblock(1, None, None, 0, (here,)))))
    header = Header("pair", Collective.ALLTOALL, "Simple", 2, 2, 1, True, False)
    return ThreadblockProgram(header, tuple(gpus))


def test_sends_come_first_unless_they_wait():
    done = without_saves(pair("rs", "sr"))
    assert [[s.op for s in gpu.threadblocks[0].steps] for gpu in done.gpus] == [["s", "r"]] * 2
    assert [len(gpu.threadblocks) for gpu in done.gpus] == [1, 1]
    relay = Step("r", None, Slot("s", 0), 1)
    program = pair("rs", "rs")
    blocks = [
        replace(gpu.threadblocks[0], steps=(relay, *gpu.threadblocks[0].steps[:1], s))
        for gpu in program.gpus
        for s in [replace(gpu.threadblocks[0].steps[1], waits=(Wait(0, 0), Wait(1, 0)))]
    ]
    stuck = replace(
        program,
        gpus=tuple(
            replace(gpu, threadblocks=(b, gpu.threadblocks[1]))
            for gpu, b in zip(program.gpus, blocks, strict=True)
        ),
    )
    assert without_saves(stuck) == stuck  # both would receive before they send
