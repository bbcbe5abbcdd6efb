"""Rails for large messages: in several calls, allgathers, and an allreduce in two halves."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.cost import default_model
from colsynth.errors import InputError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.hops import Hops
from colsynth.search.wish import Wish
from colsynth.synthesis.baselines.build_rails import BuildRails
from colsynth.synthesis.baselines.rails_numbers import best_calls
from tests.synthesis.baselines import reading as switches

RUNTIMES = ("msccl", "rccl")


def problem_of(boxes, collective):
    return api.make_problem(api.load_topology("mi300x", nodes=boxes), collective)


def seconds(problem, runtime, size, options=None):
    """Return what the search finds, or the predicted time of rails with some options."""
    given = {"size": size, "several": False, "protocol": "Simple"}
    if options is not None:
        given |= {"level": 0, "passes": f"build-rails{{strategy=shared{options}}}"}
        given["passes"] += ",assign-threadblocks{strategy=shared},spell-dependencies"
    done = api.compile(problem, runtime, **given)
    assert done.verified
    return done.predicted[-1].seconds


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("protocol", ["Simple", "LL", "LL128"])
@pytest.mark.parametrize("chunks", [1, 12])
@pytest.mark.parametrize(("relayed", "most"), [(False, 1), (False, 1.03), (True, 1.12)])
def test_no_fewer_calls_are_about_as_fast_between_two_threadblocks(
    runtime, protocol, relayed, most, chunks
):
    """A step moves a tile of each of its chunks before its receiver goes on."""
    target = Target(profile(runtime), protocol)
    model, tile = default_model(target.profile), target.profile.tile_bytes[protocol]

    def alone(size, calls):
        rate, call = model.rate[protocol] * 1e9, min(size / calls, tile * max(1, chunks / calls))
        begins = max(call / model.slices[protocol], model.least_slice[protocol])
        begins = call if relayed else min(call, begins)
        spent = max(calls, size / tile) * model.step[protocol] / 1e6
        return spent + (begins + size) / rate

    taken = []
    for power in range(10, 28):
        calls = best_calls(Fraction(1 << power), chunks, target, relayed=relayed, enough=most)
        least = min(alone(1 << power, number) for number in (1, 2, 4, 8, 16, 32))
        assert alone(1 << power, calls) <= most * least * (1 + 1e-9)
        assert calls == 1 or alone(1 << power, calls // 2) > most * least
        taken.append(calls)
    assert taken[0] == 1
    assert protocol != "Simple" or max(taken) > 4


@pytest.mark.parametrize(
    ("boxes", "collective"),
    [(1, "allreduce"), (2, "reduce-scatter"), (1, "allgather"), (2, "allgather")],
)
def test_calls_of_large_messages_gain(boxes, collective):
    problem, size = problem_of(boxes, collective), 64 << 20
    one, several = (seconds(problem, "rccl", size, calls) for calls in (",calls=1", ""))
    assert several < one / 1.15
    assert seconds(problem, "rccl", size) <= several * (1 + 1e-9)


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
@pytest.mark.parametrize("size", [None, 1 << 24])
def test_channels_need_not_divide_pieces(collective, size):
    """RCCL's threadblocks suffice for three channels between four boxes, of a power of two."""
    problem = problem_of(4, collective)
    program = BuildRails(strategy="shared", shards="gpu").run(
        problem, Target(profile("rccl"), size=size)
    )
    assert program.chunks & (program.chunks - 1) == 0
    moved = Counter()
    for t in program.transfers:
        if t.source == 0 and t.target == 1:
            moved[t.origin.instance] += t.count
    assert len(moved) == 3
    assert 5 * max(moved.values()) <= 6 * min(moved.values())
    given = {"size": size, "several": False, "level": 0}
    passes = "build-rails{strategy=shared,shards=gpu},assign-threadblocks{strategy=shared}"
    assert api.compile(problem, "rccl", passes=f"{passes},spell-dependencies", **given).verified


@pytest.mark.parametrize(("channels", "segments"), [(3, 1), (9, 1), (3, 2)])
def test_channels_that_are_asked_for_are_there(channels, segments):
    """Though threadblocks suffice for one piece of each part, and a GPU for another one's shard."""
    machine = api.damage(api.load_topology("mi300x", nodes=2), gpus=["gpu0.3"]).topology
    problem = api.make_problem(machine, "reduce-scatter")
    given = {"instances": channels, "segments": segments}
    for options in (given, given | {"strategy": "spread"}):
        program = BuildRails(**options).run(problem, Target(profile("rccl")))
        used = {t.origin.instance for t in program.transfers if t.source != t.target}
        assert used == set(range(channels))


