"""Programs that no file can hold are refused early, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colsynth import api
from colsynth.errors import ColsynthError, LimitError
from colsynth.lowering.columns import Columns
from colsynth.lowering.refusals import require_room
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes import profile
from colsynth.runtimes.limits import usage
from colsynth.runtimes.target import Target

TAIL = "coalesce-chunks,order-transfers,place-slots{sums=%s},assign-threadblocks{strategy=%s}"
PIPELINES = (
    *(
        f"pack-trees,round-weights,lower-forest{{{options}}},{TAIL % (sums, strategy)}"
        for options, sums, strategy in (
            ("instances=2", "running", "spread"),
            ("segments=4-4-4-4-4-4-4-4", "running", "duplex"),
            ("segments=1-2-1", "joined", "balanced"),
            ("segments=1-1", "by-chunk", "paired"),
            ("most=1", "running", "scheduled"),
            ("lockstep=true", "running", "duplex"),
        )
    ),
    f"build-ring,lower-forest{{lockstep=true}},{TAIL % ('running', 'duplex')}",
    "build-rails{strategy=shared},assign-threadblocks{strategy=shared}",
    "build-rails{strategy=spread,pieces=16},assign-threadblocks{strategy=spread}",
    "build-all-pairs,assign-threadblocks{strategy=spread}",
    "match-chunks,lower-timed,order-transfers,place-slots,assign-threadblocks",
)


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("machine", ["clique:4", "mesh:2x3", "dgx-1v"])
@pytest.mark.parametrize(
    ("collective", "pipelines"),
    [("allgather", 4), ("reduce-scatter", 4), ("allreduce", 4), ("alltoall", 1)],
)
def test_what_fits_a_file_is_not_refused_before_it_is_made(collective, pipelines, machine, runtime):
    """Each is made once more where there is room for just the lines that its file has."""
    problem, seen = api.make_problem(api.load_topology(machine), collective), 0
    for text in PIPELINES:
        pipeline = Pipeline.from_text(f"{text},spell-dependencies")
        target = Target(profile(runtime))
        try:
            program = pipeline.run(problem, target)
        except ColsynthError:
            continue  # no pipeline serves everything
        (nodes,) = (one.used for one in usage(program, target.profile) if one.name == "xml_nodes")
        tight = replace(target, profile=replace(target.profile, max_xml_nodes=nodes))
        assert pipeline.run(problem, tight) == program
        seen += 1
    assert seen >= pipelines


def test_a_program_of_too_many_steps_is_refused():
    problem, kind = api.make_problem(api.load_topology("ring:4"), "allreduce"), profile("msccl")
    head = "pack-trees,round-weights,lower-forest{instances=2,most=1},coalesce-chunks{merge=1}"
    program = Pipeline.from_text(head).run(problem, Target(kind))
    columns = Columns.of(program.transfers)
    ends = [[int((side == n).sum()) for side in (columns.source, columns.target)] for n in range(4)]
    for fuses, steps in ((True, max(map(max, ends))), (False, max(map(sum, ends)))):
        room, small = (replace(kind, max_xml_nodes=most + steps) for most in (4, 3))
        require_room(program, columns, room, fuses=fuses)
        with pytest.raises(LimitError, match=f"XML nodes per rank at least: {4 + steps}, but"):
            require_room(program, columns, small, fuses=fuses)
