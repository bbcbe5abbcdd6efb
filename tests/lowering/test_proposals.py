"""What is proposed so that programs fill quickly: how many segments, and how large they are."""

from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.cost import default_model
from colsynth.lowering.proposals import (
    BY_LOAD,
    SUMS,
    orders,
    redealt,
    strategies,
    sums_in_one_go,
    unmerged,
)
from colsynth.lowering.segment_sizes import sizes_of
from colsynth.lowering.segmentations import (
    halves,
    ordered_by_time,
    segmentations,
    units,
    worthwhile,
)
from colsynth.runtimes import profile
from colsynth.runtimes.choice import Basis, Shape
from colsynth.runtimes.selection import usual_size
from colsynth.search.case import Case
from colsynth.search.measured import Limit
from colsynth.search.wish import Wish
from colsynth.search.workshop import Workshop

SEGMENTS, LAG = "lower-forest.segments", "order-transfers.lag"
STRATEGY = "assign-threadblocks.strategy"


def basis(collective, runtime, boxes, size=2**30):
    """Return what proposals see of a forest in round-robin order."""
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=boxes), collective)
    plan = Wish().start("forest").changed(BY_LOAD)
    (made,) = Workshop(Case(problem, runtime, (size,))).measure([(plan, Limit())])
    start = Wish().start("forest")
    return Basis(problem, profile(runtime), "Simple", size, made.shape, start.values())


def numbers(text):
    return list(map(int, text.split("-")))


