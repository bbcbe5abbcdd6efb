"""Sketches are read, in JSON of TACCL and in YAML, or refused with one diagnostic at its place."""

import json
import random
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from colsynth import sketches
from colsynth.cli.codes import explanations
from colsynth.cost.routes import routes
from colsynth.errors import InputError
from colsynth.model import Connections
from colsynth.sketches.given import unused
from colsynth.sketches.read import decode_sketch, read_sketch
from colsynth.topology import load
from colsynth.topology.importers import Request, import_topology
from tests.fuzz.mutations import mutated_text

CORPUS = Path(__file__).parents[1] / "corpus" / "sketches"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "taccl"
PAIR = load(str(CORPUS / "machine.yaml"), nodes=2)


def test_wishes_that_an_algorithm_does_not_look_at_are_named():
    sketch = replace(decode_sketch(b"version: 1\n", "mine", PAIR).sketch, in_order=True)
    assert unused(replace(sketch, in_order=False), "ten") is None
    turned = replace(sketch, symmetries=(tuple(range(PAIR.size)),))
    assert unused(turned, "exact") == "mine: -a exact does not look at in-order"
    for connections, told in ((None, ""), (Connections.FEW, "inside-boxes: connections, ")):
        wishes = replace(turned, connections=connections)
        assert unused(wishes, None) == f"mine: -a ten does not look at in-order, {told}symmetries"


def test_json_of_taccl_and_yaml_say_the_same():
    json_, yaml_ = (read_sketch(CORPUS / f"pairs.{kind}", PAIR) for kind in ("json", "yaml"))
    assert replace(json_.sketch, name="") == replace(yaml_.sketch, name="")
    (note,) = json_.notes
    assert "colour" in note
    assert ":13:3" in note
    found = json_.sketch
    assert found.between == ((1, 4), (3, 6), (5, 0), (7, 2))
    assert found.leave == ((1,), (1,), (3,), (3,), (5,), (5,), (7,), (7,))
    assert found.within is not None
    assert len(found.within) == 2 * 4 * 3
    assert found.symmetries == ((2, 3, 0, 1, 6, 7, 4, 5), (4, 5, 6, 7, 0, 1, 2, 3))
    assert (found.connections, found.chunks, found.share) == (Connections.FEW, 2, 2**20)


