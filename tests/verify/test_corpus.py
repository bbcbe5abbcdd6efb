"""One small file per rule; each says in its last comments what must be found in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from colsynth.model import Severity
from colsynth.runtimes import profile
from colsynth.runtimes.rules import severities
from colsynth.verify import verify_bytes
from tests.each import each

CORPUS = Path(__file__).parents[1] / "corpus" / "xml"
EXPECT = re.compile(rb"<!-- expect on (\S+): errors ([^;]+); warnings (.+) -->")
ELSEWHERE = {
    # Files too large to read here: tests/verify/test_limits.py.
    *("X10", "X11", "T02", "T05", "T08", "S03", "R02"),
    # About sets of files: tests/runtimes/test_environment.py.
    *("F01", "F02", "F03", "F04", "F05", "F06", "F07"),
    # How the tool works, not what a file says.
    *("G04",),
}

ALARMING = re.compile("never finish|wait for each other|hang|deadlock|stuck|miscount")


def _cases():
    for path in sorted(CORPUS.glob("*.xml")):
        for runtime, errors, warnings in EXPECT.findall(path.read_bytes()):
            rules = (set(found.decode().split()) - {"none"} for found in (errors, warnings))
            yield (path, runtime.decode(), *rules)


CASES = list(_cases())


@each("case", CASES)
def test_findings_are_those_the_file_names(case):
    """What sounds like a fault of a good file says first that the file is fine."""
    path, runtime, errors, warnings = case
    report = verify_bytes(path.read_bytes(), profile(runtime), subject=path.name)
    assert {f.rule for f in report.findings if f.severity is Severity.ERROR} == errors
    assert {f.rule for f in report.findings if f.severity is Severity.WARNING} == warnings
    if not report.ok:
        return
    told = [(f.rule, f.message) for f in report.findings] + list(report.facts)
    for rule, text in told:
        alarming = ALARMING.search(text)
        assert not alarming or text.startswith("the file is "), f"{rule}: {text}"


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
def test_every_rule_has_a_file(runtime):
    shown = {
        rule for _, of, errors, warnings in CASES if of == runtime for rule in errors | warnings
    }
    findable = {rule for rule, level in severities(runtime).items() if level != "note"}
    assert findable - ELSEWHERE <= shown


def test_every_file_says_what_to_expect():
    silent = [p.name for p in CORPUS.glob("*.xml") if not EXPECT.search(p.read_bytes())]
    assert silent == []


def test_findings_know_their_line():
    path = CORPUS / "b04-race.xml"
    lines = path.read_text().splitlines()
    report = verify_bytes(path.read_bytes(), profile("rccl"), subject=path.name)
    found = [(lines[f.line - 1], f.step) for f in report.errors if f.rule == "B04"]
    assert found
    assert all(f'<step s="{step}"' in line for line, step in found)
