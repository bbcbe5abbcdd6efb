"""Rounded forests are forests, of a power of two chunks, and hardly slower."""

from collections import Counter
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.lowering.lower_forest import LowerForest
from colsynth.lowering.round_weights import TOLERANCE, RoundWeights, parts_of, rounded, roundings
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes import Target, profile
from colsynth.verify import check_forest

TARGET = Target(profile("msccl"))
CASES = [
    ("dgx-1v", "allgather", "pack-trees{trees=6}", 8),
    ("ndv2", "allreduce", "pack-trees{trees=6}", 32),
    ("mi250", "reduce-scatter", "pack-trees{trees=3}", 8),
    ("mi300x", "broadcast", "pack-trees{trees=7}", 256),
    ("mesh:3x3", "allreduce", "pack-roots", 64),
    ("clique:5", "broadcast", "pack-trees{trees=4}", 4),
]


def packed(machine, collective, packer):
    root = 0 if collective == "broadcast" else None
    problem = api.make_problem(api.load_topology(machine), collective, root)
    return Pipeline.from_text(packer).run(problem, TARGET)


@pytest.mark.parametrize(("machine", "collective", "packer", "parts"), CASES)
def test_weights_add_up_to_the_least_power_of_two_that_is_fast_enough(
    machine, collective, packer, parts
):
    forest = packed(machine, collective, packer)
    found = RoundWeights().run(forest, TARGET)
    assert parts_of(found) == parts
    assert found.algbw >= forest.algbw * (1 - TOLERANCE)
    for coarser in roundings(forest, TOLERANCE)[:-1]:
        assert coarser.algbw < forest.algbw * (1 - TOLERANCE)


@pytest.mark.parametrize(("machine", "collective", "packer", "_"), CASES)
def test_every_rounding_proves_itself(machine, collective, packer, _):
    """The certificate adds up weights, links and the rate once more."""
    forest = packed(machine, collective, packer)
    found = roundings(forest, Fraction(0))
    for one in found:
        check_forest(one)
        assert parts_of(one).bit_count() == 1
        assert one.algbw <= forest.bound.algbw
    rates = [one.algbw for one in found]
    assert rates == sorted(rates)


@pytest.mark.parametrize(("parts", "expected"), [(3, 3), (20, 4), (50, 5), (2, 2), (7, 7), (0, 4)])
def test_weights_add_up_to_what_divides_a_message(parts, expected):
    """Three trees do where they can; of fewer parts, one tree is left out."""
    three = packed("mi250", "allgather", "pack-trees{trees=3}")
    found = roundings(three, Fraction(1), parts)[-1]
    check_forest(found)
    assert parts_of(found) == expected


def test_no_weight_is_further_than_one_from_its_share():
    forest = packed("mi300x", "broadcast", "pack-trees{trees=7}")
    weights = [tree.weight for tree in rounded(forest, 32).phases[0].trees]
    assert Counter(weights) == {4: 3, 5: 4}


def test_trees_beyond_the_parts_are_left_out():
    forest = packed("mi300x", "broadcast", "pack-trees{trees=7}")
    found = rounded(forest, 4)
    check_forest(found)
    assert [tree.weight for tree in found.phases[0].trees] == [1] * 4


def test_weights_stay_where_asked_or_where_nothing_is_to_round():
    three = packed("mi250", "allgather", "pack-trees{trees=3}")
    assert RoundWeights("keep").run(three, TARGET) is three
    four = packed("mi250", "allgather", "pack-trees{trees=4}")
    assert RoundWeights().run(four, TARGET) is four
    with pytest.raises(InputError):
        RoundWeights(0)


def test_wide_trees_travel_in_segments_of_so_many_chunks():
    forest = rounded(packed("mi300x", "broadcast", "pack-trees{trees=7}"), 32)
    for most in (1, 2, 3):
        program = LowerForest(most=most).run(forest, TARGET)
        assert program.chunks == 32
        assert max(t.count for t in program.transfers) == most
        moved = Counter()
        for t in program.transfers:
            moved[t.target] += t.count
        assert set(moved.values()) == {32}
        segments = {(t.origin.tree, t.origin.segment, t.target) for t in program.transfers}
        assert len(segments) == len(program.transfers)
