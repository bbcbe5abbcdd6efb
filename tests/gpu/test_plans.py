"""MSCCL++ plans on a GPU, and the tables that it reads, which need none."""

from __future__ import annotations

import numpy as np
import pytest

from colsynth import api
from colsynth.execute.definition import Call
from colsynth.reading import parse_json
from colsynth.runtimes import profile
from colsynth.runtimes.plans.form import Plan
from colsynth.runtimes.plans.reader import header_of
from tests.gpu.plan_cases import SMALL_BOXES
from tests.gpu.plan_faults import hasty, shifted, silent
from tests.gpu.plan_micro import COUNTS, MOVES
from tests.gpu.plan_tables import tables_of
from tests.gpu.plan_twin import Twin

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "alltoall")
PROTOCOLS = ("Simple", "LL")
"""Signals, and packets."""


def compiled(collective, protocol, ranks=4):
    problem = api.make_problem(api.load_topology(f"clique:{ranks}"), collective)
    options = {"level": 0, "several": False, "mode": "out-of-place", "protocol": protocol}
    return parse_json(api.compile(problem, "mscclpp", **options).artefacts[0].data, Plan)


def bytes_of(plan, each=1024):
    """Return a message size with chunks of so many bytes."""
    return each * max(plan.gpus[0].input_chunks, plan.gpus[0].output_chunks)


@pytest.fixture(scope="module")
def device():
    pytest.importorskip("cupy")
    from tests.gpu import plan_device

    return plan_device


def measured(device, plan):
    own = device.LoadedPlan(plan, profile("mscclpp"), bytes_of(plan))
    return own.measure(launches=1, looks=4), own


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plans_are_right_on_a_gpu(device, collective, protocol):
    found, own = measured(device, compiled(collective, protocol))
    assert (found.wrong, found.stuck, own.left()) == (0, False, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_offset_that_was_changed_shows(device, protocol):
    found, _ = measured(device, shifted(compiled("allgather", protocol)))
    assert found.wrong > 0
    assert not found.stuck


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rank_that_never_signals_hangs_the_others(device, protocol):
    found, _ = measured(device, silent(compiled("allgather", protocol)))
    assert found.stuck


def test_data_is_wrong_where_nobody_waits(device):
    found, _ = measured(device, hasty(compiled("allreduce", "Simple")))
    assert found.wrong > 0


def wrong(plan, each=64):
    """Return the wrong elements after the twin has executed a plan, and whether it hangs."""
    target = profile("mscclpp")
    header, _ = header_of(plan, target)
    calls = [
        Call(header, False, rank, np.dtype(np.float32), bytes_of(plan, each) // 4, in_place=False)
        for rank in range(header.ranks)
    ]
    tables = tables_of(plan, target, calls)
    arena, at = np.zeros(tables.bytes // 4, np.float32), 0
    for call in calls:
        call.fill(0)
        for buffer in (call.given, call.taken):
            arena[at : at + buffer.size] = buffer
            at += buffer.size
    twin, at = Twin(tables, arena), 0
    hangs = twin.run()
    for call in calls:
        for buffer in (call.given, call.taken):
            buffer[:] = arena[at : at + buffer.size]
            at += buffer.size
    assert hangs or twin.left() == 0
    return sum(call.wrong(0)[0] for call in calls), hangs > 0


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tables_say_what_the_plan_says(collective, protocol):
    assert wrong(compiled(collective, protocol)) == (0, False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_twin_finds_faults(protocol):
    plan = compiled("allgather", protocol)
    assert wrong(shifted(plan))[0] > 0
    assert wrong(silent(plan))[1]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("size", [None, 1 << 16])
def test_ports_are_in_the_tables(tmp_path, collective, size):
    path = tmp_path / "boxes.yaml"
    path.write_text(SMALL_BOXES)
    problem = api.make_problem(api.load_topology(path), collective)
    options = {"level": 0, "several": False, "mode": "out-of-place", "size": size}
    plan = parse_json(api.compile(problem, "mscclpp", **options).artefacts[0].data, Plan)
    assert any(c.channel_type == "port" for gpu in plan.gpus for c in gpu.channels)
    assert wrong(plan) == (0, False)


@pytest.mark.parametrize("name", [*COUNTS, *MOVES])
def test_small_plans_end(name):
    plan = (COUNTS | MOVES)[name](64, 6)  # three ranks share six chunks
    assert not wrong(plan)[1]


def test_a_plan_that_multicasts_is_refused():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    found = api.compile(problem, "mscclpp", level=0, several=False, algorithm="multicast")
    with pytest.raises(ValueError, match="multicast"):
        wrong(parse_json(found.artefacts[0].data, Plan))
