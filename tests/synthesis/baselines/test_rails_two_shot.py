"""Rails that scatter the sums of their boxes and gather those of all."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.hops import Hops
from colsynth.search.wish import Wish
from colsynth.synthesis.baselines.build_rails import BuildRails
from colsynth.synthesis.baselines.rails_two_shot_numbers import radices
from tests.synthesis.baselines.reading import problem_of

SHARED = {"strategy": "shared", "exchange": "two-shot"}


def compiled(problem, runtime, options="", strategy="spread", **given):
    passes = f"build-rails{{strategy={strategy},exchange=two-shot{options}}}"
    passes += f",assign-threadblocks{{strategy={strategy}}},spell-dependencies"
    return api.compile(problem, runtime, several=False, passes=passes, level=0, **given)


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("strategy", ["shared", "spread"])
@pytest.mark.parametrize(("boxes", "segments"), [(1, 1), (2, 3), (3, 2), (5, 4)])
def test_boxes_exchange_each_byte_twice_but_for_their_own_share(boxes, segments, strategy, runtime):
    """Once to who adds it up, and once back; a share of the message stays in each box."""
    problem = problem_of(boxes, gpus=3)
    form = BuildRails(exchange="two-shot", strategy=strategy, segments=segments)
    program = form.run(problem, Target(profile(runtime)))
    box = problem.topology.gpu_boxes
    entered: Counter[int] = Counter()
    for one in program.transfers:
        if box[one.source] != box[one.target]:
            assert one.target % 3 == one.source % 3
            entered[box[one.target]] += one.count
    assert sum(entered.values()) == 2 * program.chunks * (boxes - 1)
    even = 2 * program.chunks * (boxes - 1) / boxes
    most = 3 * segments * max(0, boxes - 2)  # shares of a segment of a rail differ by one piece
    assert all(abs(entered[number] - even) <= most for number in range(boxes))
    assert compiled(problem, runtime, f",segments={segments}", strategy).verified


@pytest.mark.parametrize(("runtime", "boxes", "gpus"), [("rccl", 8, 8), ("msccl", 4, 8)])
def test_there_are_more_channels_within_boxes_than_between_them(runtime, boxes, gpus):
    """All to all, there are as many."""
    done = compiled(problem_of(boxes, gpus), runtime, ",segments=2", size=16 << 20)
    for gpu in done.artefacts[0].program.gpus:
        peers = [b.send for b in gpu.threadblocks if b.send is not None]
        near = [peer for peer in peers if peer // gpus == gpu.rank // gpus]
        channels = len(near) // (gpus - 1), (len(peers) - len(near)) // (boxes - 1)
        assert channels[0] > channels[1] > 0


@pytest.mark.parametrize("boxes", [3, 6])
def test_a_step_within_a_box_holds_shares_of_several_boxes(boxes):
    """A segment takes a step to collect and a step to spread it, however many boxes there are."""
    done = compiled(problem_of(boxes, gpus=4), "rccl", ",segments=2", size=1 << 20)
    for gpu in done.artefacts[0].program.gpus:
        for block in gpu.threadblocks:
            if block.send is not None and block.send // 4 == gpu.rank // 4:
                assert 0 < sum(step.op == "s" for step in block.steps) <= 4


@pytest.mark.parametrize(("boxes", "radix"), [(4, 2), (6, 3), (8, 2), (12, 4), (7, 3)])
def test_in_stages_gpus_exchange_with_few_boxes(boxes, radix):
    """They send and get as much as all at once, but for shares that differ by pieces."""
    problem = problem_of(boxes, gpus=2)
    form = BuildRails(exchange="two-shot", strategy="shared", radix=radix, pieces=boxes)
    program = form.run(problem, Target(profile("msccl")))
    box = problem.topology.gpu_boxes
    peers, moved = defaultdict(set), 0
    for one in program.transfers:
        if box[one.source] != box[one.target]:
            peers[one.source].add(one.target)
            moved += one.count
    assert moved == 2 * program.chunks * (boxes - 1)
    expected = sum(number - 1 for number in radices(boxes, radix))
    assert {len(found) for found in peers.values()} == {expected}
    assert prod(radices(boxes, radix)) == boxes
    for runtime in ("msccl", "rccl"):
        for given in (f",radix={radix}", f",radix={radix},segments=3,calls=2,pieces=5"):
            assert compiled(problem, runtime, given, "shared").verified


def test_in_many_boxes_stages_are_faster_than_all_at_once():
    problem, given = problem_of(16, gpus=4), {"size": 16 << 20, "protocol": "Simple"}
    once = compiled(problem, "rccl", ",segments=4", **given)
    staged = compiled(problem, "rccl", ",segments=4,radix=4", **given)
    assert staged.predicted[-1].seconds < once.predicted[-1].seconds / 1.2


def test_with_many_boxes_it_is_faster_than_a_shard_for_each_gpu():
    """That takes a step for each box."""
    problem, asked = problem_of(8, gpus=8), {"size": 1 << 20, "protocol": "LL128"}
    passes = "build-rails{strategy=shared,shards=gpu},assign-threadblocks{strategy=shared}"
    passes += ",spell-dependencies"
    each = api.compile(problem, "rccl", several=False, passes=passes, level=0, **asked)
    done = compiled(problem, "rccl", ",segments=2", **asked)
    assert done.predicted[-1].seconds < each.predicted[-1].seconds / 1.1


def test_the_search_finds_it():
    done = api.compile(problem_of(5, gpus=4), "msccl", size=1 << 20, several=False)
    assert "exchange=two-shot" in done.pipeline


@pytest.mark.parametrize("mode", ["in-place", "out-of-place"])
@pytest.mark.parametrize(("runtime", "protocol"), [("rccl", "LL"), ("mscclpp", None)])
@pytest.mark.parametrize("options", ["", ",pieces=5,calls=2", ",instances=3,segments=2"])
def test_files_of_other_runtimes_and_options_are_right(options, runtime, protocol, mode):
    problem = problem_of(3, gpus=2)
    assert compiled(problem, runtime, options, "shared", protocol=protocol, mode=mode).verified


def test_rounds_give_each_box_a_share():
    passes = "build-rails{strategy=shared,exchange=two-shot},lower-rounds"
    assert api.compile(problem_of(3, 2), "torch", passes=passes, several=False).verified
    program = BuildRails(exchange="two-shot", strategy="shared").run(
        problem_of(3, 2), Target(profile("torch"))
    )
    sums = {one.source for one in program.transfers if one.is_local and one.origin.phase == 1}
    assert sums == set(range(6))


@pytest.mark.parametrize("segments", [1, 2, 3, 4])
@pytest.mark.parametrize("boxes", [3, 5])
def test_there_are_steps_for_all(boxes, segments):
    """Also where pieces are many: those that divide a message of 64 KiB are no powers of two."""
    machine = api.load_topology("mi300x", nodes=boxes)
    problem, asked = api.make_problem(machine, "allreduce"), {"size": 1 << 16, "protocol": "LL128"}
    for strategy in ("shared", "spread"):
        assert compiled(problem, "rccl", f",segments={segments}", strategy, **asked).verified


def test_gpus_on_no_rail_get_the_sums_too():
    """Boxes differ in size, and shards by a piece."""
    machine = api.damage(api.load_topology("mi300x", nodes=3), gpus=["gpu1.0"]).topology
    done = compiled(api.make_problem(machine, "allreduce"), "rccl", size=16 << 20)
    assert done.verified


def test_shares_that_boxes_do_not_divide_differ_by_a_piece():
    done = compiled(problem_of(7, gpus=4), "rccl", ",pieces=8", size=8 << 20)
    assert done.verified


@pytest.mark.parametrize(
    ("runtime", "boxes", "collective", "found"),
    [
        ("rccl", 2, "allreduce", 0),
        ("rccl", 3, "allreduce", 3),
        ("msccl", 3, "allreduce", 3),
        ("msccl", 9, "allreduce", 4),
        ("rccl", 3, "reduce-scatter", 0),
        ("mscclpp", 3, "allreduce", 0),
    ],
)
def test_it_is_tried_where_it_may_win(runtime, boxes, collective, found):
    case = Case(problem_of(boxes, 8, collective), runtime, (1 << 20,))

    def tried(plans):
        return [plan for plan in plans if "exchange=two-shot" in str(plan.pipeline)]

    for dominate in (True, False):
        plans = Wish().variants("rails", case, Hops(dominate, one_more=True))
        assert len(tried(plans)) == found
        assert not tried(Wish().variants("rails", case, Hops(dominate, one_more=False)))


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"strategy": "shared", "shots": 1}, "shots at 2"),
        ({}, "strategy=shared"),
        ({"strategy": "shared", "shards": "gpu"}, "shards at rail"),
    ],
)
def test_what_has_no_two_shots_is_refused(options, advice):
    with pytest.raises(InputError) as caught:
        BuildRails(exchange="two-shot", **options)
    assert caught.value.diagnostic.code == "CS210"
    assert advice in str(caught.value.diagnostic.help)


@pytest.mark.parametrize(
    ("options", "code"),
    [({"radix": 2}, "CS210"), ({"radix": -1}, "CS210"), ({"radix": 1, **SHARED}, "CS210")],
)
def test_stages_are_of_two_shots_and_have_several_boxes(options, code):
    with pytest.raises(InputError) as caught:
        BuildRails(**options)
    assert caught.value.diagnostic.code == code


def test_other_collectives_are_refused():
    form = BuildRails(exchange="two-shot", strategy="shared")
    with pytest.raises(InputError) as caught:
        form.run(problem_of(3, 8, "allgather"), Target(profile("rccl")))
    assert caught.value.diagnostic.code == "CS312"
    assert "exchange at direct" in str(caught.value.diagnostic.help)
