"""What terminals execute never reaches them, wherever names come from."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from colsynth.cli.main import run
from colsynth.cli.progress import progress
from colsynth.cli.streams import prepare_streams

GOOD = Path(__file__).parents[1] / "corpus" / "xml" / "good-allreduce.xml"
EVIL = "a\x1b[31m\x07\u202eb\x7f\udc9bc"
"""Colour, bell, direction of writing, DEL, and a byte of a file name that is no UTF-8."""
MACHINE = """version: 1
name: "a\\e[31m\\a\\u202Eb"
nodes:
  - {name: g0, kind: gpu, box: 0}
  - {name: g1, kind: gpu, box: 0}
links:
  - {from: g0, to: g1, bandwidth: 1 GB/s}
"""
COMMANDS = [
    "verify XML -r rccl",
    "verify XML -r rccl --json",
    "verify GOOD -r rccl",
    "simulate GOOD -r rccl -t clique:2 --sizes 1MB",
    "simulate GOOD -r rccl -t YAML --sizes 1MB --breakdown",
    "simulate TITLED -r rccl -t clique:2 --sizes 1MB",
    "simulate XML -r EVIL -t clique:2",
    "simulate XML -r rccl -t clique:2",
    "topology show YAML",
    "topology check YAML",
    "topology check YAML --json",
    "topology export YAML",
    "topology check KEYS",
    "topology check NAME",
    "topology check NODE",
    "topology check EVIL",
    "topology check EVIL.yaml",
    "bound YAML -c allreduce",
    "bound YAML -c EVIL",
    "bound ring:4 -c allgather --drop-gpu EVIL",
    "bound ring:4 -c allgather --set EVIL",
    "bound ring:4 -c allgather --group EVIL",
    "compile YAML -c allgather -r rccl -o - --dump-ir all --time-passes",
    "compile YAML -c allgather -r rccl -o EVIL.xml",
    "compile ring:4 -c allgather -r rccl -o GOOD",
    "compile ring:4 -c allgather -r rccl -o GOOD/x",
    "compile ring:4 -c allgather -r rccl -o a.xml --passes EVIL",
    "compile ring:4 -c allgather -r rccl --EVIL",
    "synthesize YAML -c allgather",
    "survey YAML -c allgather --jobs 1",
    "compare YAML -c allgather --jobs 1 --budget 1 --sizes 1MB --algorithms ring",
    "explain EVIL",
    "EVIL",
]


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    titled = re.sub(
        rb'name="[^"]*"', b'name="colsynth \x1b[31m\x9b31m x"', GOOD.read_bytes(), count=1
    )
    files = {
        "GOOD": GOOD.read_bytes(),
        "TITLED": titled,
        "XML": GOOD.read_bytes().replace(b"<gpu ", b'<\x1b[31m\x9b31m \x07="\x1b"/><gpu \x1b="1" '),
        "YAML": MACHINE.encode(),
        "NAME": MACHINE.replace("lab", '"\\e[31m"').encode(),
        "NODE": MACHINE.replace("g0", '"\\u202E"').encode(),
        "KEYS": MACHINE.replace("version:", '"\\e[31m": 1\nversion:').encode(),
    }
    for name, data in files.items():
        Path(f"{EVIL}.{name}.yaml").write_bytes(data)
    return {name: f"{EVIL}.{name}.yaml" for name in files} | {"EVIL": EVIL}


def commanding(text):
    return [x for x in text if not x.isprintable() and x != "\n"]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_commands_the_terminal(command, places, capsys):
    words = [
        re.sub(r"[A-Z]{3,}", lambda m: places.get(m[0], m[0]), w) for w in shlex.split(command)
    ]
    assert run(words) in (0, 1, 2)
    shown = capsys.readouterr()
    assert shown.out or shown.err
    assert commanding(shown.out) == []
    assert commanding(shown.err) == []


def test_progress_shows_names_as_they_are(monkeypatch):
    """Neither a control character nor what rich takes for markup."""
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with progress() as show:
        show(f"verify {EVIL}[/red]", 0, 1)
    assert r"a\x1b[31m\x07\u202eb\x7f\x9bc[/red]" in screen.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_that_a_terminal_lacks_are_spelt_otherwise(encoding, monkeypatch):
    for words in (["show", str(GOOD), "-r", "rccl"], ["guide", "bounds"], ["guide", "simulate"]):
        out = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
        prepare_streams()
        assert run(words) == 0
        sys.stdout.flush()
        assert "??" not in out.getvalue().decode(encoding)