def test_shards_of_rails_are_faster_where_hops_count():
    """Their channels are one after the other, so what is left of one is not what is left of all."""
    problem = api.make_problem(api.load_topology("dgx-h100", nodes=2), "allreduce")
    given = {"size": 1 << 21, "several": False, "protocol": "LL128", "level": 0}
    rail, gpu = (
        api.compile(
            problem,
            "msccl",
            passes=f"build-rails{{strategy=shared,shards={shards}}},"
            "assign-threadblocks{strategy=shared},spell-dependencies",
            **given,
        )
        for shards in ("rail", "gpu")
    )
    assert rail.predicted[-1].seconds < gpu.predicted[-1].seconds / 1.05


def test_threadblocks_that_move_little_add_up_most():
    """Between four boxes, those with peers in other boxes carry a quarter as much."""
    problem, given = problem_of(4, "reduce-scatter"), {"size": 1 << 26, "several": False}
    passes = "build-rails{strategy=shared},assign-threadblocks{strategy=shared},spell-dependencies"
    done = api.compile(problem, "rccl", passes=passes, level=0, protocol="Simple", **given)
    home = problem.topology.gpu_boxes
    sums, blocks = Counter(), Counter()
    for rank, gpu in enumerate(done.artefacts[0].program.gpus):
        for block in gpu.threadblocks:
            peers = {block.send, block.recv} - {None}
            far = any(home[peer] != home[rank] for peer in peers)
            blocks[far] += 1
            sums[far] += sum(step.op == "re" for step in block.steps)
    assert sums[True] / blocks[True] > 1.5 * sums[False] / blocks[False]


@pytest.mark.parametrize("size", [1 << 24, 1 << 28, 1 << 30])
@pytest.mark.parametrize(
    ("machine", "boxes", "form"),
    [
        ("mi300x", 2, "shards=gpu"),
        ("mi300x", 4, "shards=gpu"),
        ("gb200-nvl72:20", 1, "calls=0"),
        ("gb200-nvl72:24", 1, "calls=0"),
        ("gb200-nvl72:12", 2, "shards=gpu"),
    ],
)
def test_there_are_steps_for_all_pieces_and_calls(machine, boxes, form, size):
    """RCCL has 64 for each threadblock, of which a sum of 24 takes 47: none is refused."""
    name, _, gpus = machine.partition(":")
    machine = api.load_topology(name, nodes=boxes, settings={"gpus": gpus} if gpus else {})
    given = {"size": size, "several": False, "protocol": "Simple", "level": 0}
    passes = f"build-rails{{strategy=shared,{form}}},assign-threadblocks{{strategy=shared}}"
    problem = api.make_problem(machine, "allreduce")
    done = api.compile(problem, "rccl", passes=f"{passes},spell-dependencies", **given)
    assert done.verified
    steps = [len(b.steps) for gpu in done.artefacts[0].program.gpus for b in gpu.threadblocks]
    assert max(steps) <= profile("rccl").max_steps


@pytest.mark.parametrize("calls", [1, 3])
def test_a_part_is_sent_in_calls_of_about_as_many_pieces(calls):
    problem, target = problem_of(2, "reduce-scatter"), Target(profile("rccl"))
    form = {"instances": 1, "pieces": 8, "strategy": "shared"}
    program = BuildRails(**form, calls=calls).run(problem, target)
    counts = Counter(one.count for one in program.transfers if not one.is_local)
    assert {*counts} == ({8} if calls == 1 else {3, 2})
    assert max(counts) - min(counts) <= 1
    whole = BuildRails(**form, calls=1).run(problem, target)
    for local in (False, True):
        moved = [sum(t.count for t in x.transfers if t.is_local is local) for x in (program, whole)]
        assert moved[0] == moved[1]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("boxes", [2, 3])
def test_with_a_shard_for_each_gpu_data_changes_boxes_once_in_each_half(runtime, boxes):
    problem = problem_of(boxes, "allreduce")
    program = BuildRails(shards="gpu").run(problem, Target(profile(runtime)))
    box = problem.topology.gpu_boxes
    crossing: Counter[tuple[int, ...]] = Counter()
    each = program.chunks * (boxes - 1)
    for one in program.transfers:
        if box[one.source] != box[one.target]:
            half = one.origin.phase == 2
            assert one.source % 8 == one.target % 8
            crossing.update((half, box[one.target], one.chunk + c) for c in range(one.count))
    for second in (False, True):
        assert sum(n for (half, *_), n in crossing.items() if half is second) == each
    assert {n for (half, *_), n in crossing.items() if half} == {1}


