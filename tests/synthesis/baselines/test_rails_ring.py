"""Rails on which shards go from box to box, in a ring."""

from __future__ import annotations

from collections import Counter

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.hops import Hops
from colsynth.search.wish import Wish
from colsynth.synthesis.baselines.build_rails import BuildRails
from tests.synthesis.baselines.reading import problem_of

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


def compiled(problem, runtime, options, **given):
    passes = f"build-rails{{strategy=shared{options}}},assign-threadblocks{{strategy=shared}}"
    asked = {"passes": f"{passes},spell-dependencies", "protocol": "Simple", "level": 0} | given
    return api.compile(problem, runtime, several=False, **asked)


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize(("boxes", "segments"), [(2, 2), (3, 1), (5, 2)])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_shard_goes_once_round_the_boxes(collective, segments, boxes, runtime):
    """Only to the box before, in each half of an allreduce."""
    problem = problem_of(boxes, 3, collective)
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
@pytest.mark.parametrize(("boxes", "size"), [(3, 1 << 24), (4, 1 << 28), (7, 1 << 24)])
def test_a_gpu_sends_to_one_other_box_and_there_are_steps_for_all(boxes, size, collective):
    """However many boxes there are, RCCL's 64 threadblocks suffice for four channels."""
    done = compiled(problem_of(boxes, 8, collective), "rccl", ",exchange=ring", size=size)
    assert done.verified
    for gpu in done.artefacts[0].program.gpus:
        far = {b.send for b in gpu.threadblocks if b.send is not None}
        assert len([peer for peer in far if peer // 8 != gpu.rank // 8]) == 1
        assert len(far) == 8
        assert {b.channel for b in gpu.threadblocks} == {0, 1, 2, 3}


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_it_is_faster_than_all_to_all_for_large_messages(collective):
    """The more boxes, the more: threadblocks would serve others that have little to move."""
    gains = []
    for boxes in (3, 6):
        problem, size = problem_of(boxes, 8, collective), 256 << 20
        times = [
            compiled(problem, "rccl", options, size=size).predicted[-1].seconds
            for options in (",shards=gpu", ",exchange=ring")
        ]
        gains.append(times[0] / times[1])
    assert gains[0] > 1.05
    assert gains[1] > 1.1 * gains[0]


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_the_search_finds_it(collective):
    done = api.compile(problem_of(3, 4, collective), "rccl", size=64 << 20, several=False)
    assert "exchange=ring" in done.pipeline


@pytest.mark.parametrize(("mode", "boxes", "gpus"), [("in-place", 3, 2), ("out-of-place", 4, 1)])
@pytest.mark.parametrize(("runtime", "strategy"), [("rccl", "spread"), ("mscclpp", "shared")])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_files_of_other_runtimes_and_strategies_are_right(
    collective, runtime, strategy, mode, boxes, gpus
):
    passes = f"build-rails{{strategy={strategy},exchange=ring,instances=1,pieces=1}}"
    passes += f",assign-threadblocks{{strategy={strategy}}},spell-dependencies"
    problem = problem_of(boxes, gpus, collective)
    assert compiled(problem, runtime, "", passes=passes, mode=mode).verified


def test_without_a_size_it_is_for_large_messages():
    """A file for several sizes has one call for a part otherwise."""
    problem, target = problem_of(4, 8, "allgather"), Target(profile("rccl"))
    counts = {}
    for exchange in ("direct", "ring"):
        program = BuildRails(exchange=exchange, strategy="shared").run(problem, target)
        counts[exchange] = max(one.count for one in program.transfers if not one.is_local)
    assert counts["ring"] < counts["direct"]


@pytest.mark.parametrize(
    ("runtime", "boxes", "collective", "rings"),
    [
        ("rccl", 2, "allgather", 0),
        ("rccl", 3, "allgather", 1),
        ("rccl", 3, "reduce-scatter", 2),
        ("rccl", 3, "allreduce", 1),
        ("msccl", 3, "allgather", 1),
        ("msccl", 3, "reduce-scatter", 0),
        ("mscclpp", 3, "allgather", 0),
    ],
)
def test_it_is_tried_where_it_may_win(runtime, boxes, collective, rings):
    case = Case(problem_of(boxes, 8, collective), runtime, (1 << 30,))

    def tried(plans):
        return [plan for plan in plans if "exchange=ring" in str(plan.pipeline)]

    assert len(tried(Wish().variants("rails", case, Hops(dominate=False, one_more=True)))) == rings
    assert not tried(Wish().variants("rails", case, Hops(dominate=True, one_more=False)))
    assert len(tried(Wish().every_variant("rails", case))) == rings


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"exchange": "ring", "shots": 1, "strategy": "shared"}, "shots at 2"),
        ({"exchange": "ring"}, "strategy=shared"),
        ({"exchange": "tree"}, "direct, ring, two-shot"),
    ],
)
def test_what_does_not_go_round_is_refused(options, advice):
    with pytest.raises(InputError) as caught:
        BuildRails(**options)
    assert caught.value.diagnostic.code == "CS210"
    assert advice in str(caught.value.diagnostic.help)


def test_every_gpu_has_to_be_on_a_rail():
    machine = api.damage(api.load_topology("mi300x", nodes=3), gpus=["gpu1.0"]).topology
    problem = api.make_problem(machine, "reduce-scatter")
    BuildRails().run(problem, Target(profile("rccl")))
    with pytest.raises(InputError) as caught:
        BuildRails(exchange="ring", strategy="shared").run(problem, Target(profile("rccl")))
    assert caught.value.diagnostic.code == "CS312"
