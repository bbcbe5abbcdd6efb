"""Two binary trees over the same places, each place a leaf of one of them at least."""

from collections import Counter

import pytest

from colsynth.synthesis.baselines.double_tree import double_tree, hung
from tests.each import each


def depth(tree, place):
    above = tree[place]
    return 0 if above is None else 1 + depth(tree, above)


def interior(tree):
    return {above for above in tree if above is not None}


@each("size", range(1, 40))
def test_both_are_binary_trees_of_logarithmic_depth(size):
    for tree in double_tree(size):
        assert len(tree) == size
        assert tree.count(None) == 1
        assert max(Counter(above for above in tree if above is not None).values(), default=0) <= 2
        assert max(depth(tree, place) for place in range(size)) <= size.bit_length()


@each("size", range(1, 40))
def test_nobody_passes_data_on_in_both(size):
    first, second = double_tree(size)
    assert not interior(first) & interior(second)


@pytest.mark.parametrize("size", range(2, 20))
def test_a_given_root_is_above_both(size):
    for root in range(size):
        first, second = hung(root, size)
        assert first[root] is second[root] is None
        assert first.count(None) == second.count(None) == 1
        assert interior(first) & interior(second) == {root}
        assert max(depth(first, place) for place in range(size)) <= 1 + size.bit_length()


def test_the_trees_of_four_places_are_those_of_the_book():
    assert double_tree(4) == ((None, 2, 0, 2), (1, 3, 1, None))
