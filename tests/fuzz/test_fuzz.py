"""Whatever files and options say, a command answers, refuses or is told no: it never breaks.

Cases are the same on every run. COLSYNTH_FUZZ_SEED chooses others, as continuous integration does
by date; COLSYNTH_FUZZ_CASES says how many. To repeat a failure, run the test with the seed that it
names.
"""

import os
import resource
import traceback
from pathlib import Path

import pytest

from tests.fuzz.cases import make, meet, prepare
from tests.watchdog import TooLong, at_most

SEED = os.environ.get("COLSYNTH_FUZZ_SEED", "1")
CASES = int(os.environ.get("COLSYNTH_FUZZ_CASES", "800"))
PARTS = 20
SECONDS, BYTES = 20, 2 * 2**30
ANSWERS = (0, 1, 2, 130)


@pytest.fixture
def little_memory():
    """Two gigabytes beyond what the process has by now; more end in a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def small_machines(monkeypatch):
    """Lower limits, below which the honest work of a topology takes no seconds."""
    for room in ("builder", "joins", "graphs.grammar"):
        monkeypatch.setattr(f"colsynth.topology.{room}.MAX_LINKS", 2**14)
    for room in ("builder", "compact", "graphs.grammar"):
        monkeypatch.setattr(f"colsynth.topology.{room}.MAX_NODES", 2**11)


@pytest.mark.usefixtures("little_memory", "small_machines")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_command_line_and_every_file_is_answered(part, tmp_path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    prepare(tmp_path)
    capsysbinary.readouterr()
    wrong = [
        f"COLSYNTH_FUZZ_SEED={SEED}, case {number}, {name}: {fault}"
        for number in range(part, CASES, PARTS)
        for name, fault in [_fault(number, capsysbinary)]
        if fault
    ]
    assert not wrong, "\n\n".join(wrong)


def _fault(number, captured):
    """Return the name of a case and what is wrong with its answer, empty for nothing."""
    name, made = "its making", None
    try:
        with at_most(SECONDS):
            name, made = make(SEED, number)
            code = meet(made)
    except (Exception, TooLong):  # noqa: BLE001 - whatever it is, it is a failure
        return name, f"{made}\n{traceback.format_exc(limit=-6)}"
    out, err = captured.readouterr()
    if code not in ANSWERS or b"Traceback" in err:
        return name, f"exit {code} of {made}\n{err.decode('utf-8', 'replace')[:2000]}"
    if b"\x1b" in out + err:
        return name, f"raw control characters in the answer of {made}"
    return name, ""
