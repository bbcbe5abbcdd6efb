"""Problems as users ask for them."""

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.model import Collective, Demand

RING = api.load_topology("ring:8")
HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))


def test_a_plain_problem():
    problem = api.make_problem(RING, "alltoall")
    assert (problem.collective, problem.root, problem.groups) == (Collective.ALLTOALL, None, ())
    assert problem.members == (tuple(range(8)),)


def test_groups_and_transit():
    problem = api.make_problem(RING, "allgather", groups=HALVES, transit=True)
    assert (problem.groups, problem.transit) == (HALVES, True)


def test_a_group_of_everybody_is_the_plain_problem():
    everybody = api.make_problem(RING, "allgather", groups=[range(8)], transit=True)
    assert everybody == api.make_problem(RING, "allgather")


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "scatter", "gather"])
def test_the_root_is_a_place_in_every_group(collective):
    assert api.make_problem(RING, collective).root == 0
    assert api.make_problem(RING, collective, 7).root == 7
    assert api.make_problem(RING, collective, 3, groups=HALVES).root == 3
    with pytest.raises(InputError, match="no group has a member 4") as caught:
        api.make_problem(RING, collective, 4, groups=HALVES)
    assert caught.value.diagnostic.code == "CS211"


def test_a_collective_of_one_s_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nchunks: [{held-by: [gpu0], wanted-by: [5], count: 2}]\n")
    for name in (None, "custom"):
        problem = api.make_problem(RING, name, custom=path)
        assert problem.collective is Collective.CUSTOM
        assert problem.demands == (Demand((0,), (5,), 2),)


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"collective": None}, "which collective"),
        ({"collective": "custom"}, "described by a file"),
        ({"collective": "allgather", "custom": "x.yaml"}, "both name the collective"),
        ({"collective": None, "custom": "x.yaml", "root": 0}, "--root does not go with"),
        ({"collective": None, "custom": "x.yaml", "groups": HALVES}, "--groups does not go with"),
        ({"collective": None, "custom": "x.yaml", "transit": True}, "--transit does not go with"),
        ({"collective": "allgather", "transit": True}, "--transit is about GPUs outside a group"),
    ],
)
def test_options_that_do_not_go_together(options, phrase):
    with pytest.raises(InputError, match=phrase) as caught:
        api.make_problem(RING, **options)
    assert caught.value.diagnostic.code == "CS217"


def test_a_mistyped_collective():
    with pytest.raises(InputError, match="did you mean 'scatter'"):
        api.make_problem(RING, "scater")
