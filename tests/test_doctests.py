"""The examples in docstrings print what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import colsynth

ROOT = Path(colsynth.__file__).parent
MODULES = [
    ".".join(("colsynth", *path.relative_to(ROOT).with_suffix("").parts))
    for path in sorted(ROOT.rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0


def test_there_are_examples():
    assert "colsynth.topology.graph" in MODULES