@pytest.mark.parametrize("number", [1, 2, 5, 12])
@pytest.mark.parametrize(("rises", "falls"), [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_sizes_add_up_and_are_small_where_they_should_be(number, rises, falls):
    sizes = numbers(sizes_of(number, 7 * number, rises=rises, falls=falls))
    assert len(sizes) == number
    assert sum(sizes) == 7 * number
    assert max(sizes) <= 4 * min(sizes)
    half = number // 2
    if rises:
        assert sizes[:half] == sorted(sizes[:half])
    if falls:
        assert sizes[number - half :] == sorted(sizes[number - half :], reverse=True)


def test_sizes_by_hand():
    assert sizes_of(6, 32, rises=False, falls=True) == "8-7-6-5-4-2"
    assert sizes_of(6, 32, rises=True, falls=True) == "4-5-7-7-5-4"
    assert sizes_of(4, 16, rises=False, falls=False) == "4-4-4-4"


@pytest.mark.parametrize("rises", [False, True])
@pytest.mark.parametrize("falls", [False, True])
def test_chunks_are_divided_as_d_hondt_divides_seats(rises, falls):
    """The twin gives out all chunks but one for each segment, one after the other."""
    for number, total in ((n, total) for n in range(1, 12) for total in range(n, 9 * n, 3)):
        places = range(number)
        ends = [
            (place if rises else number, number - 1 - place if falls else number)
            for place in places
        ]
        sizes, inside = [1] * number, [min(pair) for pair in ends]
        for _ in range(total - number):
            claims = [Fraction(s + 1, 2 * x + number) for s, x in zip(sizes, inside, strict=True)]
            sizes[min(zip(claims, [-x for x in inside], places, strict=True))[-1]] += 1
        assert numbers(sizes_of(number, total, rises=rises, falls=falls)) == sizes


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_segments_are_ever_fewer_and_fit_the_file(runtime, collective):
    seen = basis(collective, runtime, 4)
    limits = profile(runtime)
    for proposal in segmentations(seen):
        counts = []
        for changes in proposal:
            sizes = numbers(changes[SEGMENTS])
            assert sum(sizes).bit_count() == 1  # else round messages do not use the file
            assert len(sizes) * seen.shape.gpu_steps < limits.max_steps * limits.max_threadblocks
            counts.append(len(sizes))
        assert counts == sorted(set(counts), reverse=True)
        assert counts


@pytest.mark.parametrize("size", [10**9 // 5**3, 3 * 2**20, 2**23])
@pytest.mark.parametrize("runtime", ["msccl", "mscclpp"])
def test_equal_segments_are_doubled_while_messages_divide_and_passing_on_takes_long(runtime, size):
    """With copies and threadblocks as they are."""
    seen, sizes = basis("allgather", runtime, 2, usual_size(size, "allgather", 16)), ["1"]
    assert not any(halves(replace(seen, size=2**12)))
    assert not any(halves(replace(seen, size=2**40)))  # the runtime cuts chunks itself
    assert not any(halves(replace(seen, shape=replace(seen.shape, height=1))))
    assert not any(halves(replace(seen, values={**seen.values, SEGMENTS: "1-2"})))
    assert not any(halves(replace(seen, values={SEGMENTS: "1"})))  # rounds
    while proposals := list(halves(seen)):
        sizes *= 2
        assert all(changes[SEGMENTS] == "-".join(sizes) for (changes,) in proposals)
        assert {len(changes) for (changes,) in proposals} == {2}  # the order besides
        assert seen.parts_of(seen.shape.chunks) % 2 == 0
        chunks, steps = 2 * seen.shape.chunks, 2 * seen.shape.block_steps
        shape = replace(seen.shape, chunks=chunks, block_steps=steps)
        seen = replace(seen, shape=shape, values={**seen.values, SEGMENTS: "-".join(sizes)})
    assert len(sizes) > 1


def test_threadblocks_of_plans_are_dealt_anew_once_trees_have_segments():
    """Between two strategies, and never where XML has no sums of several messages in a step."""
    for runtime in ("mscclpp", "msccl"):
        seen = basis("allreduce", runtime, 2, 2**22)
        assert seen.values[SEGMENTS] == "1"
        assert not any(redealt(seen))
        for strategy, other in {"spread": "balanced", "balanced": "spread"}.items():
            values = {**seen.values, SEGMENTS: "1-1", STRATEGY: strategy}
            found = [changes for (changes,) in redealt(replace(seen, values=values))]
            assert found == [{STRATEGY: other}] * (runtime == "mscclpp")
        for strategy in ("duplex", "paired", "scheduled"):
            values = {**seen.values, SEGMENTS: "1-1", STRATEGY: strategy}
            assert not any(redealt(replace(seen, values=values)))


def test_iterations_of_plans_cut_chunks_that_are_passed_on():
    for size in (2**14, 2**20, 2**26, 2**30):
        seen = basis("allgather", "mscclpp", 2, size)
        found = [changes["spell-dependencies.unit"] for (changes,) in units(seen)]
        chunk = size / seen.shape.chunks
        assert all(unit.bit_count() == 1 and chunk / 16 <= unit < chunk for unit in found)
        assert bool(found) == (chunk > 2**14)
        assert not any(units(replace(seen, shape=replace(seen.shape, height=1))))
    assert not any(units(basis("allgather", "msccl", 2, 2**26)))


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
def test_segments_divide_the_message(runtime):
    """Of 10^9 bytes too, which are 2^7 x 5^9 numbers: powers of two alone are soon too many."""
    seen = basis("allreduce", runtime, 2, 10**9)
    assert seen.parts % 2**5
    for changes in (c for proposal in segmentations(seen) for c in proposal):
        assert seen.parts % sum(numbers(changes[SEGMENTS])) == 0


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_scheduled_threadblocks_are_proposed_where_sums_are_steps_of_their_own(collective):
    def scheduled(seen):
        return [p for p in segmentations(seen) if p and p[0][STRATEGY] == "scheduled"]

    assert not scheduled(basis(collective, "msccl", 2))
    seen = basis(collective, "rccl", 2)
    found = scheduled(seen)
    rate = default_model(seen.profile).rate
    for row in found:
        assert {rate[changes["protocol"]] for changes in row} == {max(rate.values())}
        counts = [len(numbers(changes[SEGMENTS])) for changes in row]
        assert all(count.bit_count() == 1 for count in counts)
        assert counts == sorted(set(counts), reverse=True)
    assert list(strategies(seen)) == found
    thorough = list(strategies(replace(seen, thorough=True)))
    assert all(row in thorough for row in found)
    assert len(thorough) > len(found)
    known = {**seen.values, STRATEGY: "scheduled"}
    assert not list(strategies(replace(seen, values=known)))


def test_scheduled_threadblocks_take_the_protocols_that_suit_the_size():
    """The one that moves most for large messages, LL for short ones, several between."""

    def protocols(size):
        seen = replace(basis("allreduce", "rccl", 2, size), protocol="LL")
        return {c["protocol"] for row in ordered_by_time(seen) for c in row}

    assert protocols(2**30) == {"Simple"}
    assert protocols(2**23) == {"Simple", "LL128"}
    assert protocols(2**20) == {"LL"}


@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
def test_worthwhile_numbers_are_near_the_least_time_of_a_pipeline(runtime):
    """Against a twin that tries all numbers: the first is the fastest along the tallest tree."""
    for size in (2**20, 2**24, 2**28):
        seen = basis("allreduce", runtime, 2, size)
        model, shape = default_model(seen.profile), seen.shape
        moved = size / shape.trees / (model.rate["Simple"] * 1e3)

        def taken(number, hops=2 * shape.height, moved=moved, step=model.step["Simple"]):
            return (hops - 1 + number) * (moved / number + step)

        first, *others = worthwhile(seen, "Simple", 10**6)
        fastest = min(range(1, 4 * first), key=taken)
        assert first <= fastest <= first + 1
        assert sorted({first, *others}, reverse=True) == [first, *others]
        assert next(worthwhile(seen, "Simple", 3)) == min(3, first)


def test_where_a_step_moves_one_chunk_no_more_is_proposed_than_threadblocks_hold():
    assert profile("mscclpp").max_count == 1
    assert not any(segmentations(basis("allgather", "mscclpp", 2)))


def test_messages_of_few_bytes_are_not_cut():
    assert not any(segmentations(basis("allgather", "msccl", 2, 2**20)))


def test_rounds_are_for_sums_that_are_steps():
    """Only there are segments shared by threadblocks in pairs, of which a FIFO holds one."""
    for collective, runtime, found in (
        ("reduce-scatter", "rccl", True),
        ("allreduce", "rccl", True),
        ("allgather", "rccl", False),
        ("reduce-scatter", "msccl", False),
    ):
        proposals = [c for p in segmentations(basis(collective, runtime, 2)) for c in p]
        shared = [c for c in proposals if c[STRATEGY] == "paired"]
        assert bool(shared) == found
        for changes in shared:
            sizes = numbers(changes[SEGMENTS])
            assert max(sizes) <= profile(runtime).fifo_calls["Simple"]
            assert sizes == sizes[::-1]
            assert (changes[LAG] > 0) == (collective == "allreduce")


def test_segments_do_not_depend_on_the_instances_they_replace():
    once = basis("reduce-scatter", "rccl", 2)
    shape = replace(once.shape, gpu_steps=2 * once.shape.gpu_steps)
    twice = replace(once, shape=shape, values={**once.values, "lower-forest.instances": 2})
    rounds = [tuple(segmentations(some)) for some in (once, twice)]
    assert rounds[0] == rounds[1]
    assert {changes["lower-forest.instances"] for found in rounds[0] for changes in found} == {1}


def test_heavy_trees_may_send_every_chunk_by_itself():
    one = basis("allgather", "rccl", 1)
    light = replace(one, shape=replace(one.shape, weight=1, count=3))
    heavy = replace(light, shape=replace(light.shape, weight=3))
    proposed = [[*changes] for some in (light, heavy) for changes in unmerged(some)]
    merge, most = "coalesce-chunks.merge", "lower-forest.most"
    assert proposed == [[{merge: 1}], [{merge: 1}], [{most: 1, merge: 1}]]


def test_nothing_is_proposed_where_nobody_passes_data_on():
    flat = Shape(8, 8, 56, 14, 1, 14, 1, trees=8, trees_per_gpu=1, height=1, weight=1)
    problem = api.make_problem(api.load_topology("dgx-a100"), "allgather")
    values = Wish().start("forest").values()
    seen = Basis(problem, profile("msccl"), "Simple", 2**30, flat, values)
    assert list(segmentations(seen)) == []
    assert list(orders(seen)) == []


@pytest.mark.parametrize("name", ["dgx-1v", "dgx-h100", "dgx2", "gb200-nvl72:24"])
def test_spread_sums_fit_the_resident_threadblocks(name):
    """Connections and sums of all channels, in numbers of chunks that calls divide by."""
    preset, _, gpus = name.partition(":")
    machine = api.load_topology(preset, settings={"gpus": gpus} if gpus else {})
    problem = api.make_problem(machine, "reduce-scatter")
    shape = Shape(1, machine.size, 1, 1, 1, 1, 1, trees=machine.size, height=1, rises=True)
    runtime, size = profile("msccl"), usual_size(2**20, problem.collective, machine.size)
    seen = Basis(problem, runtime, "Simple", size, shape, {SUMS: "running"})
    plans = [plan for (plan,) in sums_in_one_go(seen) if plan[SUMS] == "by-chunk"]
    for plan in plans:
        channels, sums = plan["lower-forest.instances"], int(plan["lower-forest.segments"])
        assert channels * (2 * (machine.size - 1) + sums) <= runtime.resident_threadblocks
        assert (channels * sums).bit_count() == 1
    numbers = [plan["lower-forest.instances"] for plan in plans]
    assert numbers == ([1] if machine.size == 24 else [numbers[0], numbers[0] // 2])
