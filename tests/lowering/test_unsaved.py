"""In-place alltoall plans send from where data lies, and copy only what a NIC still reads."""

from dataclasses import replace

import pytest
from msgspec import structs

from colsynth import api, runtimes
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
from colsynth.runtimes.target import Target
from colsynth.topology import load
from tests.verify.plans.test_execution import PAIRS

OWN = Origin(0, Direction.OUT, -1)
PLANS, RCCL = Target(runtimes.profile("mscclpp")), Target(runtimes.profile("rccl"))


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
        here = structs.replace(save, source=Slot("i", 1 - rank))
        by = {
            "s": Step("s", Slot("s", 0), None, 1, (Wait(1, 0),)),
            "r": Step("r", None, Slot("o", 1 - rank), 1, (Wait(1, 0),)),
        }
        both = Threadblock(0, 1 - rank, 1 - rank, 0, tuple(by[kind] for kind in kinds))
        gpus.append(Gpu(rank, 2, 2, 1, (both, Threadblock(1, None, None, 0, (here,)))))
    header = Header("pair", Collective.ALLTOALL, "Simple", 2, 2, 1, True, False)
    return ThreadblockProgram(header, tuple(gpus))


def test_sends_come_first_unless_they_wait():
    done = without_saves(pair("rs", "sr"), PLANS)
    assert [[s.op for s in gpu.threadblocks[0].steps] for gpu in done.gpus] == [["s", "r"]] * 2
    assert [len(gpu.threadblocks) for gpu in done.gpus] == [1, 1]


def test_fifos_hold_messages_where_no_plan_does():
    program = pair("rs", "sr")
    assert without_saves(program, RCCL) == without_saves(program, PLANS)
    assert without_saves(program, replace(RCCL, protocol="LL")) == program  # reads late
    wide = with_steps(program, lambda *both: tuple(structs.replace(s, count=3) for s in both))
    assert without_saves(wide, RCCL) == wide  # a FIFO holds two calls


def test_no_rank_copies_first_and_local_copies_share_threadblocks():
    done = compiled(api.load_topology("clique:8"), "both", "rccl")
    assert {s.source.offset - s.target.offset for _, s in steps(done, "cpy")} == {0}
    blocks = [b for gpu in done.artefacts[0].program.gpus for b in gpu.threadblocks]
    assert {len(b.steps) for b in blocks} == {1}


def with_steps(program, made):
    """Return a program in which each rank's first threadblock has other steps."""
    gpus = []
    for gpu in program.gpus:
        first, *rest = gpu.threadblocks
        changed = replace(first, steps=made(*first.steps))
        gpus.append(replace(gpu, threadblocks=(changed, *rest)))
    return replace(program, gpus=tuple(gpus))


def test_a_program_that_would_hang_keeps_its_copies():
    relay = Step("r", None, Slot("s", 1), 1)
    stuck = with_steps(
        pair("rs", "rs"),
        lambda r, s: (relay, r, structs.replace(s, waits=(Wait(0, 0), Wait(1, 0)))),
    )
    assert without_saves(stuck, PLANS) == stuck  # both would receive before they send


def test_who_waited_for_a_send_still_waits_for_what_stood_before_it():
    program = pair("rs", "rs")
    gpus = []
    for gpu in program.gpus:
        both, save = gpu.threadblocks
        reader = Step("cpy", Slot("o", 1 - gpu.rank), Slot("s", 1), 1, (Wait(0, 1),))
        other = Step("cpy", Slot("i", gpu.rank), Slot("s", 2), 1, (Wait(0, 1),))
        blocks = [Threadblock(2 + k, None, None, 0, (s,)) for k, s in enumerate((reader, other))]
        gpus.append(replace(gpu, threadblocks=(both, save, *blocks)))
    done = without_saves(replace(program, gpus=tuple(gpus)), PLANS)
    for gpu in done.gpus:
        *others, both = gpu.threadblocks
        assert [step.op for step in both.steps] == ["s", "r"]
        assert [block.steps[0].waits for block in others] == [(Wait(2, 1),), (Wait(2, 0),)]


def test_what_arrives_waits_for_every_send_from_its_place():
    program = pair("sr", "sr")
    gpus = []
    for gpu in program.gpus:
        both, save = gpu.threadblocks
        again = Step("s", Slot("s", 0), None, 1, (Wait(1, 0),))
        aside = Step("r", None, Slot("s", 1), 1)
        other = Threadblock(2, 1 - gpu.rank, 1 - gpu.rank, 1, (again, aside))
        gpus.append(replace(gpu, scratch_chunks=2, threadblocks=(both, save, other)))
    header = replace(program.header, max_bytes=1 << 20)
    done = without_saves(replace(program, header=header, gpus=tuple(gpus)), PLANS)
    for gpu in done.gpus:
        assert {step.source for b in gpu.threadblocks for step in b.steps if step.op == "s"} == {
            Slot("i", 1 - gpu.rank)
        }
    report = api.verify(runtimes.write(done, PLANS.profile), "mscclpp")
    assert report.ok, report.findings
