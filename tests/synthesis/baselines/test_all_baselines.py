"""Every baseline on every machine: a verified file, or the expected refusal."""

import pytest

from colsynth import api
from colsynth.errors import ColsynthError
from colsynth.model import Collective
from colsynth.runtimes import profile
from tests.synthesis.baselines.conftest import RUNTIMES

SERVED = {
    "ring": ("allreduce", "allgather", "reduce-scatter", "broadcast", "reduce"),
    "allpairs": ("allreduce", "allgather", "reduce-scatter", "alltoall"),
    "allpairs2": ("allreduce", "allgather", "reduce-scatter"),
    "tree": ("allreduce", "broadcast", "reduce"),
    "halving-doubling": ("allreduce", "allgather", "reduce-scatter"),
    "hierarchical": ("allreduce", "allgather", "reduce-scatter"),
    "relays": ("broadcast", "reduce"),
    "pairwise": ("alltoall",),
    "two-level": ("alltoall",),
    "rails": ("allreduce", "allgather", "reduce-scatter"),
    "pipelined": ("allreduce", "allgather", "reduce-scatter"),
}
MACHINES = (
    ("dgx-a100", 1),
    ("dgx-a100", 2),
    ("dgx-a100", 3),
    ("mi250", 1),
    ("mi300x", 1),
    ("ndv2", 2),
    ("ring:8", None),
)
UNFIT = {
    # Only neighbours have a way to each other through no third GPU.
    ("halving-doubling", "ring:8", None),
    ("two-level", "ring:8", None),
    ("rails", "ring:8", None),
    ("rails", "mi250", 1),
    ("pipelined", "ring:8", None),
    ("pipelined", "mi250", 1),
    ("halving-doubling", "mi250", 1),
    ("two-level", "mi250", 1),
    # 24 GPUs are no power of two.
    ("halving-doubling", "dgx-a100", 3),
    # Half of the GPUs do not reach the NIC.
    ("halving-doubling", "ndv2", 2),
    ("hierarchical", "ndv2", 2),
    ("two-level", "ndv2", 2),
    ("pipelined", "ndv2", 2),
}
PASSED = {"mi250": ("rccl",), "ring:8": ("rccl",)}
"""Runtimes with connections of all pairs there: over xGMI."""
COLLECTIVES = tuple(item.value for item in Collective if item is not Collective.CUSTOM)


def problem_of(name, boxes, collective):
    root = 5 if collective in ("broadcast", "reduce", "scatter", "gather") else None
    return api.make_problem(api.load_topology(name, nodes=boxes), collective, root)


@pytest.mark.parametrize(("name", "boxes"), MACHINES)
@pytest.mark.parametrize("algorithm", SERVED)
def test_files_verify_or_are_refused(algorithm, name, boxes):
    """Seven machines go round each algorithm's collectives; neighbours differ in the runtime.

    What is refused does not depend on the collective.
    """
    place = MACHINES.index((name, boxes)) + [*SERVED].index(algorithm)
    collective = SERVED[algorithm][place % len(SERVED[algorithm])]
    runtimes = [x for x in RUNTIMES if algorithm != "pipelined" or profile(x).xml]
    runtime = runtimes[place // 2 % len(runtimes)]
    problem = problem_of(name, boxes, collective)
    channels = {"channels": 2} if algorithm in ("ring", "tree") else {}
    # Rooted collectives between nodes need another protocol (README).
    protocol = "LL128" if problem.root is not None else "Simple"
    try:
        done = api.compile(problem, runtime, algorithm=algorithm, protocol=protocol, **channels)
        code = None
    except ColsynthError as refusal:
        code = refusal.diagnostic.code
    unfit = (algorithm, name, boxes) in UNFIT
    passed = algorithm in ("rails", "pipelined") and runtime in PASSED.get(name, ())
    passed |= algorithm == "pipelined" and name == "ndv2" and collective == "allreduce"
    scatters = algorithm == "pipelined" and collective == "reduce-scatter"
    several = scatters and len(problem.topology.boxes) > 1
    expected = "CS312" if several or (unfit and not passed) else None
    assert code == expected
    assert expected or done.verified


@pytest.mark.parametrize("algorithm", SERVED)
def test_other_collectives_are_refused(algorithm, schedule):
    for collective in COLLECTIVES:
        if collective not in SERVED[algorithm]:
            root = 0 if collective in ("broadcast", "reduce", "scatter", "gather") else None
            with pytest.raises(ColsynthError) as refused:
                schedule(algorithm, "clique:4", collective, root=root)
            assert refused.value.diagnostic.code == "CS311"


@pytest.mark.parametrize("algorithm", SERVED)
def test_process_groups_are_refused(algorithm):
    from colsynth import runtimes
    from colsynth.pipeline.registry import ALGORITHMS, DEFAULT
    from colsynth.pipeline.spec import parse
    from colsynth.runtimes.target import Target

    topology = api.load_topology("clique:4")
    problem = api.make_problem(topology, SERVED[algorithm][0], groups=[[0, 1], [2, 3]])
    first = DEFAULT.load(parse(ALGORITHMS[algorithm])[0].name)
    with pytest.raises(ColsynthError) as refused:
        first().run(problem, Target(runtimes.profile("msccl")))
    assert refused.value.diagnostic.code == "CS311"
