"""Two-shot all-pairs: a star for every root, or the next best where ways are missing."""

from fractions import Fraction

import pytest

from colsynth.errors import InputError
from colsynth.verify import check_forest

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("name", ["clique:5", "dgx-a100", "mi300x"])
def test_stars_reach_the_optimum_where_all_are_joined(schedule, name, collective):
    forest = schedule("allpairs2", name, collective)
    check_forest(forest)
    assert forest.max_height == 1
    assert forest.gap == 0


@pytest.mark.parametrize(("name", "boxes"), [("dgx-a100", 2), ("mi250", 1), ("ndv2", 2)])
def test_pairs_without_a_way_take_as_few_hops_as_there_are(schedule, name, boxes):
    import networkx as nx

    from colsynth.cost.routes import routes

    forest = schedule("allpairs2", name, "allreduce", boxes)
    check_forest(forest)
    graph = nx.DiGraph((a, b) for a, b, _ in routes(forest.problem.topology))
    inwards, outwards = forest.phases
    for tree in outwards.trees:
        assert tree.depths() == nx.single_source_shortest_path_length(graph, tree.root)
    for tree in inwards.trees:
        assert tree.depths() == nx.single_target_shortest_path_length(graph, tree.root)


def test_the_fabric_is_what_all_pairs_pay_for(schedule):
    """Each GPU gets 16 shards from the other box over its one link to the fabric."""
    forest = schedule("allpairs2", "mi250", "allgather", boxes=2)
    link = Fraction(16 * 10**9)
    assert forest.algbw <= 32 * link / 16


def test_stars_serve_no_alltoall(schedule):
    with pytest.raises(InputError) as refused:
        schedule("allpairs2", "clique:4", "alltoall")
    assert refused.value.diagnostic.code == "CS311"
