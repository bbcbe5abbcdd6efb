"""Rounds take as long as the GPU or the host needs, and no bound is above that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colsynth import api
from colsynth.bounds.optimum import best_optimum
from colsynth.bounds.runtime import runtime_bounds
from colsynth.cost import default_model
from colsynth.model import Collective, Header, LocalStep, Message, Round, RoundProgram, Slot
from colsynth.runtimes import profile
from colsynth.simulate import simulate
from colsynth.simulate.rounds import costs, seconds, shares

TORCH = profile("torch")
MODEL = replace(default_model(TORCH), launch={"Simple": 20.0}, round=45.0, post=15.0)


def example():
    """Return two rounds on two ranks: three messages with a sum, then one message back."""
    there = [Message(0, 1, Slot("i", n), Slot("s", n), 1) for n in range(3)]
    back = Message(1, 0, Slot("i", 0), Slot("i", 0), 1)
    added = LocalStep(1, Slot("s", 0), Slot("i", 0), Slot("i", 0), 1)
    header = Header("", Collective.ALLREDUCE, "Simple", 2, 3, 1, True, True)
    return RoundProgram(header, (0, 3), (Round(tuple(there), (added,)), Round((back,), ())))


def test_small_messages_take_what_the_host_takes():
    machine = api.load_topology("ring:2")
    hop = MODEL.hop["Simple"] + 1e6 * float(machine.links[0].latency)
    first = 20 + 45 + 3 * 15  # the launch, a round, three messages at one of the ranks
    arrived = first + 2 * MODEL.step["Simple"] + 2 * MODEL.hop["Simple"] + hop
    assert arrived < first + 15  # so the sum waits for the host, and the next round, too
    assert arrived + MODEL.wait < first + 15 + 45 + 15
    end = first + 15 + 45 + 15 + 2 * MODEL.step["Simple"] + hop
    assert seconds(example(), machine, [12], MODEL)[0] == pytest.approx(end / 1e6, rel=1e-4)


def test_large_messages_hide_all_that_the_host_does_but_the_begin():
    machine, size = api.load_topology("ring:2"), 3 << 30
    busy = sum(sum(row.parts(size / 3).values()) for row in costs(example(), machine, MODEL))
    begin = 20 + 45 + 3 * 15
    assert seconds(example(), machine, [size], MODEL)[0] == pytest.approx(busy + begin / 1e6)
    found = shares(example(), machine, size, MODEL)
    assert sum(found.values()) == pytest.approx(1)
    assert found["rounds"] < 0.1
    assert shares(example(), machine, 12, MODEL)["rounds"] > 0.9


@pytest.mark.parametrize(
    ("runtime", "machine", "collective", "algorithm"),
    [
        ("torch", "ring:3", "allgather", "forest"),
        ("mscclpp", "dgx-h100", "allreduce", "multicast"),
    ],
)
def test_links_carry_more_than_the_payload(runtime, machine, collective, algorithm):
    target, size = profile(runtime), [3 << 28]
    topology, model = api.load_topology(machine), default_model(target)
    problem = api.make_problem(topology, collective)
    half = replace(model, payload=dict.fromkeys(model.payload, 0.5))
    (made,) = api.compile(problem, runtime, algorithm=algorithm, several=False).artefacts
    whole, point = (simulate(made.program, topology, target, size, one)[0] for one in (model, half))
    assert 1.5 * whole.seconds < point.seconds <= 2 * whole.seconds
    (least,) = runtime_bounds(problem, target, best_optimum(problem), size, half)
    assert point.seconds >= least.seconds


@pytest.mark.parametrize("runtime", ["torch", "msccl", "mscclpp"])
@pytest.mark.parametrize("collective", ["allgather", "allreduce", "broadcast"])
def test_bounds_count_the_host_only_where_predictions_do(runtime, collective):
    """A runtime whose GPU reads the program itself takes no time for rounds, whatever is given."""
    model = replace(default_model(profile(runtime)), round=5000.0, post=300.0)
    problem = api.make_problem(api.load_topology("dgx-a100"), collective)
    done = api.compile(problem, runtime, level=0, several=False, model=model)
    for point in done.predicted:
        assert point.seconds >= point.least.seconds
    sizes = [point.size_bytes for point in done.predicted]
    found, free = (
        runtime_bounds(problem, profile(runtime), best_optimum(problem), sizes, one)
        for one in (model, replace(model, round=0.0, post=0.0))
    )
    host = 5300e-6 if runtime == "torch" else 0.0
    for one, other in zip(found, free, strict=True):
        assert one.latency == pytest.approx(other.latency + host)