@pytest.mark.parametrize(("size", "gain"), [(16 << 20, 1.2), (1 << 30, 1.1)])
def test_halves_are_faster_than_rails_and_than_one_after_the_other(size, gain):
    halves, rails = (
        seconds(problem_of(2, "allreduce"), "rccl", size, f",shards={shards}")
        for shards in ("gpu", "rail")
    )
    assert halves < rails / gain
    assert halves < sum(
        seconds(problem_of(2, half), "rccl", size, "") for half in ("reduce-scatter", "allgather")
    )


@pytest.mark.parametrize("size", [16 << 20, 1 << 30])
def test_the_search_finds_what_is_no_slower_than_halves(size):
    problem = switches.problem_of(2)
    halves = seconds(problem, "rccl", size, ",shards=gpu")
    assert seconds(problem, "rccl", size) <= halves * (1 + 1e-9)


@pytest.mark.parametrize(("boxes", "size"), [(1, 64 << 20), (2, 1 << 20), (2, 16 << 20)])
def test_an_allgather_finds_rails(boxes, size):
    """Trees take 281, 37 and 109 us: their GPUs wait for whole messages."""
    problem = problem_of(boxes, "allgather")
    given = {"size": size, "several": False}
    found, trees = (
        api.compile(problem, "rccl", **given, algorithm=name) for name in (None, "forest")
    )
    assert found.algorithm == "rails"
    assert found.predicted[-1].seconds < trees.predicted[-1].seconds / 1.1


@pytest.mark.parametrize("boxes", [2, 3])
def test_shards_of_an_allgather_change_boxes_once(boxes):
    """Each on its rail, before those of the GPU's own box are sent to it."""
    problem = problem_of(boxes, "allgather")
    program = BuildRails(instances=1, pieces=1).run(problem, Target(profile("rccl")))
    home = problem.topology.gpu_boxes
    far = [(t.source, t.target) for t in program.transfers if home[t.source] != home[t.target]]
    assert len(far) == len(set(far)) == 8 * boxes * (boxes - 1)
    assert all((a - b) % 8 == 0 for a, b in far)
    assert all(home[t.source] != home[t.target] for t in program.transfers[: len(far)])


@pytest.mark.parametrize(("mode", "copies"), [("in-place", 0), ("out-of-place", 8), ("auto", 8)])
def test_gpus_copy_their_own_shards_where_calls_need_it(mode, copies):
    passes = "build-rails{instances=1,pieces=1},assign-threadblocks,spell-dependencies"
    given = {"passes": passes, "level": 0, "mode": mode, "several": False}
    done = api.compile(problem_of(1, "allgather"), "rccl", **given)
    gpus = done.artefacts[0].program.gpus
    blocks = [block for gpu in gpus for block in gpu.threadblocks]
    assert sum(step.op == "cpy" for block in blocks for step in block.steps) == copies


def test_shards_of_gpus_ask_for_rails_of_all():
    """A GPU without a NIC has nobody to send its sum to, or its shard of an allgather."""
    machine = api.damage(api.load_topology("mi300x", nodes=2), nics=["nic0.3"]).topology
    problem = api.make_problem(machine, "allreduce")
    with pytest.raises(InputError, match="CS312"):
        BuildRails(shards="gpu").run(problem, Target(profile("rccl")))
    with pytest.raises(InputError, match="CS312"):
        BuildRails().run(api.make_problem(machine, "allgather"), Target(profile("rccl")))
    assert BuildRails().run(problem, Target(profile("rccl"))).transfers
    tried = [plan.option("shards") for plan in variants(problem)]
    assert "gpu" not in tried
    assert "gpu" in [plan.option("shards") for plan in variants(problem_of(2, "allreduce"))]


def variants(problem):
    case = Case(problem, "rccl", (1 << 24,))
    return Wish().variants("rails", case, Hops(dominate=False, one_more=True))


@pytest.mark.parametrize("shards", ["both", 3])
def test_shards_are_of_rails_or_of_gpus(shards):
    with pytest.raises(InputError, match="CS210"):
        BuildRails(shards=shards)
