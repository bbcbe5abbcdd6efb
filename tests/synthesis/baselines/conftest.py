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
    """Return a function that compiles for every runtime and returns the compilations."""

    def build(algorithm, name, collective, boxes=None, root=None, **options):
        problem = api.make_problem(api.load_topology(name, nodes=boxes), collective, root)
        found = []
        for runtime in RUNTIMES:
            done = api.compile(problem, runtime, algorithm=algorithm, **options)
            for artefact in done.artefacts:
                # Once more from the bytes alone, as `colsynth verify` does.
                assert api.verify(artefact.data, runtime).ok
            found.append(done)
        return found

    return build
