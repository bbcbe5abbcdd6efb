"""Figures that were measured or published, and what the default model makes of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from colsynth import api
from colsynth.errors import NegativeFinding
from colsynth.runtimes import profile
from colsynth.simulate import read_source, simulate
from tests.simulate.programs import nccl_ring, star_topology

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "xml" / "rccl"
KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = (KIB, 16 * KIB, 64 * KIB, 256 * KIB, 4 * MIB, 16 * MIB, GIB)
PROTOCOLS = ("Simple", "LL", "LL128")


@cache
def compiled(preset, runtime, algorithm, protocol, instances):
    """Return topology and program of an allreduce in one box; None where it does not fit."""
    topology = api.load_topology(preset)
    problem = api.make_problem(topology, "allreduce")
    try:
        done = api.compile(
            problem,
            runtime,
            algorithm=algorithm,
            protocol=protocol,
            instances=instances,
            mode="out-of-place",
        )
    except NegativeFinding:
        return None
    return topology, done.artefacts[0].program


def best(preset, runtime, algorithm, instances, sizes):
    """Return the least seconds by size over protocols and instances that fit."""
    fit = [compiled(preset, runtime, algorithm, x, n) for x in PROTOCOLS for n in instances]
    tried = [simulate(made[1], made[0], profile(runtime), sizes) for made in fit if made]
    return {
        size: min(points[place].seconds for points in tried) for place, size in enumerate(sizes)
    }


def busbw(seconds, size, ranks=8):
    return 2 * (ranks - 1) / ranks * size / seconds / 1e9


def test_ring_allreduce_of_a_dgx_a100_reaches_what_was_measured():
    """230 to 240 GB/s (nccl-tests; stas00/ml-engineering), within a tenth."""
    sizes = (GIB, 4 * GIB)
    found = best("dgx-a100", "msccl", "ring", (2,), sizes)
    for size in sizes:
        assert 0.9 * 230 < busbw(found[size], size) < 1.1 * 240
    topology, runtime = api.load_topology("dgx-a100"), profile("msccl")
    (point,) = simulate(nccl_ring(8, 24), topology, runtime, [GIB])
    assert 225 < point.busbw / 1e9 < 245


MEASURED_LL = {2: 10.0, 3: 13.76, 4: 16.88, 5: 20.8, 6: 25.2, 7: 29.5, 8: 33.7}
"""Microseconds of a ring of one channel on A100s (NVIDIA/nccl-tests#123)."""


@pytest.mark.parametrize("ranks", sorted(MEASURED_LL))
def test_small_messages_take_as_long_as_was_measured(ranks):
    latency = api.load_topology("dgx-a100").links[0].latency
    topology = star_topology([300 * 10**9] * ranks, latency)
    (point,) = simulate(nccl_ring(ranks, 1, "LL"), topology, profile("msccl"), [128])
    assert point.seconds * 1e6 == pytest.approx(MEASURED_LL[ranks], rel=0.07)


@pytest.mark.parametrize(
    ("preset", "runtime", "instances"), [("dgx-a100", "msccl", (2,)), ("mi300x", "rccl", (1,))]
)
def test_all_pairs_are_fastest_below_a_megabyte_and_rings_above(preset, runtime, instances):
    ring = best(preset, runtime, "ring", instances, SIZES)
    pairs = best(preset, runtime, "allpairs2", (4,), SIZES)
    once = best(preset, runtime, "allpairs", (4,), SIZES)
    for size in SIZES:
        if size <= 256 * KIB:
            assert min(pairs[size], once[size]) < ring[size]
        elif size < GIB:
            assert ring[size] < min(pairs[size], once[size])
    assert ring[GIB] < 1.05 * min(pairs[GIB], once[GIB])
    assert once[GIB] > 2 * pairs[GIB]


CLAIMED = {
    "allreduce-allpairs-8n-ll-32tb.xml": ("mi300x", (1024, 8192, 65536)),
    "allreduce-allpairs-8n-ll-32tb-op.xml": ("mi300x", (1024, 8192, 65536)),
    "all-reduce-ring-simple.xml": ("mi250", (393216, 4 * MIB, 64 * MIB)),
}
"""Files of RCCL, the machine they are for, and sizes in the range their authors gave them."""


@pytest.mark.parametrize("name", sorted(CLAIMED))
def test_files_of_rccl_win_where_their_authors_say(name):
    if not (SAMPLES / name).exists():
        pytest.skip("samples of other projects are not part of this repository")
    preset, sizes = CLAIMED[name]
    runtime = profile("rccl")
    program = read_source((SAMPLES / name).read_bytes(), runtime, name).program
    most = program.header.max_bytes or max(sizes)
    assert all(program.header.min_bytes <= size <= most for size in sizes)
    theirs = simulate(program, api.load_topology(preset), runtime, sizes)
    ours = best(preset, "rccl", "ring", (1,), sizes)
    for point in theirs:
        assert point.seconds < ours[point.size_bytes]