def test_the_sketch_of_the_guide_is_read():
    page = Path(sketches.__file__).parents[1] / "guide" / "sketches.md"
    (text,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    found = decode_sketch(text.encode(), "guide.yaml", PAIR).sketch
    corpus = read_sketch(CORPUS / "pairs.yaml", PAIR).sketch
    assert replace(found, name="", in_order=True) == replace(corpus, name="")


def test_the_rule_of_the_paper_stands_for_a_map():
    data = json.loads((CORPUS / "pairs.json").read_text())
    del data["internode_sketch"]["gpus_to_sender_rev_map"]
    data["internode_sketch"] |= {"chunk_to_relay_map": [2, 1], "beta_split": {"1": 1}}
    found = decode_sketch(json.dumps(data).encode(), "paper.json", PAIR)
    assert found.sketch.leave == read_sketch(CORPUS / "pairs.json", PAIR).sketch.leave
    assert any(note.startswith("beta_split is not used") for note in found.notes)


WRONG = {
    "boxes: 2": ("boxes: 3", "CS143", "the sketch is for 3 boxes"),
    "{from: 1, to: [0]}": ("{from: 4, to: [0]}", "CS142", "sender 4 is no GPU of a box"),
    "to: [2]": ("to: [9]", "CS142", "receiver 9 is no GPU"),
    "gpu: 3": ("gpu: 2", "CS142", "GPU 2 is to send for GPU 2 and has no connection"),
    "for: [2, 3]": ("for: [2]", "CS142", "no sender takes the chunks of GPU 3"),
    "[[0, 1, 2, 3]]": ("[[0, 1, 2, 2]]", "CS142", "GPU 2 is named twice"),
    "of: 4": ("of: 3", "CS144", "[2, 3] is no turn"),
    "turn: 2": ("turn: 1", "CS144", "[1, 4] is no symmetry"),
    "4-7, 0-3": ("4-7, 0-2", "CS144", "each of the ranks 0 to 7 once"),
    "ranks: [4-7, 0-3]": ("turn: 1", "CS142", "'turn' with 'of', or 'ranks'"),
    "few": ("fewer", "CS108", "unknown value 'fewer'"),
    "chunks: 2": ("chunks: 0", "CS108", ">= 1"),
    "1MiB": ("a lot", "CS142", "share cannot be 'a lot'"),
    "in-order": ("inorder", "CS106", "unknown key"),
}


@pytest.mark.parametrize("old", WRONG)
def test_contradictions_have_one_diagnostic_at_their_place(old):
    new, code, phrase = WRONG[old]
    text = (CORPUS / "pairs.yaml").read_text().replace(old, new, 1)
    with pytest.raises(InputError) as caught:
        decode_sketch(text.encode(), "wrong.yaml", PAIR)
    found = caught.value.diagnostic
    assert (found.code, phrase in found.phrase) == (code, True), found.phrase
    assert found.span is not None
    assert found.span.line == text[: text.index(new)].count("\n") + 1
    assert code in explanations()


def test_a_symmetry_names_the_pair_that_it_breaks():
    text = "version: 1\nsymmetries: [{turn: 1, of: 4}]\n"
    with pytest.raises(InputError) as caught:
        decode_sketch(text.encode(), "turn.yaml", load("mesh:4x4"))
    assert "becomes" in caught.value.diagnostic.notes[0]
    assert decode_sketch(text.encode(), "turn.yaml", load("torus:4x4")).sketch.symmetries
    # Pairs stay pairs, but two that share a NIC do not share one after the swap.
    swap = "version: 1\nsymmetries: [{ranks: [0, 2, 1, 3-7]}]\n"
    with pytest.raises(InputError, match="does not share its links"):
        decode_sketch(swap.encode(), "swap.yaml", PAIR)


def test_connections_that_the_topology_lacks_are_noted_or_refused():
    ndv2 = load("ndv2", nodes=2)
    rails = b"version: 1\nbetween-boxes: {connections: rails}\n"
    (note,) = decode_sketch(rails, "rails.yaml", ndv2).notes
    assert "8 of 16 connections" in note
    far = b"version: 1\nbetween-boxes: {connections: [{from: 5, to: [5]}]}\n"
    with pytest.raises(InputError, match="CS143"):
        decode_sketch(far, "far.yaml", ndv2)


@pytest.mark.parametrize("name", ["pairs.json", "pairs.yaml"])
def test_a_damaged_sketch_is_a_value_or_one_diagnostic(name):
    text, codes = (CORPUS / name).read_text(), set()
    for seed in range(200):
        damaged = mutated_text(random.Random(seed), text).encode("utf-8", "surrogatepass")
        try:
            decode_sketch(damaged, name, PAIR)
        except InputError as refusal:
            codes.add(refusal.diagnostic.code)
    assert len(codes) > 5
    assert codes <= explanations().keys()


def sample_topology(name, boxes):
    folder = "custom" if name.startswith("custom") else "topologies"
    path = SAMPLES / folder / f"{name}.json"
    return import_topology([(path.name, path.read_bytes())], Request(boxes=boxes)).topology


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not here")
def test_published_topologies_state_the_same_latencies_in_three_units():
    files = [*SAMPLES.glob("topologies/*.json"), *SAMPLES.glob("custom/custom-*.json")]
    assert len(files) == 9
    for path in files:
        boxes = 2 if path.stem.startswith("topo-") else 1
        topology = sample_topology(path.stem, boxes)
        delays = {True: set(), False: set()}
        for source, target, route in routes(topology):
            together = source * boxes // topology.size == target * boxes // topology.size
            delays[together].add(sum(topology.links[i].latency for i in route))
        if boxes == 2:
            assert delays[False] == {Fraction(26, 10**7)}, path.name
            assert Fraction(3, 10**7) in delays[True], path.name


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not here")
def test_published_sketches_are_read_as_their_manifest_says():
    machines = {"dgx2": "topo-dgx2-1KB", "ndv2": "topo-ndv2-32KB", "dumb": "topo-mi300x_dumb"}
    machines |= {"mi300x": "topo-mi300x", "torus": "custom-topo-torus2d-4x4"}
    files = [*SAMPLES.glob("sketches/*.json"), *SAMPLES.glob("custom/sk-*.json")]
    assert len(files) == 17
    refused = {}
    for path in files:
        machine = next(found for word, found in machines.items() if word in path.name)
        topology = sample_topology(machine, json.loads(path.read_text())["nnodes"])
        try:
            assert read_sketch(path, topology).notes == ()
        except InputError as refusal:
            refused[path.name] = refusal.diagnostic.phrase
    assert refused == {"mi300x-n2.json": "sender 8 is no GPU of a box"}
