"""Where the time goes: shares, critical paths and what they name."""

from __future__ import annotations

from fractions import Fraction

import pytest

from colsynth import api
from colsynth.cost import default_model
from colsynth.model import Wait
from colsynth.runtimes import profile
from colsynth.simulate import run
from colsynth.simulate.breakdown import CLASSES, break_down
from colsynth.simulate.trace import trace
from tests.simulate.programs import nccl_ring, program_of, star_topology, step

MSCCL = profile("msccl")
PAIR = star_topology([25 * 10**9] * 2, Fraction(1, 10**6))


def broken(program, topology, size, model=None):
    traced = trace(program, topology, MSCCL, size, model)
    return traced, break_down(traced)


@pytest.mark.parametrize("protocol", ["Simple", "LL", "LL128"])
@pytest.mark.parametrize("size", [100, 10**6, 10**8])
def test_shares_of_time_add_up(protocol, size):
    topology = api.load_topology("dgx-a100")
    _, found = broken(nccl_ring(8, 4, protocol), topology, size)
    assert sum(found.waiting.values()) == pytest.approx(1)
    assert min(found.waiting.values()) >= 0
    whole = found.launch + found.left_out + sum(found.classes.values())
    assert whole == pytest.approx(found.seconds)
    assert tuple(found.classes) == CLASSES
    assert sum(found.causes.values()) == len(found.path)


def test_tiles_left_out_have_a_share_of_their_own(monkeypatch):
    monkeypatch.setattr(run, "SLICES", 1)
    _, found = broken(nccl_ring(8), api.load_topology("dgx-a100"), 4 * 10**9)
    assert 0 < found.simulated < 1
    assert found.left_out > 0.5 * found.seconds
    whole = found.launch + found.left_out + sum(found.classes.values())
    assert whole == pytest.approx(found.seconds)


def test_a_full_link_is_named():
    """Two channels of 25 GB/s each into links that carry 30."""
    pair = star_topology([30 * 10**9, 100 * 10**9])
    blocks = [
        [(1, None, channel, [step("s")]) for channel in (0, 1)],
        [(None, 0, channel, [step("r")]) for channel in (0, 1)],
    ]
    traced, found = broken(program_of(blocks, 1), pair, 10**6)
    (link,) = found.links
    assert traced.machine.topology.link_name(link) == "gpu0 -> switch"
    assert found.classes["sending at link rate"] == found.links[link]
    assert found.classes["sending at block rate"] == 0


def test_a_slow_threadblock_is_named():
    blocks = [[(1, None, 0, [step("s")])], [(None, 0, 0, [step("r")])]]
    traced, found = broken(program_of(blocks, 1), star_topology([10**12] * 2), 10**6)
    assert found.links == {}
    assert found.classes["sending at block rate"] > 0
    assert found.classes["receiving"] > 0
    assert {traced.place(block) for block in found.blocks} == {
        "rank 0, threadblock 0",
        "rank 1, threadblock 0",
    }


def test_latency_dependencies_and_local_work_have_their_shares():
    blocks = [
        [
            (None, None, 0, [step("cpy", signals=True)]),
            (1, None, 1, [step("s", waits=[Wait(0, 0)])]),
        ],
        [(None, 0, 1, [step("r")])],
    ]
    model = default_model(MSCCL)
    traced, found = broken(program_of(blocks, 1), PAIR, 24000, model)
    assert [leg.cause for leg in found.path] == ["order", "dependency", "message"]
    assert found.classes["local copy or sum"] == pytest.approx(1e-6)
    assert found.classes["dependency"] == pytest.approx(model.wait / 1e6)
    assert found.classes["latency"] == pytest.approx((2 + model.hop["Simple"]) / 1e6)
    assert found.classes["step overhead"] == pytest.approx(3 * model.step["Simple"] / 1e6)
    assert [traced.step(unit) for unit in found.dependencies] == [
        "rank 0, threadblock 0, step 0 (cpy)"
    ]


def test_a_full_fifo_is_a_wait_for_a_slot():
    """Eight calls of which two fit, to a receiver that is busy: the sender waits for slots."""
    many = 8
    blocks = [
        [(1, None, 0, [step("s") for _ in range(many)])],
        [(None, 0, 0, [step("cpy", 60), *(step("r") for _ in range(many))])],
    ]
    _, found = broken(program_of(blocks, many), PAIR, many * 2**21)
    assert found.waiting["slot"] > 0.1
    assert found.waiting["dependency"] == 0


def test_an_empty_program_has_an_empty_path():
    _, found = broken(program_of([[], []], 1), PAIR, 8)
    assert found.path == ()
    assert found.waiting == {}
    assert found.seconds == found.launch
