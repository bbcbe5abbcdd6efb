"""What holds for every program and every topology."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth import api
from colsynth.cost import default_model, ideal_model
from colsynth.model import Collective
from colsynth.runtimes import profile, profiles
from colsynth.simulate import simulate
from colsynth.simulate.breakdown import break_down
from colsynth.simulate.trace import BEGIN, CAUSING, END, START, trace
from tests.simulate.programs import (
    nccl_ring,
    program_of,
    random_program,
    random_topology,
    star_topology,
    step,
)

MSCCL = profile("msccl")
IDEAL = ideal_model()


def seconds(program, topology, size, model=IDEAL, runtime=MSCCL):
    (point,) = simulate(program, topology, runtime, [size], model)
    return point.seconds


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize(
    ("preset", "runtime"),
    [("dgx-a100", "msccl"), ("mi300x", "rccl"), ("ndv2", "msccl-executor"), ("ring:5", "msccl")],
)
def test_never_faster_than_the_cut_bound(preset, runtime, shift):
    """Each machine meets each algorithm and each collective."""
    algorithm = ("forest", "ring", "allpairs2")[shift]
    collective = ("allgather", "reduce-scatter", "allreduce")[(shift + len(preset)) % 3]
    topology = api.load_topology(preset)
    problem = api.make_problem(topology, collective)
    most = float(api.bound(problem).algbw)
    done = api.compile(problem, runtime, algorithm=algorithm, mode="out-of-place")
    for model in (IDEAL, default_model(profile(runtime))):
        sizes = (1000, 10**6, 10**8)
        points = simulate(done.artefacts[0].program, topology, profile(runtime), sizes, model)
        assert all(0 < point.algbw <= most * (1 + 1e-9) for point in points)


@pytest.mark.parametrize(
    ("preset", "nodes", "algorithm", "collective"),
    [
        ("dgx-a100", 2, "forest", "allreduce"),
        ("dgx-a100", 2, "tree", "allreduce"),
        ("mi250", 1, "forest", "allgather"),
        ("dgx-a100", 2, "pairwise", "alltoall"),
        ("dgx-h100", 1, "ten", "alltoall"),
        ("ndv2", 2, "forest", "broadcast"),
    ],
)
def test_nor_between_boxes(preset, nodes, algorithm, collective):
    topology = api.load_topology(preset, nodes=nodes)
    problem = api.make_problem(topology, collective)
    most = float(api.bound(problem).algbw)
    options = {"algorithm": algorithm, "protocol": "LL128", "mode": "out-of-place", "level": 0}
    done = api.compile(problem, "msccl", **options)
    sizes = (10**4, 10**7, 10**9)
    points = simulate(done.artefacts[0].program, topology, MSCCL, sizes, IDEAL)
    assert all(0 < point.algbw <= most * (1 + 1e-9) for point in points)


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_twice_the_bandwidth_and_no_latency_is_half_the_time(seed):
    rng = random.Random(seed)
    ranks = rng.randint(2, 6)
    program = random_program(rng, ranks, "Simple")
    topology = random_topology(rng, ranks)
    size = rng.choice((10**4, 10**6, 10**7))
    rates = rng.choice((float("inf"), 30.0, 3.0))
    times = []
    for factor in (1, 2):
        links = tuple(
            replace(link, bandwidth=factor * link.bandwidth, latency=Fraction(0))
            for link in topology.links
        )
        model = replace(
            IDEAL,
            rate=dict.fromkeys(IDEAL.rate, factor * rates),
            local_rate=dict.fromkeys(IDEAL.rate, factor * rates / 2),
        )
        times.append(seconds(program, replace(topology, links=links), size, model))
    assert times[0] == pytest.approx(2 * times[1], rel=1e-5)


@pytest.mark.parametrize("ranks", [3, 8, 16])
@pytest.mark.parametrize("size", [10**4, 10**6, 10**7, 10**9])
def test_one_ring_takes_the_textbook_time(ranks, size):
    """2 (n - 1) steps of latency and of size / n bytes (Thakur et al. 2005), tile by tile."""
    topology = api.load_topology(f"ring:{ranks}", bandwidth="50 GB/s", latency="1 us")
    tiles = -(-size // ranks // MSCCL.tile_bytes["Simple"])
    expected = 2 * (ranks - 1) * (tiles * 1e-6 + size / ranks / 50e9)
    assert seconds(nccl_ring(ranks), topology, size) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("ranks", [4, 8])
def test_a_compiled_ring_takes_the_textbook_time(ranks):
    topology = api.load_topology(f"ring:{ranks}", bandwidth="50 GB/s", latency="1 us")
    problem = api.make_problem(topology, "allgather")
    done = api.compile(problem, "msccl", algorithm="ring", channels=1, mode="in-place")
    for size in (10**4, 10**6, ranks * MSCCL.tile_bytes["Simple"]):
        expected = (ranks - 1) * (1e-6 + size / ranks / 50e9)
        found = seconds(done.artefacts[0].program, topology, size)
        assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("size", [10**6, 10**9])
def test_more_instances_never_help_once_links_are_full(size):
    topology = api.load_topology("dgx-a100", settings={"nvlink-latency": "0 us"})
    one = seconds(nccl_ring(8), topology, size)
    for channels in (2, 8, 24):
        assert seconds(nccl_ring(8, channels), topology, size) >= one * (1 - 1e-9)


def test_instances_help_until_links_are_full():
    """With the default model a threadblock is slower than a link: 240 / 24 fill it."""
    topology, model = api.load_topology("dgx-a100"), default_model(MSCCL)
    found = [seconds(nccl_ring(8, n), topology, 10**9, model) for n in (1, 2, 4, 16, 24, 32)]
    assert found[0] > 1.9 * found[1] > 3.6 * found[2] > found[3]
    assert found[5] >= 0.98 * found[4]


@given(st.integers(0, 2**32))
@settings(max_examples=40)
def test_the_time_is_the_sum_along_the_critical_path(seed):
    rng = random.Random(seed)
    ranks = rng.randint(2, 6)
    runtime = rng.choice([p for p in profiles() if p.xml])
    program = random_program(rng, ranks, rng.choice(("Simple", "LL", "LL128")))
    topology, size = random_topology(rng, ranks), rng.choice((1, 10**5, 10**7))
    traced = trace(program, topology, runtime, size)
    found = break_down(traced)
    assert found.seconds == seconds(program, topology, size, default_model(runtime), runtime)
    parts = found.launch + found.left_out + sum(found.classes.values())
    assert parts == pytest.approx(found.seconds, rel=1e-9)
    assert found.left_out == pytest.approx(0.0, abs=1e-12)
    assert min(found.classes.values()) >= -1e-15
    times = traced.run.times
    rows = [leg.row for leg in found.path]
    assert traced.run.integers[rows[0], CAUSING] == -1
    assert times[rows[0], START] == 0
    assert times[rows[-1], END] == traced.run.block_end.max()
    for leg in found.path:
        start, begin, end = times[leg.row, [START, BEGIN, END]]
        assert start <= begin <= end
        assert leg.gap >= 0


def test_a_chain_takes_the_sum_of_its_parts():
    """One chunk in one tile, from rank to rank: every constant of the model once per hop."""
    model = default_model(MSCCL)
    topology = star_topology([25 * 10**9] * 4)
    blocks = [
        [(1, None, 0, [step("s")])],
        [(2, 0, 0, [step("rcs")])],
        [(3, 1, 0, [step("rcs")])],
        [(None, 2, 0, [step("r")])],
    ]
    program = program_of(blocks, 1, collective=Collective.BROADCAST)
    size = 20000  # one slice
    wire, sending = 2e-6, size / 20e9  # 0.8 of the link is less than a threadblock moves
    hop = (model.step["Simple"] + model.hop["Simple"]) / 1e6 + wire + sending
    last = model.step["Simple"] / 1e6 + size / 24e9
    expected = model.launch["Simple"] / 1e6 + 3 * hop + last
    assert seconds(program, topology, size, model) == pytest.approx(expected, rel=1e-9)


def test_transfers_share_a_link_fairly():
    """Two of three senders to one GPU are slow; the third gets what they leave."""
    topology = star_topology([10 * 10**9, 2 * 10**9, 2 * 10**9, 9 * 10**9], Fraction(0))
    blocks = [
        [(None, rank, 0, [step("r")]) for rank in (1, 2, 3)],
        *([(0, None, 0, [step("s")])] for _ in range(3)),
    ]
    size = 10**5
    found = trace(program_of(blocks, 1), topology, MSCCL, size, IDEAL)
    rows = dict(zip(found.run.integers[:, 0], found.run.times[:, END], strict=True))
    fast, slow = size / 6, size / 2  # nanoseconds
    assert rows[5] == pytest.approx(fast)
    assert rows[3] == rows[4] == pytest.approx(slow)
