"""However a file is damaged, it loads or gets one diagnostic with a place; never a crash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth.errors import InputError
from colsynth.model import Topology
from colsynth.topology import export_flat, load
from colsynth.topology.document import parse_document
from colsynth.topology.load import read_topology
from colsynth.topology.presets import folder

TEXTS = [
    (folder() / "dgx-a100.yaml").read_text(encoding="utf-8"),
    (folder() / "ndv2.yaml").read_text(encoding="utf-8"),
    export_flat(load("dgx2", nodes=2)),
    export_flat(load("ring:3")),
]
SCRAPS = [
    "",
    " ",
    "\n",
    ":",
    "- ",
    "[]",
    "{}",
    "null",
    "0",
    "-1",
    "1e99",
    "gpu",
    "$nic",
    "'",
    "&a ",
    "*a",
    "true",
    "2024-01-01",
    "!!int ",
    "25 GB/s",
    "[gpu0]",
    "\t",
    "é",
]


@st.composite
def damaged(draw):
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        words = text.split(" ")
        place = draw(st.integers(0, len(words) - 1))
        words[place] = draw(st.sampled_from([*SCRAPS, words[place][:-1], *words[:40]]))
        text = " ".join(words)
    return text


@settings(deadline=None)
@given(damaged(), st.sampled_from([None, 1, 3]))
def test_damage_is_survived(text, nodes):
    try:
        topology = read_topology(parse_document(text, "damaged.yaml"), nodes, {})
    except InputError as error:
        diagnostic = error.diagnostic
        assert diagnostic.phrase
        if diagnostic.code != "CS124":  # about an option, not about the file
            assert diagnostic.span.line >= 1
            assert diagnostic.span.column >= 1
    else:
        assert isinstance(topology, Topology)


@pytest.mark.parametrize("text", TEXTS)
def test_the_originals_load(text):
    assert read_topology(parse_document(text, "whole.yaml"), None, {}).size >= 2
