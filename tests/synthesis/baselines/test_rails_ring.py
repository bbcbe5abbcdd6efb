"""Rails on which shards go from box to box, in a ring."""

from __future__ import annotations

from collections import Counter

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.build_rails import BuildRails

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


def problem_of(boxes, collective, gpus=8):
    machine = api.load_topology("gb200-nvl72", nodes=boxes, settings={"gpus": str(gpus)})
    return api.make_problem(machine, collective)


def compiled(problem, runtime, options, **given):
    passes = f"build-rails{{strategy=shared{options}}},assign-threadblocks{{strategy=shared}}"
    asked = {"passes": f"{passes},spell-dependencies", "protocol": "Simple", "level": 0} | given
    return api.compile(problem, runtime, several=False, **asked)


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("boxes", [2, 3, 5])
@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_shard_goes_once_round_the_boxes(collective, segments, boxes, runtime):
    """Only to the box before, in each half of an allreduce."""
    problem = problem_of(boxes, collective, gpus=3)
    form = BuildRails(exchange="ring", strategy="shared", segments=segments)
    program = form.run(problem, Target(profile(runtime)))
    box = problem.topology.gpu_boxes
    hops: Counter[tuple[int, int]] = Counter()
    for one in program.transfers:
        if box[one.source] != box[one.target]:
            assert box[one.target] == (box[one.source] - 1) % boxes
            assert one.target % 3 == one.source % 3
            hops.update((one.origin.phase, one.chunk + number) for number in range(one.count))
    halves = 2 if collective == "allreduce" else 1
    assert len(hops) == halves * program.chunks
    assert set(hops.values()) == {boxes - 1}
    assert compiled(problem, runtime, f",exchange=ring,segments={segments}").verified


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("boxes", [3, 4, 7])
def test_a_gpu_has_one_neighbour_to_send_to_and_steps_for_all(boxes, collective):
    """However many boxes there are, eight peers of RCCL's 64 threadblocks have four channels."""
    limits = profile("rccl")
    for size in (1 << 24, 1 << 28):
        done = compiled(problem_of(boxes, collective), "rccl", ",exchange=ring", size=size)
        assert done.verified
        for gpu in done.artefacts[0].program.gpus:
            far = {b.send for b in gpu.threadblocks if b.send is not None}
            assert len([peer for peer in far if peer // 8 != gpu.rank // 8]) == 1
            assert len(far) == 8
            assert {b.channel for b in gpu.threadblocks} == {0, 1, 2, 3}
            assert max(len(b.steps) for b in gpu.threadblocks) <= limits.max_steps


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_it_is_faster_than_all_to_all_for_large_messages(collective):
    """The more boxes, the more: threadblocks would serve others that have little to move."""
    gains = []
    for boxes in (3, 6):
        problem, size = problem_of(boxes, collective), 256 << 20
        times = [
            compiled(problem, "rccl", options, size=size).predicted[-1].seconds
            for options in (",shards=gpu", ",exchange=ring")
        ]
        gains.append(times[0] / times[1])
    assert gains[0] > 1.05
    assert gains[1] > 1.1 * gains[0]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_search_finds_it(collective):
    done = api.compile(problem_of(3, collective), "rccl", size=64 << 20, several=False)
    assert "exchange=ring" in done.pipeline


def test_whole_messages_and_gpus_on_no_rail_do_not_go_round():
    with pytest.raises(InputError) as caught:
        BuildRails(exchange="ring", shots=1)
    assert caught.value.diagnostic.code == "CS210"
    with pytest.raises(InputError) as caught:
        BuildRails(exchange="tree")
    assert "direct, ring" in str(caught.value.diagnostic.help)
    machine = api.damage(api.load_topology("mi300x", nodes=3), gpus=["gpu1.0"]).topology
    problem = api.make_problem(machine, "reduce-scatter")
    BuildRails().run(problem, Target(profile("rccl")))
    with pytest.raises(InputError) as caught:
        BuildRails(exchange="ring").run(problem, Target(profile("rccl")))
    assert caught.value.diagnostic.code == "CS312"
