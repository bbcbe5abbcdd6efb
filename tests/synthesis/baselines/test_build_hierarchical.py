"""Stars inside boxes, rings of boxes on every rail."""

from collections import Counter
from fractions import Fraction

import pytest

from colsynth.errors import InputError
from colsynth.verify import check_forest

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


def between_boxes(phase, topology):
    """Return the chunks that every link out of a NIC into the fabric carries."""
    carried = Counter()
    for tree in phase.trees:
        for edge in tree.edges:
            carried.update(dict.fromkeys(edge.route, tree.weight))
    return {
        topology.link_name(i): carried[i]
        for i, link in enumerate(topology.links)
        if topology.nodes[link.source].kind == "nic" and topology.nodes[link.target].box is None
    }


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("boxes", [2, 3, 4])
def test_every_nic_carries_the_bytes_of_the_textbook(schedule, boxes, collective):
    """A ring of B boxes sends B - 1 of the B parts of each GPU's share, in each phase."""
    forest = schedule("hierarchical", "dgx-a100", collective, boxes)
    check_forest(forest)
    topology = forest.problem.topology
    for phase in forest.phases:
        carried = between_boxes(phase, topology)
        assert len(carried) == 8 * boxes
        assert set(carried.values()) == {boxes - 1}


def test_the_ring_turns_one_way(schedule):
    forest = schedule("hierarchical", "dgx-a100", "allreduce", 4)
    for phase in forest.phases:
        inwards = phase.direction == "in"
        for tree in phase.trees:
            for edge in tree.edges:
                ends = (edge.child, edge.parent) if inwards else (edge.parent, edge.child)
                source, target = (rank // 8 for rank in ends)
                assert target in (source, (source + 1) % 4)


def test_in_one_box_it_is_all_pairs(schedule):
    forest = schedule("hierarchical", "mi300x", "allreduce")
    assert forest.max_height == 1
    assert forest.gap == 0


def test_links_of_the_box_and_nics_bound_it(schedule):
    forest = schedule("hierarchical", "dgx-a100", "allgather", 2)
    nic = Fraction(25 * 10**9)
    assert forest.algbw <= 16 * nic


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_pairs_in_a_box_without_a_way_go_through_others(schedule, collective):
    check_forest(schedule("hierarchical", "mi250", collective, 2))


def test_gpus_that_reach_no_nic_are_refused(schedule):
    with pytest.raises(InputError) as refused:
        schedule("hierarchical", "ndv2", "allreduce", 2)
    assert refused.value.diagnostic.code == "CS312"
    assert "gpu0.4" in refused.value.diagnostic.phrase
