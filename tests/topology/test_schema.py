"""The JSON Schema says the same as the reader."""

import re
from pathlib import Path

import pytest
import yaml

from colsynth.topology import json_schema, load, presets
from colsynth.topology.export import flat_form

BAD = Path(__file__).parents[1] / "corpus" / "topology" / "bad"


def fits(value, schema, root):
    """Whether a value is valid: the part of JSON Schema that the document uses."""
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return any(fits(value, option, root) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kind, check = TYPES[schema["type"]]
    right = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    return right and check(value, schema, root)


def list_fits(value, schema, root):
    return all(fits(item, schema["items"], root) for item in value)


def text_fits(value, schema, _root):
    short = len(value) < schema.get("minLength", 0)
    return not short and re.search(schema.get("pattern", ""), value) is not None


def number_fits(value, schema, _root):
    return value >= schema.get("minimum", value)


def always_fits(_value, _schema, _root):
    return True


def object_fits(value, schema, root):
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    if not set(schema.get("required", ())) <= set(value):
        return False
    for key, item in value.items():
        if key in known:
            if not fits(item, known[key], root):
                return False
        elif others is False or (isinstance(others, dict) and not fits(item, others, root)):
            return False
    return True


TYPES = {
    "object": (dict, object_fits),
    "array": (list, list_fits),
    "string": (str, text_fits),
    "integer": (int, number_fits),
    "number": (float, number_fits),
    "boolean": (bool, always_fits),
    "null": (type(None), always_fits),
}


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_presets_fit(preset):
    data = yaml.safe_load(preset.path.read_text(encoding="utf-8"))
    assert fits(data, json_schema(), json_schema())


@pytest.mark.parametrize("spec", ["ring:8", "dgx2", "dgx-h100"])
def test_exports_fit(spec):
    assert fits(flat_form(load(spec)), json_schema(), json_schema())


@pytest.mark.parametrize(
    "case",
    [
        "unknown-key",
        "unknown-key-of-link",
        "unknown-key-of-node",
        "unknown-kind",
        "unknown-join",
        "missing-key",
        "missing-version",
        "missing-form",
        "wrong-version",
        "wrong-type",
        "no-boxes",
        "null-value",
        "unit-missing",
        "counts-negative",
        "not-a-mapping",
        "empty",
    ],
)
def test_bad_files_do_not_fit(case):
    data = yaml.safe_load((BAD / f"{case}.yaml").read_text(encoding="utf-8"))
    assert not fits(data, json_schema(), json_schema())


def test_every_key_is_described_or_obvious():
    obvious = {"version", "name", "title", "from", "to", "kind", "box", "nodes", "links"}
    for part in json_schema()["$defs"].values():
        for key, schema in part["properties"].items():
            assert key in obvious or "description" in str(schema), key
