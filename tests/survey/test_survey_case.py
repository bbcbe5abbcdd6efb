from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.errors import InputError, LimitError
from colsynth.survey import SurveyCase
from colsynth.survey.survey_case import examine
from colsynth.topology import load
from colsynth.topology.damage import Failures
from colsynth.topology.failure_text import read_failures

RING = load("ring:4")


def case(collective="allgather", topology=RING, root=None, **options):
    return SurveyCase(api.make_problem(topology, collective, root), ("links",), **options)


def found(asked, **texts):
    return examine(asked, read_failures(asked.problem.topology, **texts))


def test_a_failure_has_the_bound_and_the_schedule_of_what_is_left():
    asked = case("allreduce")
    done = found(asked, links=["gpu0-gpu1"])
    left = api.make_problem(api.damage(RING, links=["gpu0-gpu1"]).topology, "allreduce")
    assert done.row.failure == "gpu0-gpu1"
    assert done.row.bound == api.allreduce_bound(left).algbw == done.row.algbw
    assert done.row.refusal is None
    expected = api.compile(left, "msccl", algorithm="forest")
    assert done.files == tuple((item.name, item.data) for item in expected.artefacts)
    assert all(api.verify(data, "msccl", subject=name).ok for name, data in done.files)


def test_the_bottleneck_is_that_of_what_is_left():
    cut = found(case(), links=["gpu0-gpu1"]).row.bottleneck
    assert (cut.way, cut.bandwidth) == ("into", 50 * 10**9)
    assert cut.sets in ((("gpu0",),), (("gpu1",),))


def test_gpus_that_are_cut_off_leave_nothing():
    row = found(case(), links=["gpu0-gpu1", "gpu0-gpu3"]).row
    assert (row.bound, row.algbw, row.bottleneck) == (Fraction(0), None, None)
    assert row.refusal == "CS302: the failures cut gpu0 off from the other GPUs"
    assert row.ranks == 4


def test_the_root_stays_the_same_gpu():
    asked = case("broadcast", root=2)
    row = found(asked, gpus=["gpu0"]).row
    left = api.damage(RING, gpus=["gpu0"]).topology
    assert row.bound == api.bound(api.make_problem(left, "broadcast", 1)).algbw
    assert row.ranks == 3
    gone = found(asked, gpus=["gpu2"]).row
    assert (gone.refusal, gone.bound) == ("CS211: the root itself is gone", 0)


def test_a_schedule_that_does_not_fit_is_a_refusal_beside_its_bound():
    row = found(case(algorithm="ring"), links=["gpu0-gpu1"]).row
    assert row.refusal.startswith("CS312: ")
    assert row.bound == Fraction(200, 3) * 10**9
    assert row.algbw is None


def test_timed_schedules_have_a_bandwidth_too():
    row = found(case("alltoall", algorithm="ten", runtime="rccl"), links=["gpu0-gpu1"]).row
    assert 0 < row.algbw <= row.bound == 50 * 10**9
    assert row.trees_per_gpu is None


@pytest.mark.parametrize(
    ("options", "error", "code"),
    [
        ({"algorithm": "rings"}, InputError, "CS213"),
        ({"runtime": "nccl"}, InputError, "CS501"),
        ({"trees": "0"}, InputError, "CS210"),
        ({"trees": "2", "algorithm": "ring"}, InputError, "CS217"),
        ({"protocol": "Fast"}, InputError, "CS213"),
        ({"collective": "scatter"}, LimitError, "CS220"),
    ],
)
def test_options_that_no_failure_would_make_right_are_refused_at_once(options, error, code):
    with pytest.raises(error) as caught:
        case(**options).check()
    assert caught.value.diagnostic.code == code


def test_a_collective_without_trees_is_refused_on_the_healthy_topology():
    with pytest.raises(InputError, match="trees cannot serve alltoall"):
        examine(case("alltoall"), Failures())


def test_equal_questions_have_equal_identities_and_others_have_not():
    asked = case()
    assert asked.identity() == case().identity()
    others = [
        case("allreduce"),
        case(topology=load("ring:5")),
        replace(asked, kinds=("gpus",)),
        replace(asked, runtime="rccl"),
        replace(asked, trees="2"),
        replace(asked, seed=1),
    ]
    assert len({asked.identity(), *(other.identity() for other in others)}) == 1 + len(others)
