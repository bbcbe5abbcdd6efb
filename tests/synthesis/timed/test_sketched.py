"""Timed schedules keep to a sketch, and are checked on the whole topology as all are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colsynth import api
from colsynth.errors import InputError, NegativeFinding, VerificationError
from colsynth.model import Direction
from colsynth.verify.timed import check_timed

CORPUS = Path(__file__).parents[2] / "corpus" / "sketches"
BOX = 4


@pytest.mark.parametrize("algorithm", ["ten", "exact"])
@pytest.mark.parametrize("collective", ["allgather", "allreduce", "alltoall", "broadcast"])
def test_schedules_take_only_the_ways_of_a_sketch(collective, algorithm):
    if algorithm == "exact":
        pytest.importorskip("ortools")
    topology = api.load_topology(str(CORPUS / "machine.yaml"), nodes=2)
    problem = api.make_problem(topology, collective, sketch=CORPUS / "pairs.yaml")
    size = 2**16 if collective == "broadcast" else None
    options = {"work": 1} if algorithm == "exact" else {}
    found = api.synthesize(problem, algorithm=algorithm, size=size, **options)
    schedule, sketch = found.schedule, problem.sketch
    assert schedule.chunks_per_gpu == 2
    assert schedule.size == {"allgather": 8 * 2**20, "broadcast": 2**16}.get(collective, 2**20)
    crossed = 0
    for phase in schedule.phases:
        hop = phase.hop_of()
        ends = np.stack((phase.hops.source[hop], phase.hops.target[hop]), axis=1)
        for (source, target), chunk in zip(ends.tolist(), phase.chunk.tolist(), strict=True):
            if source // BOX == target // BOX:
                assert (source, target) in sketch.within
                continue
            crossed += 1
            assert (source, target) in sketch.between
            if phase.direction is Direction.OUT:
                start = {"alltoall": chunk // (8 * 2), "broadcast": 0}.get(collective, chunk // 2)
                assert source in sketch.leave[start]
    assert crossed


def test_a_sketch_can_leave_no_schedule():
    topology = api.load_topology("ring:4")
    sketch = api.read_sketch(CORPUS / "apart.yaml", topology).sketch
    problem = api.make_problem(topology, "allgather", sketch=sketch)
    with pytest.raises(NegativeFinding, match="allow more ways in the sketch"):
        api.synthesize(problem)


def test_what_does_not_look_at_sketches_refuses_them():
    topology = api.load_topology("ring:4")
    file = CORPUS / "apart.yaml"
    problem = api.make_problem(topology, "allgather", sketch=file)
    for options in ({}, {"algorithm": "ring"}, {"passes": "match-chunks,lower-timed"}):
        with pytest.raises(InputError, match=r"CS217.*sketch"):
            api.compile(problem, "msccl", **options)
    with pytest.raises(InputError, match=r"CS217.*groups"):
        api.make_problem(topology, "allgather", groups=[[0, 1]], sketch=file)


def test_files_of_a_sketched_schedule_are_verified():
    topology = api.load_topology(str(CORPUS / "machine.yaml"), nodes=2)
    problem = api.make_problem(topology, "allgather", sketch=CORPUS / "pairs.yaml")
    done = api.compile(problem, "msccl", algorithm="ten", level=0)
    assert done.artefacts[0].report.ok


def test_the_checker_tells_what_does_not_keep_to_the_sketch():
    topology = api.load_topology(str(CORPUS / "machine.yaml"), nodes=2)
    sketch = replace(api.read_sketch(CORPUS / "pairs.yaml", topology).sketch, leave=())
    free = api.synthesize(api.make_problem(topology, "allgather"), size=2**20).schedule
    problem = api.make_problem(topology, "allgather", sketch=sketch)
    loose = api.synthesize(problem, size=2**20, chunks_per_gpu=1).schedule
    check_timed(loose)
    strict = replace(sketch, leave=((1,), (1,), (1,), (1,), (5,), (5,), (5,), (5,)))
    for schedule, kept, phrase in (
        (free, sketch, "has no such way"),
        (loose, strict, "has another sender"),
    ):
        wrong = replace(schedule, problem=replace(problem, sketch=kept))
        with pytest.raises(VerificationError, match=phrase) as caught:
            check_timed(wrong)
        assert caught.value.diagnostic.code == "CS513"
