"""Chrome's trace event format, which Perfetto opens."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from colsynth import api
from colsynth.runtimes import profile
from colsynth.simulate.timeline import timeline
from colsynth.simulate.trace import link_use, trace
from tests.simulate.programs import nccl_ring, program_of

MSCCL = profile("msccl")


@pytest.fixture(scope="module")
def traced():
    topology = api.load_topology("dgx-a100")
    problem = api.make_problem(topology, "allreduce")
    done = api.compile(problem, "msccl", mode="in-place")
    return trace(done.artefacts[0].program, topology, MSCCL, 10**7)


@pytest.fixture(scope="module")
def events(traced):
    return json.loads(json.dumps(timeline(traced)))["traceEvents"]


def test_every_threadblock_and_the_links_have_tracks(traced, events):
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names[0, None] == "rank 0 (gpu0.0)"
    assert names[8, None] == "links"
    for rank, block in traced.machine.blocks:
        assert names[rank, block] == f"threadblock {block}"
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"}
    assert used <= set(names)
    assert used == set(traced.machine.blocks)


def test_events_are_of_the_format(events):
    for event in events:
        assert event["ph"] in ("M", "X", "C")
        if event["ph"] != "M":
            assert event["ts"] >= 0
            assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["dur"] >= 0


def test_a_threadblock_does_one_thing_at_a_time(traced, events):
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        assert spans == sorted(spans)
        for (_, end), (begin, _) in pairwise(spans):
            assert begin >= end - 2e-6  # nanoseconds, written in microseconds
    last = max(end for spans in tracks.values() for _, end in spans)
    assert last == pytest.approx(traced.run.block_end.max() / 1e3, abs=1e-5)
    launch = traced.machine.model.launch["Simple"]
    assert last + launch == pytest.approx(traced.run.seconds * 1e6)


def test_steps_move_the_bytes_of_the_message(events):
    sent = sum(e["args"]["bytes"] for e in events if e["ph"] == "X" and e["name"] == "s")
    assert sent == pytest.approx(2 * 7 * 10**7, rel=1e-6)


def test_links_are_used_within_what_they_carry(traced, events):
    shares = [e["args"]["percent"] for e in events if e["ph"] == "C"]
    assert shares
    assert min(shares) >= 0
    assert max(shares) <= 100.001
    moved = defaultdict(float)
    for use in link_use(traced):
        assert list(use.times) == sorted(use.times)
        assert use.share[-1] == 0
        widths = use.times[1:] - use.times[:-1]
        moved[use.link] = (use.share[:-1] * widths).sum() * traced.machine.capacity[use.link]
    for link in range(len(traced.machine.topology.links)):
        if "nvswitch" in traced.machine.topology.link_name(link):
            assert moved[link] == pytest.approx(2 * 7 / 8 * 10**7, rel=1e-3)


def test_the_head_says_what_was_simulated(traced):
    head = timeline(traced)["otherData"]
    assert head["size_bytes"] == 10**7
    assert head["topology"] == "dgx-a100 x1"
    assert head["tiles_shown"] == head["tiles"] == 1


def test_nothing_to_do_is_an_empty_timeline():
    traced = trace(program_of([[], []], 1), api.load_topology("ring:2"), MSCCL, 8)
    assert [e["ph"] for e in timeline(traced)["traceEvents"]] == ["M"] * 3


def test_waits_are_named(events):
    waits = {e["name"] for e in events if e["name"].startswith("wait")}
    assert "wait for message" in waits
    traced = trace(nccl_ring(4), api.load_topology("ring:4"), MSCCL, 10**8)
    assert len(traced.run.times) == 4 * 7 * 2 * traced.run.tiling.tiles  # ranks, steps, slices
