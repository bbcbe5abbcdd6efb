"""Timed schedules: for the size or for large messages, with as many copies and chunks as help."""

from pathlib import Path

import pytest

from colsynth import api
from colsynth.errors import LimitError

SKETCHES = Path(__file__).parents[1] / "corpus" / "sketches"


def seconds(topology, collective, runtime, size, **options):
    problem = api.make_problem(topology, collective)
    return api.compile(problem, runtime, size=size, **options).predicted[0].seconds


@pytest.mark.parametrize(
    ("machine", "degraded", "collective", "runtime", "size"),
    [
        ("torus:3x4", (), "alltoall", "rccl", 384 << 20),
        ("mesh:3x3", (), "alltoall", "msccl", 1 << 20),
        ("torus:2x3", (), "allgather", "rccl", 48 << 20),
        # Trees lead on this line of GPUs until a timed schedule has 16 chunks per GPU.
        ("mesh:4", ("gpu1-gpu2=10%", "gpu2-gpu3=50%"), "broadcast", "rccl", 1 << 20),
    ],
)
def test_no_timed_schedule_with_copies_is_faster_than_the_default(
    machine, degraded, collective, runtime, size
):
    topology = api.damage(api.load_topology(machine), degraded=degraded).topology
    ours = seconds(topology, collective, runtime, size)
    for copies in (None, 1, 2, 4):
        own = {} if copies is None else {"instances": copies}
        try:
            other = seconds(topology, collective, runtime, size, algorithm="ten", **own)
        except LimitError:
            continue
        assert ours <= other * 1.01


def test_a_schedule_for_large_messages_is_tried_beside_that_for_the_size():
    topology, size = api.load_topology("mi250"), 1 << 20
    default = seconds(topology, "alltoall", "msccl", size)
    passes = "match-chunks{size=1048576,gap=latency},lower-timed{instances=4},coalesce-chunks,"
    passes += "order-transfers,place-slots,assign-threadblocks{strategy=spread},spell-dependencies"
    for protocol in ("Simple", "LL128"):
        sized = seconds(topology, "alltoall", "msccl", size, passes=passes, protocol=protocol)
        large = passes.replace("size=1048576,", "")
        free = seconds(topology, "alltoall", "msccl", size, passes=large, protocol=protocol)
        assert default <= min(sized, free) * 1.001


@pytest.mark.parametrize("size", [1 << 16, 1 << 30])
def test_a_size_that_was_given_counts_rather_than_that_of_the_sketch(size):
    topology = api.load_topology(str(SKETCHES / "machine.yaml"), nodes=2)
    problem = api.make_problem(topology, "alltoall", sketch=SKETCHES / "pairs.yaml")
    found = api.compile(problem, "msccl", algorithm="ten", size=size, level=0)
    assert f"size={size}" in found.pipeline
