"""What cannot be held is refused before the work, with what it would take."""

import os
from pathlib import Path

import pytest

from colsynth.cli.codes import explanations
from colsynth.errors import InputError
from colsynth.model import Collective, Demand, Problem
from colsynth.runtimes.target import Context
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.topology.load import load

RING = load("ring:4")
PAGES = explanations()


def refusal(problem, chunks_per_gpu):
    with pytest.raises(InputError) as caught:
        MatchChunks(chunks_per_gpu=chunks_per_gpu).run(problem, Context())
    found = caught.value.diagnostic
    assert found.code in PAGES
    return found


@pytest.fixture
def small_machine(monkeypatch):
    """Return a function that sets the memory of the machine and of its container."""

    def limit(pages, container=None):
        sizes = {"SC_PAGE_SIZE": 1000, "SC_PHYS_PAGES": pages}
        monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
        text = f"{container}\n" if container is not None else "max\n"
        monkeypatch.setattr(Path, "read_text", lambda *_args, **_options: text)

    return limit


def test_chunks_that_cannot_be_numbered():
    assert refusal(Problem(RING, Collective.ALLGATHER), 2**29).code == "CS125"
    assert refusal(Problem(RING, Collective.ALLTOALL), 2**27).code == "CS125"
    demands = (Demand((0,), (1,), 2**30),)
    assert refusal(Problem(RING, Collective.CUSTOM, demands=demands), 2).code == "CS125"


def test_transfers_that_memory_does_not_hold(small_machine):
    problem = Problem(RING, Collective.ALLTOALL)
    small_machine(pages=76)
    found = refusal(problem, 100)
    assert (found.code, found.phrase[:27]) == ("CS308", "a schedule of 1200 transfer")
    assert "7.68e-05 GB at least, this machine has 7.6e-05 GB" in found.notes[0]
    small_machine(pages=77)
    assert MatchChunks(chunks_per_gpu=100).run(problem, Context()).transfers >= 1200


def test_no_more_transfers_are_on_their_way_than_there_are():
    """A second of latency is the time of a billion chunks; memory for so many is not there."""
    slow = load("ring:8", latency="1s")
    found = MatchChunks(size=1000).run(Problem(slow, Collective.ALLTOALL), Context())
    assert 4 <= found.seconds < 4.001


def test_a_container_may_take_less_than_its_machine(small_machine):
    problem = Problem(RING, Collective.ALLGATHER)
    small_machine(pages=10**6, container=36)
    assert MatchChunks().run(problem, Context()).transfers == 12
    small_machine(pages=10**6, container=35)
    assert refusal(problem, 1).code == "CS308"


def test_a_system_that_tells_nobody_is_no_reason_to_refuse(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_options: "max")
    assert MatchChunks().run(Problem(RING, Collective.ALLGATHER), Context()).transfers == 12
