"""Every help as a stranger reads it."""

import re

import pytest

from colsynth.cli import main
from colsynth.cli.main import run

COMMANDS = [
    *([name] for name in main._COMMANDS),
    *(["topology", name] for name in main._load("topology").commands),
]


def loaded(names):
    found = main._load(names[0])
    return found.commands[names[1]] if names[1:] else found


def shown(names, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert run([*names, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_the_usage_names_all_that_is_needed_and_no_types(names, monkeypatch, capsys):
    text = shown(names, monkeypatch, capsys)
    (usage,) = re.findall(r"Usage: (.*)", text)
    assert usage.startswith(f"colsynth {' '.join(names)}")
    assert not re.search(r"[{<]", usage)
    assert not re.search(r"<\w+>|list\[", text)
    needed = [param for param in loaded(names).params if param.required]
    for param in needed:
        assert param.metavar in usage
        assert param.param_type_name == "argument" or param.opts[0] in usage
    assert text.count("[required]") == len(needed)
    assert not [line for line in text.splitlines() if line.endswith(" ")]


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_a_help_text_is_a_sentence_of_its_own(names):
    for param in loaded(names).params:
        assert param.help, param.name
        first = param.help.split()[0]
        assert first[0].isupper(), param.help
        assert first not in {"Of", "To", "As", "For", "With", "Such", "A", "The"}, param.help
        assert param.help.rstrip("]").endswith((".", param.help.rpartition(": ")[2].rstrip("]")))


@pytest.mark.parametrize("command", ["compile", "bound", "synthesize"])
def test_a_collective_is_marked_as_needed_where_custom_may_replace_it(command, monkeypatch, capsys):
    text = shown([command], monkeypatch, capsys)
    assert "-c COLLECTIVE" in re.findall(r"Usage: (.*)", text)[0]
    assert "Required unless --custom is given." in " ".join(text.replace("│", "").split())
