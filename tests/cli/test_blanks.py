"""No answer ends a line in blanks: not in a pipe, and not on a terminal with colours."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from colsynth.cli.main import run
from colsynth.cli.streams import TrimmedStream

FILE = Path(__file__).parents[1] / "corpus" / "xml" / "good-allreduce.xml"
COMMANDS = [
    "--help",
    "bound dgx-1v -c allreduce",
    "bound ring:4 -c alltoall --drop-link gpu0-gpu1",
    "synthesize ring:4 -c allgather",
    "compile ring:4 -r msccl -c allgather -o a.xml --force",
    "compile ring:4 -r msccl -c allgather -o -",
    f"verify {FILE} -r rccl",
    f"simulate {FILE} -r msccl -t clique:2 --sizes 1MB --breakdown",
    "simulate --show-model",
    "compare ring:4 -c allgather --jobs 1 --budget 3 --sizes 1MB",
    "survey ring:4 -c allgather --jobs 1",
    "tune ring:4 -c allgather -r msccl -o d --jobs 1 --budget 3 --sizes 1MB --force",
    "topology list",
    "topology show dgx-a100 --nodes 2",
    "topology export ring:4",
    "passes",
    "runtimes",
    "explain",
    "explain B04",
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_ends_in_blanks(command, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run(shlex.split(command))
    answer = capfd.readouterr()
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    if not command.endswith("-o -"):
        run(shlex.split(command))
    on_screen = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    for text in (answer.out, answer.err, on_screen):
        assert [line for line in text.split("\n") if line != line.rstrip()] == []
    assert answer.out


def test_colours_stay_and_so_do_blanks_within_a_line():
    stream = io.StringIO()
    TrimmedStream(stream).write("a  b \x1b[1m  \x1b[0m \n  c ")
    assert stream.getvalue() == "a  b\x1b[1m\x1b[0m\n  c "
