from dataclasses import replace

import pytest

from colsynth.api import load_topology, make_problem
from colsynth.errors import InputError, LimitError
from colsynth.pipeline.target import aim
from colsynth.runtimes.catalog import profile

BOX = make_problem(load_topology("dgx-a100"), "allgather")


def test_sizes_left_out_are_the_runtime_s_own():
    for runtime, least in (("msccl", 1), ("rccl", 0)):
        target = aim(BOX, profile(runtime))
        assert (target.min_bytes, target.max_bytes) == (least, None)


@pytest.mark.parametrize(
    ("runtime", "least", "most"),
    [
        ("msccl", 0, None),
        ("msccl", None, 2**31),
        ("rccl", 4096, 4095),
        ("rccl", 0, 0),
        ("msccl", 2**31, None),
        ("rccl", 2**63, None),
        ("rccl", None, 2**63),
    ],
)
def test_sizes_that_cannot_be_served_are_refused(runtime, least, most):
    with pytest.raises(InputError) as caught:
        aim(BOX, profile(runtime), min_bytes=least, max_bytes=most)
    assert caught.value.diagnostic.code == "CS212"


@pytest.mark.parametrize(
    ("least", "most", "told"),
    [
        (2**32, None, "the range of message sizes is empty: from 4 GiB, below 2 GiB"),
        (2**20, 1024, "the range of message sizes is empty: from 1 MiB, up to 1 KiB"),
        (None, 2**32, "--max-bytes 4 GiB is too large for msccl"),
    ],
)
def test_sizes_are_told_in_units(least, most, told):
    with pytest.raises(InputError, match=told):
        aim(BOX, profile("msccl"), min_bytes=least, max_bytes=most)


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_simple_rooted_collectives_stay_within_a_box(runtime, collective):
    near = make_problem(load_topology("dgx-a100"), collective)
    far = make_problem(load_topology("dgx-a100", nodes=2), collective)
    assert aim(near, profile(runtime)).protocol == "Simple"
    assert aim(far, profile(runtime), "LL128").protocol == "LL128"
    with pytest.raises(LimitError, match="--protocol LL128"):
        aim(far, profile(runtime))


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize(
    ("collective", "groups", "code"),
    [
        ("scatter", None, "CS220"),
        ("gather", None, "CS220"),
        ("allgather", [[0, 1], [2, 3]], "CS404"),
        ("allgather", [[1, 0, 2, 3, 4, 5, 6, 7]], "CS404"),
    ],
)
def test_what_no_file_can_say_is_refused_with_the_way_out(runtime, collective, groups, code):
    problem = make_problem(load_topology("dgx-a100"), collective, groups=groups)
    with pytest.raises(LimitError, match="colsynth synthesize") as caught:
        aim(problem, profile(runtime))
    assert caught.value.diagnostic.code == code


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
def test_shards_of_different_sizes_are_refused(runtime):
    problem = replace(BOX, shards=(2, 1, 1, 1, 1, 1, 1, 1))
    with pytest.raises(LimitError, match="colsynth synthesize") as caught:
        aim(problem, profile(runtime))
    assert caught.value.diagnostic.code == "CS404"
