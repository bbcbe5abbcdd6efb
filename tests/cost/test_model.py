"""Constants: all have sources, and a file replaces some of them."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from colsynth.cost import NAMES, Model, default_model, ideal_model
from colsynth.cost.model import PROTOCOLS
from colsynth.cost.model_file import read_model
from colsynth.errors import InputError
from colsynth.runtimes import profile, profiles

BASE = default_model(profile("msccl"))


@pytest.mark.parametrize("runtime", [item.name for item in profiles()])
def test_every_constant_of_every_runtime_has_a_source(runtime):
    model = default_model(profile(runtime))
    assert set(NAMES) == set(model.sources) == {f.name for f in fields(Model)} - {"sources"}
    for name in NAMES:
        value = getattr(model, name)
        numbers = value.values() if isinstance(value, dict) else [value]
        if isinstance(value, dict):
            assert tuple(value) == PROTOCOLS
        assert all(math.isfinite(number) and number >= 0 for number in numbers)
        source = model.sources[name]
        assert any(mark in source for mark in ("U:", "fit", "src/", " = ", "tests/gpu"))


def test_a_fit_adds_up_to_what_it_was_fitted_to():
    """A hop of a ring takes `step`, the links (0.7 us), and `hop`."""
    wire = 0.7
    hops = {p: BASE.step[p] + wire + BASE.hop[p] for p in PROTOCOLS}
    assert hops == pytest.approx({"Simple": 3.4, "LL": 2.0, "LL128": 1.9})
    far = {p: BASE.step[p] + 2.6 + BASE.network_hop[p] for p in PROTOCOLS}
    assert far == pytest.approx({"Simple": 14.0, "LL": 2.7 + 1.4, "LL128": 4.0})
    rccl = default_model(profile("rccl"))
    assert rccl.step["Simple"] + wire + rccl.hop["Simple"] == pytest.approx(2.1)
    assert rccl.step["LL"] + 2.6 + rccl.network_hop["LL"] == pytest.approx(9.5)


def test_the_ideal_model_costs_nothing():
    ideal = ideal_model()
    assert ideal.link_efficiency == ideal.network_efficiency == 1
    assert ideal.wait == 0
    assert set(ideal.step.values()) == set(ideal.launch.values()) == {0.0}
    assert set(ideal.rate.values()) == {math.inf}


def read(tmp_path, text):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return read_model(path, BASE)


def test_a_file_replaces_what_it_names(tmp_path):
    model = read(tmp_path, "network_efficiency: 0.9\nrate: {LL: 2}\nhop: 1.5\nwait: 0\n")
    assert model.network_efficiency == 0.9
    assert model.rate == {**BASE.rate, "LL": 2}
    assert model.hop == dict.fromkeys(PROTOCOLS, 1.5)
    assert model.wait == 0
    assert model.step == BASE.step
    assert model.sources["rate"].endswith("model.yaml")
    assert model.sources["step"] == BASE.sources["step"]


@pytest.mark.parametrize(
    ("text", "phrase", "line", "column"),
    [
        ("steps: 1\n", "the model has no constant 'steps'", 1, 1),
        ("wait: 1\nrate: {Simpel: 20}\n", "there is no protocol 'Simpel'", 2, 8),
        ("wait: fast\n", "wait cannot be 'fast'", 1, 7),
        ("wait: -1\n", "wait cannot be -1", 1, 7),
        ("wait: true\n", "wait cannot be True", 1, 7),
        ("wait: {LL: 1}\n", "wait cannot be {'LL': 1}", 1, 7),
        ("link_efficiency: 1.1\n", "link_efficiency cannot be 1.1", 1, 18),
        ("payload: {LL: 0}\n", "payload.LL cannot be 0", 1, 15),
        ("rate: {LL: 0}\n", "rate.LL cannot be 0", 1, 12),
        ("slices: 1.5\n", "slices cannot be 1.5", 1, 9),
        ("slices: {LL: 0}\n", "slices.LL cannot be 0", 1, 14),
        ("slices: 10000000\n", "slices cannot be 10000000", 1, 9),
        ("least_slice: 1000000000000\n", "least_slice cannot be 1000000000000", 1, 14),
        ("hop: 1e9\n", "hop cannot be 1000000000.0", 1, 6),
        ("hop: 1.0e+9\n", "hop cannot be 1000000000.0", 1, 6),
        ("step: []\n", "step cannot be []", 1, 7),
        ("step: null\n", "step cannot be None", 1, 7),
        ("sources: {}\n", "the model has no constant 'sources'", 1, 1),
    ],
)
def test_what_is_no_constant_is_refused_at_its_place(tmp_path, text, phrase, line, column):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    found = caught.value.diagnostic
    assert (found.code, found.phrase) == ("CS606", phrase)
    assert (found.span.line, found.span.column) == (line, column)
    assert found.notes or found.help


@pytest.mark.parametrize("text", ["", "- 1\n", "wait: [\n", "wait: 1\nwait: 2\n"])
def test_what_is_no_mapping_is_refused(tmp_path, text):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert caught.value.diagnostic.span.file.endswith("model.yaml")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError):
        read_model(tmp_path / "none.yaml", BASE)
