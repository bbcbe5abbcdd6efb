"""Expressions of graphs: what they mean, and where a wrong one is wrong."""

import networkx as nx
import numpy as np
import pytest

from colsynth.cli.main import run
from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.topology.graph import to_networkx
from colsynth.topology.graphs.examples import EXAMPLES
from colsynth.topology.graphs.facts import facts_of
from colsynth.topology.graphs.grammar import build, read_term


def graph_of(spec):
    found = to_networkx(load(spec))
    return nx.relabel_nodes(found, {name: i for i, name in enumerate(found)})


def test_every_example_is_read_and_prints_itself():
    for spec in EXAMPLES:
        assert str(read_term(spec)) == spec
        assert load(spec).name == spec


@pytest.mark.parametrize(
    ("spec", "gpus", "ports", "diameter", "girth", "transitive", "moore"),
    [
        ("torus:4x4", 16, 4, 4, 4, True, 2),
        ("mesh:3x3", 9, 4, 4, 4, False, 2),
        ("kautz:2,3", 12, 2, 3, 2, False, 3),
        ("line^2(bipartite:4)", 128, 4, 4, 2, False, 4),
        ("odd:4", 35, 4, 3, 6, True, 3),
        ("distance-regular:gq-3-3", 80, 4, 4, 8, False, 4),
        ("distance-regular:line-tutte-8", 45, 4, 4, 3, True, 3),
        ("distance-regular:ag-2-4", 32, 4, 4, 6, True, 3),
        ("distance-regular:heawood", 14, 3, 3, 6, True, 3),
        ("lcf:7,5,-5", 14, 3, 3, 6, True, 3),
        ("twisted:4x8", 32, 4, 4, 4, True, 3),
        ("cayley:16:4:11:8.3,11.1,9.0,11.0", 64, 4, 4, 4, True, 3),
        ("product(uniring:3,clique:4)", 12, 4, 3, 2, True, 2),
        ("duplex(kautz:2,2)", 6, 3, 2, 3, True, 2),
        ("hamming:2,4", 16, 6, 2, 3, True, 2),
    ],
)
def test_facts(spec, gpus, ports, diameter, girth, transitive, moore):
    topology = load(spec)
    found = facts_of(topology)
    shown = (topology.size, found.ports, found.diameter, found.girth, found.transitive, found.moore)
    assert shown == (gpus, ports, diameter, girth, transitive, moore)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("line^2(clique:3)", "kautz:2,3"),
        ("genkautz:2,12", "kautz:2,3"),
        ("gendebruijn:2,8", "debruijn:2,3"),
        ("power:2(ring:4)", "torus:4x4"),
        ("transpose(line(uniring:5))", "uniring:5"),
        ("cayley:12:1:1:1.0,11.0,3.0,9.0", "circulant:12,1,3"),
        ("kneser:5,2", "distance-regular:petersen"),
        ("degree:2(clique:2)", "bipartite:2"),
        ("hamming:3,2", "hypercube:3"),
    ],
)
def test_equal_graphs(one, other):
    assert nx.is_isomorphic(graph_of(one), graph_of(other))


@pytest.mark.parametrize(
    "spec", ["torus:3x4", "genkautz:2,7", "circulant:9,2,3", "joined(debruijn:2,3)"]
)
def test_line_and_product_are_those_of_networkx(spec):
    graph, plain = build(read_term(f"line({spec})")).without_loops(), graph_of(spec)
    expected = nx.line_graph(plain)
    expected.remove_edges_from([*nx.selfloop_edges(expected)])
    loops = np.count_nonzero((inner := build(read_term(spec))).tail == inner.head)
    assert graph.size == expected.number_of_nodes() + loops
    if not loops:
        assert nx.is_isomorphic(nx.DiGraph(zip(graph.tail, graph.head, strict=True)), expected)
    product = nx.cartesian_product(graph_of("uniring:3"), plain)
    assert nx.is_isomorphic(graph_of(f"product(uniring:3,{spec})"), product)


def test_loops_idle_a_port_and_parallel_arcs_add_up():
    loops = load("debruijn:2,3")
    assert len(loops.links) == 14
    whole = build(read_term("line(debruijn:2,3)"))
    assert (whole.size, whole.ports) == (16, 2)
    wide = load("circulant:4,1,2,3", bandwidth="10 GB/s")
    assert {float(link.bandwidth) / 1e9 for link in wide.links} == {10, 20}


def test_axes_of_a_product_have_their_own_figures():
    topology = load("product(ring:4,uniring:3)", bandwidth="1,2 GB/s")
    rates = {(x.source // 3 == x.target // 3): float(x.bandwidth) for x in topology.links}
    assert rates == {True: 2e9, False: 1e9}


@pytest.mark.parametrize(
    ("spec", "code", "column"),
    [
        ("line^2(circulant:16,3,4", "CS121", 24),
        ("line^2(circlant:16,3)", "CS121", 8),
        ("product(ring:4,kautz:2)", "CS121", 16),
        ("product(ring:4)", "CS121", 15),
        ("line(kautz:2,2))", "CS121", 16),
        ("degree(ring:8)", "CS121", 1),
        ("line:2(ring:8)", "CS121", 1),
        ("line^0(ring:8)", "CS121", 1),
        ("line(circulant:6,6)", "CS121", 6),
        ("line(cayley:8:2:2:1.1)", "CS121", 6),
        ("line(cayley:8:2:3:8.1)", "CS121", 6),
        ("line(kneser:7,4)", "CS121", 6),
        ("line(distance-regular:peterson)", "CS121", 6),
        ("power:40(ring:8)", "CS125", 1),
        ("line(kautz:3,40)", "CS125", 6),
        ("line(" * 30 + "ring:4" + ")" * 30, "CS121", 121),
    ],
)
def test_errors_point_at_the_column(spec, code, column):
    with pytest.raises(InputError) as caught:
        load(spec)
    found = caught.value.diagnostic
    assert (found.code, found.span.column) == (code, column)


def test_export_says_where_it_comes_from_and_reads_back(capsys, tmp_path):
    spec = "line(kautz:2,1)"
    assert run(["topology", "export", spec, "--bandwidth", "25 GB/s"]) == 0
    text = capsys.readouterr().out
    first = "# colsynth topology export 'line(kautz:2,1)' --bandwidth '25 GB/s'"
    assert text.splitlines()[0] == first
    (tmp_path / "k.yaml").write_text(text)
    assert load(str(tmp_path / "k.yaml")) == load(spec, bandwidth="25 GB/s")


def test_show_names_the_facts(capsys):
    assert run(["topology", "show", "kautz:2,3"]) == 0
    assert "simplex fabric: 2 ports, diameter 3 (Moore bound 3)" in capsys.readouterr().out
    assert facts_of(load("dgx-a100")) is None
