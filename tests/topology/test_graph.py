"""Topologies as networkx graphs and back."""

import networkx as nx
import pytest

from colsynth import topology
from colsynth.errors import InputError
from colsynth.topology.graph import from_networkx, to_networkx


@pytest.mark.parametrize("name", ["dgx-a100", "mi250", "dgx2", "ndv2"])
@pytest.mark.parametrize("boxes", [1, 2])
def test_round_trip(name, boxes):
    machine = topology.load(name, nodes=boxes)
    assert from_networkx(to_networkx(machine)) == machine


def test_texts_with_units_are_read():
    graph = nx.DiGraph()
    graph.add_node("a", kind="gpu")
    graph.add_node("b", kind="gpu")
    graph.add_edge("a", "b", bandwidth="200 Gb/s", latency="1 us")
    graph.add_edge("b", "a", bandwidth=25 * 10**9)
    machine = from_networkx(graph, "pair")
    assert machine.name == "pair"
    assert machine.is_symmetric
    assert machine.links[1].latency == 0


def pair(**edge):
    graph = nx.DiGraph()
    graph.add_nodes_from(["a", "b"], kind="gpu")
    graph.add_edge("a", "b", **edge)
    graph.add_edge("b", "a", bandwidth=1)
    return graph


@pytest.mark.parametrize(
    "graph",
    [
        pair(),
        pair(bandwidth="25"),
        pair(bandwidth=0),
        pair(bandwidth=1, latency="soon"),
        nx.DiGraph([("a", "b")]),
    ],
)
def test_wrong_attributes_are_diagnosed(graph):
    with pytest.raises(InputError) as caught:
        from_networkx(graph)
    assert caught.value.diagnostic.code == "CS129"


def test_ranks_stand_on_all_gpus_or_on_none():
    graph = pair(bandwidth=1)
    graph.nodes["a"]["rank"] = 1
    with pytest.raises(InputError) as caught:
        from_networkx(graph)
    assert "ranks must be 0 to 1" in caught.value.diagnostic.phrase
    graph.nodes["b"]["rank"] = 0
    assert from_networkx(graph).ranks == (1, 0)
