"""Whatever a file holds, the verifier answers; it never breaks and never runs away."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth.runtimes import profile
from colsynth.verify import verify_bytes

CORPUS = sorted((Path(__file__).parents[1] / "corpus" / "xml").glob("good-*.xml"))
NUMBERS = ("-1", "0", "2", "71", "127", "128", "32768", "2000000000", "-2000000000", "9" * 5000)


def _answers(data: bytes, runtime: str) -> None:
    report = verify_bytes(data, profile(runtime), subject="damaged")
    assert report.subject == "damaged"
    assert all(finding.message for finding in report.findings)


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
def test_changed_numbers(path, runtime):
    text = path.read_text()
    places = [m.span(1) for m in re.finditer(r'="(-?\d+)"', text)]
    rng = random.Random(path.stem)
    for begin, end in rng.sample(places, min(40, len(places))):
        value = rng.choice(NUMBERS)
        _answers((text[:begin] + value + text[end:]).encode(), runtime)


@pytest.mark.parametrize("key", ["ngpus", "nchunksperloop", "nchannels", "id", "s_chunks", "cnt"])
def test_huge_sizes(key):
    text = CORPUS[0].read_text()
    for value in NUMBERS:
        changed = re.sub(rf' {key}="-?\d+"', f' {key}="{value}"', text, count=1)
        assert changed != text or value in ("0", "2")
        _answers(changed.encode(), "msccl-executor")


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_changed_characters(path):
    data = path.read_bytes()
    rng = random.Random(path.stem)
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(damaged))
            choice = rng.randrange(3)
            if choice == 0:
                damaged[at] = rng.randrange(256)
            elif choice == 1:
                del damaged[at : at + rng.randint(1, 40)]
            else:
                damaged[at:at] = data[at : at + rng.randint(1, 200)]
        _answers(bytes(damaged), "rccl")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    _answers(data, "msccl")


def test_many_faults_take_no_longer_than_few():
    """Half a megabyte of tabs, text and broken tags: linear, and the report stays short."""
    data = b"\t<a x='1'>word" * 40_000
    report = verify_bytes(data, profile("rccl"), subject="broken")
    assert not report.ok
    assert len(report.findings) < 60
