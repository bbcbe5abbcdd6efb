"""What every answer under ``--json`` has in common: the unit of a number stands in its key."""

import json
import re
from pathlib import Path

import pytest

from colsynth.cli.main import run

README = Path(__file__).parents[2] / "README.md"
CORPUS = Path(__file__).parents[1] / "corpus"
FILE = str(CORPUS / "xml" / "good-allreduce.xml")
SHARES = {
    *("gap", "over_library", "simulated_share", "threadblock_time", "prices", "mean_height"),
    *("limited_by", "residual", "noise"),
}
"""Fractional numbers that have no unit."""
CONSTANTS = {("constants", key) for key in ("default", "value", "interval_95")}
"""Constants of the model, in a list of many units; each item names its own."""

COMMANDS = [
    "bound dgx-1v -c allreduce",
    "bound ring:4 -c alltoall --drop-link gpu0-gpu1",
    "bound ring:4 -c allgather --steps",
    "topology show dgx-a100 --nodes 2",
    "synthesize ring:4 -c allgather",
    "compile ring:4 -r msccl -c allgather -o a.xml",
    "compile ring:4 -r msccl -c allgather -a ten -o b.xml",
    "survey ring:4 -c allgather --jobs 1",
    "compare ring:4 -c allgather --jobs 1 --budget 3 --sizes 1MB",
    f"simulate {FILE} -r msccl -t clique:2 --sizes 1MB --breakdown",
    f"calibrate dgx-a100 -r msccl --nodes 2 --log {CORPUS}/logs/new_layout.txt",
    f"calibrate dgx-a100 -r msccl --log {CORPUS}/logs/nvbandwidth.txt",
    "tune ring:4 -c allgather -r msccl -o d --jobs 1 --budget 12 --sizes 1GB",
]


def units():
    """Return the endings that the README explains."""
    rows = re.findall(r"^\| (`_.*?`(?:, `.*?`)*) \|", README.read_text(), re.MULTILINE)
    return tuple(re.findall(r"`(.*?)`", " ".join(rows)))


def fractions(value, keys=()):
    """Yield the keys on the way to every fractional number."""
    if isinstance(value, float):
        yield keys
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield from fractions(inner, (*keys, key))
    for inner in value if isinstance(value, list) else ():
        yield from fractions(inner, keys)


def lists(value):
    """Yield every list, whose rows have the same keys."""
    if isinstance(value, list):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from lists(inner)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_unit_of_every_fraction_stands_in_its_key(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run([*command.split(), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    for rows in lists(answer):
        assert len({frozenset(row) for row in rows if isinstance(row, dict)}) <= 1
    found = set(fractions(answer))
    assert found
    assert len(units()) == 7
    for keys in found - CONSTANTS:
        assert any(key in SHARES or key.endswith(units()) for key in keys), keys
