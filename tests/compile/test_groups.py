"""Which machines a file of process groups is for, and what it is to each of them."""

import re

import pytest

from colsynth.api import compile as compile_
from colsynth.api import damage, load_topology, make_problem
from colsynth.compile.groups import group_notes, machine_of, machines_of
from colsynth.errors import LimitError
from colsynth.runtimes import Target
from colsynth.runtimes.catalog import profile

RCCL = profile("rccl")
BOXES = load_topology("dgx-a100", nodes=2)


def asked(groups, topology=BOXES, **more):
    return make_problem(topology, "allgather", groups=groups, **more)


def test_every_group_is_a_machine_of_its_own():
    first, second = machines_of(asked([[0, 1], [9, 8]]), RCCL)
    assert (first.old_ranks, second.old_ranks) == ((0, 1), (9, 8))
    everybody = make_problem(BOXES, "allgather")
    assert machine_of(everybody, RCCL) == everybody


@pytest.mark.parametrize(
    ("groups", "transit", "words"),
    [
        ([[0, 1]], True, "only ranks of the communicator"),
        ([[0, 1], [7, 8]], False, "in one box, and others are not"),
    ],
)
def test_what_no_file_serves_is_refused(groups, transit, words):
    with pytest.raises(LimitError, match=words) as caught:
        machines_of(asked(groups, transit=transit), RCCL)
    assert caught.value.diagnostic.code == "CS404"


def test_one_machine_is_not_several():
    with pytest.raises(LimitError, match="one process group, and there are 2"):
        machine_of(asked([[0, 1], [2, 3]]), RCCL)


def test_notes_are_about_groups_beside_the_first():
    halves = asked([range(8), range(8, 16)])
    done = compile_(halves, "rccl")
    program = done.artefacts[0].program
    assert program.header.ranks == 8
    assert group_notes(halves, program, Target(RCCL)) == (
        "one file for 2 groups, as fast on each as on 0-7",
    )
    assert group_notes(asked([range(8)]), program, Target(RCCL)) == ()


def slow_in_the_second(machine, link, *groups):
    """Compile an allgather for groups; a link of the second keeps a tenth of its bandwidth."""
    broken = damage(load_topology(machine), degraded=[f"{link}=10%"]).topology
    return compile_(make_problem(broken, "allgather", groups=groups), "rccl")


def test_a_file_of_its_own_is_not_advised_where_no_file_is_faster():
    """No file makes up for the link of the second pair."""
    first, second = (0, 1), (2, 3)
    pair = slow_in_the_second("ring:4", "gpu2-gpu3", first, second)
    (note,) = (note for note in pair.notes if "made for" in note)
    told = re.search(r"take (.*) times as long at 1 GiB, and any other .* least (.*) times", note)
    times, least = map(float, told.groups())
    alone = [slow_in_the_second("ring:4", "gpu2-gpu3", pair).predicted for pair in (first, second)]
    ratio = alone[1][-1].seconds / alone[0][-1].seconds
    assert least <= times <= 1.1 * least
    assert least <= ratio + 0.01


def test_a_file_of_its_own_is_advised_where_it_can_be_faster():
    """A file of its own sends less over the slow one of six links."""
    both = slow_in_the_second("clique:8", "gpu4-gpu5", range(4), range(4, 8))
    (note,) = (note for note in both.notes if "made for" in note)
    told = re.search(r"take (.*) times as long at 1 GiB: compile that --group by itself", note)
    first, second = (
        slow_in_the_second("clique:8", "gpu4-gpu5", group).predicted[-1].seconds
        for group in (range(4), range(4, 8))
    )
    assert second < 0.9 * float(told[1]) * first


DUMBBELL = """
version: 1
name: dumbbell
nodes:
  - {name: s, kind: switch}
  - {name: t, kind: switch}
  - {name: a, kind: gpu, box: 0}
  - {name: b, kind: gpu, box: 0}
  - {name: c, kind: gpu, box: 1}
  - {name: d, kind: gpu, box: 1}
links:
  - {from: a, to: s, bandwidth: 20 GB/s}
  - {from: b, to: s, bandwidth: 20 GB/s}
  - {from: c, to: t, bandwidth: 20 GB/s}
  - {from: d, to: t, bandwidth: 20 GB/s}
  - {from: s, to: t, bandwidth: 12 GB/s}
"""


@pytest.mark.parametrize(
    ("collective", "said"),
    [
        ("allgather", "12 GB/s at most, 50.00 % less than each alone"),
        ("allreduce", "6 GB/s at most by reduce-scatter and allgather, 50.00 % less than each"),
    ],
)
def test_what_groups_lose_to_each_other_is_told(collective, said, tmp_path):
    """Two pairs that both need the link between two switches."""
    path = tmp_path / "dumbbell.yaml"
    path.write_text(DUMBBELL)
    problem = make_problem(load_topology(str(path)), collective, groups=[[0, 2], [1, 3]])
    notes = " ".join(compile_(problem, "rccl").notes)
    assert "one file for 2 groups, as fast on each as on 0,2" in notes
    assert f"at the same time groups reach {said}" in notes
