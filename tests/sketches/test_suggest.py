"""Proposals are sketches that fit: they are read again, and their symmetries hold."""

from itertools import pairwise

import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.errors import InputError
from colsynth.sketches.read import decode_sketch
from colsynth.sketches.suggest import suggest
from colsynth.topology import load

MACHINES = {
    "dgx2": (2, {"relays": 2, "all": 2}),
    "ndv2": (2, {"relays": 8, "all": 4}),
    "mi250": (2, {"rails": 8, "all": 4}),
    "dgx-a100": (3, {"rails": 1, "all": 1}),
    "torus:4x4": (None, {"box": 1}),
    "mesh:3x3": (None, {"box": 3}),
}
"""Number of boxes, and how many kinds of GPUs the symmetries of each proposal leave."""


def kinds(sketch, ranks):
    """Return how many GPUs differ from each other whatever symmetry is used."""
    least = list(range(ranks))
    for _ in range(ranks):
        for image in sketch.symmetries:
            for rank, other in enumerate(image):
                least[rank] = least[other] = min(least[rank], least[other])
    return len(set(least))


@pytest.mark.parametrize("name", MACHINES)
def test_proposals_are_read_as_they_are_printed(name):
    boxes, expected = MACHINES[name]
    topology = load(name, nodes=boxes)
    found = suggest(topology)
    assert [x.name for x in found] == list(expected)
    for proposal in found:
        read = decode_sketch(proposal.text.encode(), proposal.name, topology)
        assert read.sketch.symmetries == proposal.sketch.symmetries
        assert read.notes == ()
    assert {x.name: kinds(x.sketch, topology.size) for x in found} == expected


def test_a_written_proposal_guides_a_schedule(tmp_path, capsys):
    path = tmp_path / "rails.yaml"
    assert run(["sketch", "suggest", "dgx-a100", "--nodes", "2", "-o", str(path)]) == 0
    topology = api.load_topology("dgx-a100", nodes=2)
    problem = api.make_problem(topology, "alltoall", sketch=path)
    assert len(problem.sketch.between) == 16
    assert run(["sketch", "suggest", "ring:4", "--pick", "relays"]) == 2
    assert "CS213" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["dgx2", "ndv2", "torus:4x4"])
def test_the_image_of_a_schedule_occupies_no_link_twice(name):
    """What symmetries are for: GPUs renamed, a schedule is still one."""
    topology = load(name, nodes=MACHINES[name][0])
    proposal = suggest(topology)[0]
    problem = api.make_problem(topology, "allgather", sketch=proposal.sketch)
    (phase,) = api.synthesize(problem, size=2**20).schedule.phases
    hops, starts, hop_of = phase.hops, phase.starts(), phase.hop_of()
    ends = list(zip(hops.source.tolist(), hops.target.tolist(), strict=True))
    assert len(set(ends)) == len(ends)  # one way for each pair
    number = {pair: hop for hop, pair in enumerate(ends)}
    assert proposal.sketch.symmetries
    for image in proposal.sketch.symmetries:
        busy = {}
        for hop, start in zip(hop_of.tolist(), starts.tolist(), strict=True):
            there = number[image[ends[hop][0]], image[ends[hop][1]]]
            for i in range(hops.first[there], hops.first[there + 1]):
                times = start + int(hops.begin[i]), start + int(hops.end[i])
                busy.setdefault(int(hops.links[i]), []).append(times)
        for times in busy.values():
            times.sort()
            assert all(one[1] <= two[0] for one, two in pairwise(times))


def test_boxes_that_differ_have_no_proposals_and_no_place_in_a_file():
    uneven = api.damage(load("dgx-a100", nodes=2), gpus=["gpu0.3"]).topology
    with pytest.raises(InputError, match="CS143") as caught:
        suggest(uneven)
    assert caught.value.diagnostic.span is None
