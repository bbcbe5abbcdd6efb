"""The presets have the allgather optimum that is published for them.

A rate per GPU can be reached if and only if every GPU can receive N times that rate when each
GPU sends it (max-flow, min-cut); so the optimum is checked from both sides, with networkx.
Sources: ForestColl's code for DGX A100 and MI250, TE-CCL's link tables for NDv2 and DGX-2.
"""

from fractions import Fraction
from math import lcm

import networkx as nx
import pytest

from colsynth.topology import load

GB = 10**9


def feasible(topology, algbw):
    """Whether everyone can have everything at an algorithm bandwidth."""
    share = algbw / topology.size
    scale = lcm(share.denominator, *(link.bandwidth.denominator for link in topology.links))
    graph = nx.DiGraph()
    for link in topology.links:
        graph.add_edge(link.source, link.target, capacity=int(link.bandwidth * scale))
    for gpu in topology.ranks:
        graph.add_edge("all", gpu, capacity=int(share * scale))
    whole = int(share * scale) * topology.size
    return all(nx.maximum_flow_value(graph, "all", gpu) == whole for gpu in topology.ranks)


@pytest.mark.parametrize(
    ("name", "nodes", "gb_per_s"),
    [
        ("dgx-a100", 1, Fraction(2400, 7)),
        ("dgx-a100", 2, Fraction(1040, 3)),
        ("mi250", 1, Fraction(2400, 7)),
        ("mi250", 2, Fraction(5312, 15)),
        ("ndv2", 2, Fraction(25)),
        ("ndv2", 4, Fraction(50, 3)),
        ("dgx2", 2, Fraction(4000, 31)),
    ],
)
def test_published_optimum(name, nodes, gb_per_s):
    topology = load(name, nodes=nodes)
    assert feasible(topology, gb_per_s * GB)
    assert not feasible(topology, gb_per_s * GB * Fraction(10**6 + 1, 10**6))
