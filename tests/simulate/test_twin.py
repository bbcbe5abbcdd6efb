"""The simulator equals a slow twin on random programs and on compiled ones."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth import api
from colsynth.cost import default_model, ideal_model
from colsynth.runtimes import profile, profiles
from colsynth.simulate import simulate
from tests.reference.simulate import simulate as twin
from tests.simulate.programs import nccl_ring, random_program, random_topology

NEAR = 1e-3
"""Rates are let be within a thousandth (`colsynth.kernels.sharing`)."""


def compare(program, topology, runtime, model, size, near=NEAR):
    (point,) = simulate(program, topology, runtime, [size], model)
    assert point.seconds == pytest.approx(twin(program, topology, runtime, model, size), rel=near)


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_random_programs(seed):
    rng = random.Random(seed)
    ranks = rng.randint(2, 5)
    runtime = rng.choice([p for p in profiles() if p.xml])
    protocol = rng.choice(("Simple", "LL", "LL128"))
    program = random_program(rng, ranks, protocol)
    model = rng.choice((default_model(runtime), ideal_model()))
    most = 3 * 10**6 if protocol == "LL" else 10**7  # its calls are short, and the twin slow
    size = min(most, rng.choice((1, 1000, 10**5, 10**6, 3 * 10**6, 10**7)))
    compare(program, random_topology(rng, ranks), runtime, model, size)


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_without_shared_links_to_the_last_digits(seed):
    """Links that no transfer fills: nothing is rounded any more."""
    rng = random.Random(seed)
    ranks = rng.randint(2, 5)
    runtime = rng.choice([p for p in profiles() if p.xml])
    program = random_program(rng, ranks, rng.choice(("Simple", "LL", "LL128")))
    topology = random_topology(rng, ranks)
    wide = tuple(replace(link, bandwidth=link.bandwidth * 10**6) for link in topology.links)
    size = rng.choice((1, 10**5, 10**7))
    topology = replace(topology, links=wide)
    compare(program, topology, runtime, default_model(runtime), size, near=1e-8)


@pytest.mark.parametrize(
    ("preset", "collective", "algorithm", "runtime", "size"),
    [
        ("dgx-a100", "allreduce", "ring", "msccl", 3 * 10**7),
        ("dgx-a100", "allgather", "forest", "msccl-executor", 10**7),
        ("mi300x", "allreduce", "allpairs2", "rccl", 10**6),
        ("ring:5", "allreduce", "forest", "rccl", 10**5),
        ("ndv2", "reduce-scatter", "forest", "msccl", 10**7),
    ],
)
def test_compiled_programs(preset, collective, algorithm, runtime, size):
    topology = api.load_topology(preset)
    problem = api.make_problem(topology, collective)
    options = {"algorithm": algorithm, "mode": "in-place", "several": False}
    done = api.compile(problem, runtime, size=size, **options)
    found = profile(runtime)
    compare(done.artefacts[0].program, topology, found, default_model(found), size)


@pytest.mark.parametrize("protocol", ["Simple", "LL", "LL128"])
def test_rings_of_several_channels(protocol):
    topology, runtime = api.load_topology("dgx-a100"), profile("msccl")
    program = nccl_ring(8, 3, protocol)
    compare(program, topology, runtime, default_model(runtime), 5 * 10**6)
