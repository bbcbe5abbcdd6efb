"""A topology written in the flat form reads back equal."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from colsynth.errors import InputError
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology import export_flat, load, presets
from colsynth.topology.boxes import infer_boxes
from colsynth.topology.document import parse_document
from colsynth.topology.export import flat_form
from colsynth.topology.load import read_topology
from colsynth.topology.nics import require_one_port

GENERATORS = ["ring:8", "ring:2", "mesh:4x4", "torus:4x4x4", "torus:2x3", "hypercube:6", "clique:8"]


def reread(text):
    return read_topology(parse_document(text, "export.yaml"), None, {})


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", [preset.name for preset in presets()])
def test_presets(name, nodes):
    topology = load(name, nodes=nodes)
    assert reread(export_flat(topology)) == topology
    assert reread(json.dumps(flat_form(topology))) == topology


@pytest.mark.parametrize("spec", GENERATORS)
def test_generators(spec):
    topology = load(spec, bandwidth="100/3 GB/s")
    assert reread(export_flat(topology)) == topology


def test_a_file_on_disk(tmp_path):
    topology = load("dgx2", nodes=2, settings={"nic": "9.5 GB/s"})
    path = tmp_path / "cluster.yaml"
    path.write_text(export_flat(topology), encoding="utf-8")
    assert load(str(path)) == topology


def test_the_same_topology_is_the_same_text():
    assert export_flat(load("mi250", nodes=2)) == export_flat(load("mi250", nodes=2))


plain = st.text(
    st.characters(exclude_categories=["Cs"]).filter(str.isprintable), min_size=1, max_size=8
).filter(lambda text: text == text.strip())
NUMBERS = ["1e3", "0o17", "+1", "1:30", ".nan", "9" * 50, "2024-01-01", "1_000"]
names = st.one_of(
    plain, st.sampled_from(["yes", "null", "1.5", "0x10", "- a", "a: b", "#", "~", *NUMBERS])
)
rates = st.fractions(min_value=Fraction(1, 10**6), max_value=10**15, max_denominator=10**6)
delays = st.fractions(min_value=0, max_value=1, max_denominator=10**12)


@st.composite
def topologies(draw):
    """Any graph on a ring that goes both ways, so that everyone reaches everyone."""
    labels = draw(st.lists(names, min_size=2, max_size=7, unique=True))
    kinds = [Kind.GPU, Kind.GPU]
    kinds += draw(st.lists(st.sampled_from(Kind), min_size=len(labels) - 2, max_size=len(labels)))
    kinds = draw(st.permutations(kinds[: len(labels)]))
    boxes = st.one_of(st.none(), st.integers(0, 9))
    stores = ("store-and-forward",)
    powers = {
        Kind.GPU: st.just(()),
        Kind.NIC: st.sampled_from([(), stores]),
        Kind.SWITCH: st.sampled_from([(), ("multicast", "reduce"), ("reduce", *stores), stores]),
    }
    nodes = tuple(
        Node(label, kind, draw(boxes), draw(powers[kind]))
        for label, kind in zip(labels, kinds, strict=True)
    )
    size = len(nodes)
    pairs = {(i, (i + 1) % size) for i in range(size)} | {((i + 1) % size, i) for i in range(size)}
    spots = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    pairs |= {(a, b) for a, b in draw(st.sets(spots, max_size=8)) if a != b}
    links = tuple(Link(a, b, draw(rates), draw(delays)) for a, b in sorted(pairs))
    gpus = [i for i, node in enumerate(nodes) if node.kind is Kind.GPU]
    ranks = tuple(draw(st.permutations(gpus)))
    try:
        found = infer_boxes(Topology(draw(names), nodes, links, ranks))
        require_one_port(found, [None] * size)
    except InputError:  # it cannot be told which GPUs are one box, or a NIC is between networks
        return reject()
    return found


@settings(deadline=None)
@given(topologies())
def test_any_topology(topology):
    assert reread(export_flat(topology)) == topology
