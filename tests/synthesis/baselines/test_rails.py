"""The allreduce in boxes, on rails, in boxes."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest

from colsynth import api
from colsynth.errors import InputError, LimitError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.build_rails import BuildRails
from tests.synthesis.baselines.reading import problem_of


@pytest.mark.parametrize("collective", ["allreduce", "reduce-scatter"])
@pytest.mark.parametrize(("runtime", "boxes"), [("msccl", 1), ("rccl", 2), ("msccl", 3)])
@pytest.mark.parametrize("segments", [1, 3])
def test_every_shard_changes_boxes_once(runtime, boxes, segments, collective):
    """From each box to each that needs it, and threadblocks suffice by default."""
    problem = problem_of(boxes, collective=collective)
    program = BuildRails(segments=segments).run(problem, Target(profile(runtime)))
    box = [problem.topology.nodes[node].box for node in problem.topology.ranks]
    crossing: Counter[tuple[int, ...]] = Counter()
    for one in program.transfers:
        if box[one.source] != box[one.target]:
            crossing.update(
                (box[one.source], box[one.target], c + one.chunk) for c in range(one.count)
            )
    targets = boxes if collective == "allreduce" else 1
    assert len(crossing) == targets * (boxes - 1) * program.chunks
    assert set(crossing.values()) <= {1}
    passes = f"build-rails{{segments={segments}}},assign-threadblocks{{strategy=paired}}"
    done = api.compile(problem, runtime, passes=f"{passes},spell-dependencies", protocol="LL")
    assert done.verified
    blocks = max(len(gpu.threadblocks) for gpu in done.artefacts[0].program.gpus)
    assert blocks <= profile(runtime).resident_threadblocks


@pytest.mark.parametrize("collective", ["allreduce", "reduce-scatter"])
@pytest.mark.parametrize(("runtime", "boxes"), [("msccl", 1), ("rccl", 2), ("msccl", 3)])
def test_threadblocks_with_peers_may_add_up_as_well(runtime, boxes, collective):
    """None is left for sums alone between two boxes; elsewhere they are not enough for channels."""
    problem = problem_of(boxes, collective=collective)
    lowering = "assign-threadblocks{strategy=shared},spell-dependencies"
    passes = f"build-rails{{strategy=shared}},{lowering}"
    done = api.compile(problem, runtime, passes=passes, protocol="LL", several=False)
    assert done.verified
    for gpu in done.artefacts[0].program.gpus:
        assert len(gpu.threadblocks) <= profile(runtime).usable_threadblocks
        peers = [b for b in gpu.threadblocks if b.send is not None or b.recv is not None]
        assert any(step.op == "re" for block in peers for step in block.steps)
        assert boxes != 2 or len(peers) == len(gpu.threadblocks)


def test_shared_sums_in_segments_gain_between_boxes():
    """Threadblocks of pairs would wait for one thing with the other in front."""
    problem, asked = problem_of(2, 4, "reduce-scatter"), {"size": 16 << 20, "several": False}
    plain = api.compile(problem, "msccl", algorithm="rails", **asked)
    passes = plain.pipeline.replace("build-rails", "build-rails{segments=2,strategy=shared}")
    passes = passes.replace("strategy=paired", "strategy=shared")
    shared = api.compile(problem, "msccl", passes=passes, protocol="LL128", **asked)
    found = api.compile(problem, "msccl", **asked)
    times = [done.predicted[-1].seconds for done in (found, shared, plain)]
    assert times == sorted(times)
    assert times[1] < times[2]


@pytest.mark.parametrize("strategy", ["paired", "spread"])
@pytest.mark.parametrize(("runtime", "boxes", "segments"), [("msccl", 2, 3), ("rccl", 3, 1)])
def test_boxes_begin_with_each_others_shards(runtime, boxes, segments, strategy):
    """One that only receives adds a sum of two boxes on its way, the others beside their own."""
    problem = problem_of(boxes, collective="reduce-scatter")
    form = BuildRails(segments=segments, strategy=strategy)
    program = form.run(problem, Target(profile(runtime)))
    box = [problem.topology.nodes[node].box for node in problem.topology.ranks]
    each = program.chunks // problem.topology.size
    for rank in range(problem.topology.size):
        sent = [one for one in program.transfers if one.source == rank != one.target]
        within = [box[one.chunk // each] for one in sent if box[one.target] == box[rank]]
        assert within == sorted(within, key=box[rank].__eq__)
        assert {*within} == {*box}
        across = {one.reduces for one in sent if box[one.target] != box[rank]}
        assert across == {strategy == "spread" and boxes == 2}


@pytest.mark.parametrize("collective", ["allreduce", "reduce-scatter"])
def test_own_shards_are_added_to_what_arrives_where_steps_can(collective):
    """A copy that begins a sum is one step more, and one more buffer to read."""
    problem = problem_of(1, collective=collective)
    fused, plain = (BuildRails().run(problem, Target(profile(x))) for x in ("msccl", "rccl"))
    local = [one for one in fused.transfers if one.source == one.target]
    assert local
    assert all(one.reduces for one in local)
    added = [one for one in fused.transfers if one.source != one.target and one.reduces]
    assert {one.operand.buffer for one in added} == {"i"}
    assert {one.target for one in added} == {*range(problem.topology.size)}
    assert any(not one.reduces for one in plain.transfers if one.source == one.target)


@pytest.mark.parametrize("boxes", [1, 2])
def test_threadblocks_have_all_shards_on_the_way_before_they_spread_sums(boxes):
    problem = problem_of(boxes)
    program = BuildRails(segments=4, strategy="spread").run(problem, Target(profile("msccl")))
    phases: dict[tuple[int, ...], list[int]] = {}
    for one in program.transfers:
        if one.origin.phase != 1 and not one.is_local:
            way = one.source, one.target, one.origin.instance
            phases.setdefault(way, []).append(one.origin.phase)
    assert set(map(tuple, phases.values())) == {(0,) * 4 + (2,) * 4}


@pytest.mark.parametrize("collective", ["allreduce", "reduce-scatter"])
def test_segments_gain_while_data_crosses_between_boxes(collective):
    """The best of some numbers of them at hand is what the search finds, or that is faster."""
    problem, asked = problem_of(2, 4, collective), {"size": 1 << 24, "several": False}
    times = {}
    for segments in (1, 2, 4, 8):
        passes = f"build-rails{{strategy=spread,segments={segments}}}"
        passes += ",assign-threadblocks{strategy=spread},spell-dependencies"
        times[segments] = (
            api.compile(problem, "msccl", passes=passes, **asked).predicted[-1].seconds
        )
    assert times[2] < times[1] / 1.2
    assert times[4] < times[2]
    assert times[8] < times[2] or collective == "reduce-scatter"
    assert api.compile(problem, "msccl", **asked).predicted[-1].seconds <= min(times.values())


def test_a_pair_sends_no_more_pieces_than_a_fifo_holds_calls():
    """Else all would wait for somebody to receive first, and take turns on the links."""
    machine = profile("msccl")
    for protocol, calls in machine.fifo_calls.items():
        target = Target(machine, protocol, size=3 << 20)
        program = BuildRails(instances=4).run(problem_of(1, 12), target)
        assert {one.count for one in program.transfers if not one.is_local} == {calls}
        program = BuildRails().run(problem_of(1, 12), target)  # unequal parts
        assert max(one.count for one in program.transfers if not one.is_local) <= calls


def test_pairs_fit_more_gpus_than_a_file_has_threadblocks_for_both_directions():
    problem = problem_of(1, 40)
    assert profile("msccl").usable_threadblocks < 2 * 39
    done = api.compile(
        problem, "msccl", algorithm="rails", level=0, protocol="LL", several=False, size=5 << 18
    )
    assert done.verified
    assert all(
        (block.send is None) == (block.recv is None)
        for gpu in done.artefacts[0].program.gpus
        for block in gpu.threadblocks
    )


def test_sums_of_more_than_two_boxes_are_added_in_one_order():
    """So that all GPUs get the same bits; of two, either order gives them."""
    program = BuildRails(1, 1).run(problem_of(3, 2), Target(profile("msccl")))
    orders = {
        rank: [
            t.read.offset
            for t in program.transfers
            if t.is_local and t.source == rank and t.origin.phase == 1
        ]
        for rank in range(6)
    }
    for place in range(2):
        reads = {tuple(orders[rank]) for rank in range(place, 6, 2)}
        assert len(reads) == 1


def test_it_is_the_search_that_finds_it():
    done = api.compile(problem_of(2), "msccl", size=1 << 16, several=False)
    assert done.algorithm == "rails"


@pytest.mark.parametrize(("boxes", "collective"), [(1, "reduce-scatter"), (2, "allreduce")])
def test_more_arrivals_than_a_runtime_adds_in_one_go_take_several_chains(boxes, collective):
    """A box of 18 GPUs has 17 for each sum; MSCCL adds 15."""
    problem = problem_of(boxes, 18, collective)
    given = {"algorithm": "rails", "instances": 1, "level": 0, "protocol": "LL", "several": False}
    assert api.compile(problem, "msccl", **given).verified


def test_small_messages_among_many_gpus_are_added_up_at_once():
    done = api.compile(problem_of(1, 18, "reduce-scatter"), "msccl", size=18 << 16, several=False)
    assert done.algorithm == "rails"


@pytest.mark.parametrize(("runtime", "boxes", "gpus"), [("msccl", 1, 12), ("rccl", 2, 6)])
@pytest.mark.parametrize("size", [2**20, 10**6])
def test_ranks_need_not_divide_the_message_of_an_allreduce(size, runtime, boxes, gpus):
    """What places of a channel add up differs by a piece, and the whole divides the message."""
    problem = problem_of(boxes, gpus)
    program = BuildRails().run(problem, Target(profile(runtime), "LL", size=size))
    counts = {t.count for t in program.transfers if not t.is_local and t.origin.phase == 0}
    assert len(counts) == 2
    assert max(counts) - min(counts) == 1
    assert size // 4 % program.chunks == 0
    parts = BuildRails(segments=4, strategy="spread")
    apart = parts.run(problem, Target(profile(runtime), "LL", size=size))
    assert size // 4 % apart.chunks == 0
    few = BuildRails(pieces=1).run(problem, Target(profile(runtime), "LL", size=size))
    assert {t.count for t in few.transfers} <= {1, 2}
    assert size // 4 % few.chunks == 0
    given = {"algorithm": "rails", "level": 0, "protocol": "LL", "several": False}
    done = api.compile(problem, runtime, size=size, **given)
    assert done.verified
    assert done.taken().takes(size)


def test_no_sum_waits_for_what_another_channel_sends_on():
    """Threadblocks of one channel add up for another too, in the order of transfers."""
    program = BuildRails(instances=2).run(problem_of(1, 6), Target(profile("msccl"), "LL"))
    phases = [t.origin.phase for t in program.transfers]
    assert phases == sorted(phases)
    assert {t.origin.instance for t in program.transfers} == {0, 1}


@pytest.mark.parametrize("collective", ["allreduce", "reduce-scatter"])
@pytest.mark.parametrize(("runtime", "gpus"), [("msccl", 2), ("mscclpp", 2), ("mscclpp", 13)])
def test_where_the_number_of_channels_is_open_one_that_fits_is_found(runtime, gpus, collective):
    """Two GPUs have threadblocks for more channels than there are, 13 for fewer."""
    problem = problem_of(1, gpus, collective)
    given = {"algorithm": "rails", "level": 0, "mode": "in-place", "protocol": "LL"}
    assert api.compile(problem, runtime, **given).verified
    if gpus == 13:
        with pytest.raises(LimitError, match="does not fit the threadblocks"):
            api.compile(problem, runtime, **given, instances=8)


@pytest.mark.parametrize(("runtime", "boxes"), [("msccl", 16), ("mscclpp@0.8", 17), ("rccl", 17)])
def test_sums_of_many_boxes_are_added_in_one_chain(runtime, boxes):
    """A chain of its own for some of them would add to a sum that still travels."""
    given = {"algorithm": "rails", "instances": 1, "level": 0, "mode": "in-place"}
    assert api.compile(problem_of(boxes, 2), runtime, **given).verified


def test_more_boxes_than_a_chain_adds_up_are_refused():
    with pytest.raises(InputError, match="sums of 16 boxes at most"):
        api.compile(problem_of(17, 2), "msccl", algorithm="rails", level=0)


@pytest.mark.parametrize("strategy", ["paired", "spread"])
@pytest.mark.parametrize(
    ("runtime", "boxes"), [("msccl", 2), ("rccl", 2), ("msccl", 3), ("mscclpp", 3)]
)
def test_one_shot_sends_whole_messages_in_two_hops(runtime, boxes, strategy):
    problem, target = problem_of(boxes), Target(profile(runtime), "LL", out_of_place=False)
    made = BuildRails(strategy=strategy, instances=2, shots=1).run(problem, target)
    sent = Counter()
    for transfer in made.transfers:
        if not transfer.is_local:
            sent[transfer.source, transfer.target] += transfer.count
    for source, sink in permutations(range(4 * boxes), 2):
        joined = source // 4 == sink // 4 or source % 4 == sink % 4
        assert sent[source, sink] == made.chunks * joined
    passes = f"build-rails{{strategy={strategy},instances=2,shots=1}}"
    passes += f",assign-threadblocks{{strategy={strategy}}},spell-dependencies"
    api.compile(problem, runtime, passes=passes, protocol="LL")  # verified


def test_one_shot_is_found_where_hops_take_most_of_the_time():
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=2), "allreduce")
    given = {"size": 1 << 12, "several": False}
    one = api.compile(problem, "msccl", **given)
    two = api.compile(problem, "msccl", **given, algorithm="rails", level=0, protocol="LL")
    assert one.summary()["settings"]["shots"] == 1
    assert one.predicted[0].seconds < 0.9 * two.predicted[0].seconds


def test_one_shot_needs_several_boxes():
    with pytest.raises(InputError, match="CS312") as refused:
        BuildRails(shots=1).run(problem_of(1), Target(profile("msccl")))
    assert "allpairs" in refused.value.diagnostic.help
