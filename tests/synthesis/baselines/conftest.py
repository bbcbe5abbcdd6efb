"""Baselines by name, from a topology to a schedule or to verified files."""

import pytest

from colsynth import api, runtimes
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT
from colsynth.pipeline.spec import parse
from colsynth.runtimes.target import Target

RUNTIMES = ("msccl", "msccl-executor", "rccl")


@pytest.fixture
def schedule():
    """Return a function that runs the first pass of an algorithm."""

    def build(algorithm, name, collective, boxes=None, root=None, **options):
        problem = api.make_problem(api.load_topology(name, nodes=boxes), collective, root)
        first = DEFAULT.load(parse(ALGORITHMS[algorithm])[0].name)
        return first(**options).run(problem, Target(runtimes.profile("msccl")))

    return build


@pytest.fixture
def compiled():
    """Return a function that compiles for every runtime and returns the compilations.

    Compiling verifies the bytes; that `colsynth verify` does the same is tested elsewhere.
    """

    def build(algorithm, name, collective, boxes=None, root=None, **options):
        problem = api.make_problem(api.load_topology(name, nodes=boxes), collective, root)
        found = []
        for runtime in RUNTIMES:
            found.append(api.compile(problem, runtime, algorithm=algorithm, **options))
            assert found[-1].verified
        return found

    return build
