"""Two commands at once on one target never damage what is good there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RING = ("ring:4", "-c", "allgather")
FILE = ("compile", *RING, "-r", "msccl", "-a", "ring")
BOTH = ("compile", "ring:4", "-c", "allreduce", "-r", "msccl", "-a", "ring")
QUICK = ("ring:2", "-c", "allgather", "-r", "msccl", "--budget", "2", "--jobs", "1")
SURVEY = ("survey", "ring:3", "-c", "allgather", "--jobs", "1", "-o", "out")

WRITERS = {
    "compile": ((*FILE, "-o", "out.xml"), ("--instances", "1"), ("--instances", "2")),
    "compile-folder": ((*BOTH, "-o", "out/"), ("--instances", "1"), ("--instances", "2")),
    "compile-dumps": (
        (*FILE, "-o", "-", "--dump-dir", "out"),
        ("--instances", "1"),
        ("--instances", "2"),
    ),
    "synthesize": (
        ("synthesize", *RING, "--schedule", "out.npz"),
        ("--chunks-per-gpu", "1"),
        ("--chunks-per-gpu", "2"),
    ),
    "simulate": (
        ("simulate", "good.xml", "-t", "ring:4", "--timeline", "out.json"),
        ("--sizes", "1KiB"),
        ("--sizes", "1MiB"),
    ),
    "compare": (
        ("compare", *QUICK, "--plot", "out.svg"),
        ("--sizes", "1KiB,2KiB"),
        ("--sizes", "1MiB,2MiB"),
    ),
    "tune": (("tune", *QUICK, "-o", "out"), ("--sizes", "1KiB"), ("--sizes", "1MiB")),
    "survey": (SURVEY, ("-r", "msccl"), ("-r", "rccl")),
}
"""Of every command that writes: how it begins, and two ways to go on that write other bytes."""

FIRST = {"simulate": [(*FILE, "-O0", "-o", "good.xml")]}
"""What makes the files that a command reads."""

CASES = [
    (name, force) for name in WRITERS for force in (False, True) if name != "compile-dumps" or force
]
CLAIMS = ("tune", "survey")
"""Commands that keep others away as long as they work."""


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    answer = tmp_path_factory.mktemp("twins") / "answer.json"
    asked = []
    for name, (begin, *ways) in WRITERS.items():
        asked.append({"first": FIRST.get(name, []), "pair": [[*begin, *way] for way in ways]})
    subprocess.run(
        [sys.executable, "-m", "tests.cli.twins", answer],
        cwd=Path(__file__).parents[2],
        input=json.dumps(asked),
        stdout=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    return dict(zip(WRITERS, json.loads(answer.read_text()), strict=True))


@pytest.mark.parametrize(("name", "force"), CASES)
def test_one_of_two_has_written_all_and_the_other_says_why_not(name, force, met):
    found = met[name]["force" if force else "plain"]
    wholes, codes, files, words = (found[key] for key in ("wholes", "codes", "files", "words"))
    assert wholes[0] != wholes[1]
    assert 0 in codes
    assert set(codes) <= {0, 2}, words
    if 2 in codes:
        loser = codes.index(2)
        assert "error[CS2" in words[loser]
        assert not force or name in CLAIMS
        assert files == wholes[1 - loser]
    elif name == "compile-dumps":  # every dump is whole by itself
        assert all(text in (wholes[0][path], wholes[1][path]) for path, text in files.items())
    else:
        assert force
        assert files in wholes
