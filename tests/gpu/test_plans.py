"""MSCCL++ plans on a GPU."""

from __future__ import annotations

import pytest

from colsynth import api
from colsynth.reading import parse_json
from colsynth.runtimes import profile
from colsynth.runtimes.plans.form import Plan
from tests.gpu.plan_faults import hasty, shifted, silent

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
