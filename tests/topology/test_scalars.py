"""Text without quotes means what YAML 1.2 says, and no number fills the memory."""

import pytest

from colsynth.errors import InputError
from colsynth.topology import document, load
from colsynth.topology.document import parse_document
from colsynth.topology.scalars import plain_scalar


def value(text):
    return parse_document(f"x: {text}", "a.yaml").data["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("FALSE", False),
        ("010", 10),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0xfF", 255),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.5E+2", -150.0),
        ("yes", "yes"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("0b1", "0b1"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("۳", "۳"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text, expected):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ["9" * 41, "0x" + "f" * 5000, "1e400", ".inf", "-.INF", ".nan"])
def test_numbers_without_measure_are_refused_at_their_place(text):
    with pytest.raises(InputError) as caught:
        value(text)
    assert caught.value.diagnostic.code == "CS108"
    assert caught.value.diagnostic.span.column == 4


@pytest.mark.parametrize("part", ["59:", "e", "+", "0x", "-", "._"])
def test_no_scalar_takes_longer_than_it_is_long(part):
    assert plain_scalar("1" + part * 200_000) == "1" + part * 200_000


def test_more_values_than_memory_is_meant_for_are_refused(monkeypatch):
    monkeypatch.setattr(document, "MAX_VALUES", 100)
    with pytest.raises(InputError, match="file is too large"):
        value(f"[{'1,' * 200}]")


HEAD = "version: 1\nname: a\n"
PAIR = f"{HEAD}nodes: [{{name: a, kind: gpu, box: 0}}, {{name: b, kind: gpu, box: 0}}]\n"
LINK = PAIR + "links: [{from: a, to: b, bandwidth: 1 GB/s}]\n"
BOX = "box:\n  nodes: [{name: gpu, kind: gpu, count: 8}]\n"
FABRIC = "fabric:\n  nodes: [{name: s, kind: switch}]\n"
JOIN = "  links: [{from: gpu, to: gpu, bandwidth: 1 GB/s}]\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HEAD + BOX.replace("8", "100000") + JOIN, "CS125"),
        (f"{HEAD}boxes: 1000000000\n{BOX}{FABRIC}", "CS125"),
        (f"{HEAD}boxes: 1000000000\nbox: {{nodes: []}}\n{FABRIC}", "CS125"),
        (f"{HEAD}boxes: {2**70}\n{BOX}{FABRIC}", "CS108"),
        (HEAD + BOX.replace("8", str(2**70)) + JOIN, "CS108"),
        (LINK.replace("box: 0", f"box: {2**70}"), "CS108"),
        (LINK.replace("1 GB/s", "1 GB/s, count: 99999999999"), "CS108"),
        (LINK.replace("1 GB/s", f"{'9' * 400} GB/s"), "CS110"),
        (LINK.replace("1 GB/s", f"1/{'9' * 400} GB/s"), "CS110"),
        (LINK.replace("1 GB/s", "1e999999999 GB/s"), "CS110"),
        (LINK.replace("version: 1", "version: 0x" + "f" * 5000), "CS108"),
    ],
)
def test_absurd_numbers_are_refused_before_anything_is_made_of_them(text, code, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(str(path))
    assert caught.value.diagnostic.code == code
