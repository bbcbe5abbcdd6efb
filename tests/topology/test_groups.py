import numpy as np
import pytest

from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.topology.groups import check_groups, read_groups

RING = load("ring:8")


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("0-3", ((0, 1, 2, 3),)),
        ("0-1,6-7", ((0, 1, 6, 7),)),
        (" 5, 2 ,3-3", ((5, 2, 3),)),
        ("3,0-2", ((3, 0, 1, 2),)),
    ],
)
def test_ranks_keep_their_order(text, groups):
    assert read_groups(text, "--group", RING) == groups


def test_several_groups():
    assert read_groups("0-1;7,2", "--groups", RING) == ((0, 1), (7, 2))


@pytest.mark.parametrize(
    ("option", "text", "column"),
    [
        ("--group", "0-1,x", 5),
        ("--group", "0,, 1", 3),
        ("--group", "", 1),
        ("--group", "3-1", 1),
        ("--group", "-1", 1),
        ("--group", "0, 1-", 4),
        ("--group", "0-1;2-3", 4),
        ("--group", "0-999999999", 1),
        ("--groups", "0-1;2-3;", 9),
        ("--groups", "0-1;2-z", 5),
        ("--group", "0-1, 5-8", 6),
        ("--groups", "0-1;2,1", 7),
    ],
)
def test_what_is_no_group_is_named_with_its_column(option, text, column):
    with pytest.raises(InputError) as caught:
        read_groups(text, option, RING)
    found = caught.value.diagnostic
    assert (found.code, found.span.file, found.span.column) == ("CS216", option, column)


@pytest.mark.parametrize(
    ("groups", "phrase"),
    [
        ([[0, 8]], "there is no rank 8"),
        ([[0, 1, 0]], "rank 0 is named twice"),
        ([[0, 1], [1, 2]], "rank 1 is named twice"),
        ([[0]], "a group needs two ranks or more"),
        ([], "a group needs two ranks or more"),
        ([[0, 1], [2, 3, 4]], "group 1 has 2 ranks, group 2 has 3"),
        ([[0, 1.5]], "1.5 is no rank"),
        ([["0", "1"]], "'0' is no rank"),
        ([[0, None]], "None is no rank"),
        ([[0, True]], "True is no rank"),
        ([0, 1], "0 is no group"),
        (["01"], "'01' is no group"),
    ],
)
def test_groups_that_cannot_be(groups, phrase):
    with pytest.raises(InputError, match=phrase) as caught:
        check_groups(groups, RING)
    assert caught.value.diagnostic.code == "CS216"


def test_one_group_of_all_ranks_in_order_is_no_group():
    assert check_groups([range(8)], RING) == ()
    assert check_groups([[1, 0, *range(2, 8)]], RING) == ((1, 0, 2, 3, 4, 5, 6, 7),)


def test_ranks_of_numpy_become_those_of_python():
    groups = check_groups(np.array([[0, 1], [7, 2]]), RING)
    assert groups == ((0, 1), (7, 2))
    assert {type(rank) for group in groups for rank in group} == {int}
