"""Every bad file of the corpus gets its one diagnostic, with file, line and column.

To add a case: put NAME.yaml into tests/corpus/topology/bad, and what is to be said
about it into NAME.txt.
"""

from pathlib import Path

import pytest
import yaml

from colsynth.errors import EXIT_INPUT, InputError
from colsynth.topology import document, load
from tests.each import each

FOLDER = Path(__file__).parents[1] / "corpus" / "topology" / "bad"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
EXPLANATIONS = Path(document.__file__).parents[1] / "explanations" / "topology.yaml"


def complaint(case):
    with pytest.raises(InputError) as caught:
        load(f"{case}.yaml")
    assert caught.value.exit_code == EXIT_INPUT
    return caught.value


def expected(case):
    return (FOLDER / f"{case}.txt").read_text(encoding="utf-8").splitlines()


@each("case", CASES)
def test_diagnostic(case, monkeypatch):
    monkeypatch.chdir(FOLDER)
    error = complaint(case)
    assert error.diagnostic.span.line is not None
    assert error.diagnostic.span.column is not None
    said = str(error).splitlines()
    if error.diagnostic.code == "CS103":
        # The parser words its own notes, differently with and without libyaml.
        assert said[0] == expected(case)[0]
    else:
        assert said == expected(case)


@each("case", CASES)
def test_diagnostic_without_libyaml(case, monkeypatch):
    monkeypatch.chdir(FOLDER)
    monkeypatch.setattr(document, "_LOADER", yaml.SafeLoader)
    assert str(complaint(case)).splitlines()[0] == expected(case)[0]


@pytest.mark.parametrize("loader", [document._LOADER, yaml.SafeLoader])
def test_brackets_beyond_the_limits_of_parsers(loader, monkeypatch):
    monkeypatch.setattr(document, "_LOADER", loader)
    with pytest.raises(InputError, match=r"^deep:2:\d+: error\[CS103\]: .* nested too deeply"):
        document.parse_document("version: 1\nname: " + "[" * 100_000, "deep")


def test_every_code_is_explained():
    told = {line.split("error[")[1][:5] for case in CASES for line in expected(case)[:1]}
    pages = yaml.safe_load(EXPLANATIONS.read_text(encoding="utf-8"))
    assert told <= set(pages)
    for page in pages.values():
        assert set(page) == {"title", "meaning", "why", "fix", "example"}
        assert all(isinstance(text, str) and text.strip() for text in page.values())


def test_every_code_of_the_room_is_explained():
    room = Path(document.__file__).parent
    cli = room.parents[0] / "cli" / "machine.py"
    sources = [*room.glob("*.py"), cli]
    used = {
        word[:5]
        for path in sources
        for word in path.read_text(encoding="utf-8").split('"')
        if word.startswith("CS1") and len(word) == 5
    }
    assert used == set(yaml.safe_load(EXPLANATIONS.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "name", ["good-pair.xml", "good-with-names.txt", "w16-escapes.txt", "w23-tree.conf"]
)
def test_what_a_tool_printed_of_a_machine_is_sent_to_the_import(name):
    path = FOLDER.parents[1] / "machines" / name
    with pytest.raises(InputError) as refusal:
        load(str(path))
    assert f"colsynth topology import {path}" in refusal.value.diagnostic.help
