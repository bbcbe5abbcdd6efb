"""Plans that colsynth writes give right results when they are executed on numbers."""

import copy
import json
from functools import cache

import numpy as np
import pytest

from colsynth import api
from colsynth import topology as topologies
from tests.each import each
from tests.reference.plan_executor import Executor, Hang

SHRINK = 1 << 14
LAUNCHES = 3
PAIRS = """
version: 1
name: pairs
boxes: 2
box:
  nodes: [{name: gpu, kind: gpu, count: 2}, {name: nic, kind: nic, count: 2}]
  links:
    - {from: gpu, to: gpu, bandwidth: 100 GB/s}
    - {from: gpu, to: nic, join: blocks, bandwidth: 25 GB/s}
fabric:
  nodes: [{name: ib, kind: switch}]
  links: [{from: nic, to: ib, bandwidth: 25 GB/s}]
"""
"""Two boxes of two GPUs: channels within a box are of memory, between boxes of ports."""


@cache
def compiled(machine, collective, algorithm, protocol, largest=None):
    data = PAIRS.encode() if machine == "pairs" else None
    topology = topologies.load(machine, data=data)
    rooted = collective in ("broadcast", "reduce")
    problem = api.make_problem(topology, collective, 1 if rooted else None)
    options = {"algorithm": algorithm, "protocol": protocol, "level": 0, "max_bytes": largest}
    done = api.compile(problem, "mscclpp", mode="auto", several=True, **options)
    return [json.loads(item.data) for item in done.artefacts]


def buffers(plan, chunk, rng):
    """Return input and output of every rank, and what the output must be."""
    gpus, what = plan["gpus"], plan["collective"]
    ranks = len(gpus)
    i, o = gpus[0]["input_chunks"] * chunk, gpus[0]["output_chunks"] * chunk
    whole = [rng.integers(1, 1 << 40, max(i, o)) for _ in range(ranks)]
    part = max(i, o) // ranks
    inputs, outputs = [], []
    for rank in range(ranks):
        shift = rank * part
        start, end = (shift if what == "allgather" else 0), (shift if what[:7] == "reduces" else 0)
        inputs.append(whole[rank][start : start + i])
        free = whole[rank] if plan["inplace"] else np.zeros(max(i, o), np.int64)
        outputs.append(free[end : end + o] if plan["inplace"] else free[:o])
    given = [data.copy() for data in inputs]
    total, slices = sum(given), range(0, max(i, o), max(part, 1))
    wanted = {
        "allreduce": lambda _: total,
        "reduce": lambda r: total if r == 1 else None,
        "broadcast": lambda _: given[1],
        "reducescatter": lambda r: total[r * part : (r + 1) * part],
        "allgather": lambda _: np.concatenate(given),
        "alltoall": lambda r: np.concatenate(
            [given[s][r * part : (r + 1) * part] for s in range(ranks)]
        ),
    }[what]
    assert len(slices) >= 1
    return (inputs, outputs), [wanted(rank) for rank in range(ranks)]


COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "reduce")
CASES = [
    ("mesh:2x2", "allreduce", "forest", "Simple"),
    ("mesh:2x2", "reduce-scatter", "forest", "Simple"),
    ("clique:5", "reduce-scatter", "hierarchical", "Simple"),
    ("mesh:2x2", "allgather", "forest", "LL"),
    ("mesh:2x3", "allreduce", "forest", "LL"),
    ("ring:4", "reduce-scatter", "forest", "Simple", 1 << 20),
    ("pairs", "allreduce", "forest", "Simple", 1 << 20),
    ("ring:4", "reduce", "forest", "Simple"),
    ("ring:3", "broadcast", "forest", "Simple"),
    *(("clique:5", "alltoall", "ten", kind) for kind in ("Simple", "LL")),
    ("mesh:2x2", "alltoall", "ten", "Simple", 1 << 16),
    *(("pairs", collective, "ten", "Simple") for collective in COLLECTIVES),
    *(("pairs", collective, "ten", "LL") for collective in COLLECTIVES[:4]),
    *(("pairs", collective, "ring", "LL") for collective in COLLECTIVES[:2]),
    *(("pairs", collective, "forest", "Simple") for collective in COLLECTIVES[:3]),
]


def right(plan, seed):
    """Execute three launches; return whether all results are right."""
    units = {
        op["iter_context"]["unit_size"]
        for gpu in plan["gpus"]
        for block in gpu["threadblocks"]
        for op in block["ops"]
        if op["name"] == "pipeline"
    }
    # As many iterations as make slots wrap twice; else a few elements.
    chunk = 5 * min(units) // SHRINK // 16 if units else 3
    rng = np.random.default_rng(seed)
    calls = [buffers(plan, chunk, rng) for _ in range(LAUNCHES)]
    shrink = SHRINK if units else 1 << 8
    try:
        Executor(plan, chunk, shrink, seed).run([call for call, _ in calls])
    except Hang:
        return False
    return all(
        expected is None or (output == expected).all()
        for (_, outputs), wanted in calls
        for output, expected in zip(outputs, wanted, strict=True)
    )


@each("case", CASES)
def test_results_are_right_launch_after_launch(case):
    assert all(right(plan, seed) for seed, plan in enumerate(compiled(*case)))


@pytest.mark.parametrize("name", ["nop", "signal", "copy"])
def test_the_executor_notices_what_is_missing(name):
    """Else it would prove nothing."""
    plan = copy.deepcopy(compiled("ring:4", "reduce-scatter", "forest", "Simple", 1 << 20)[0])
    for gpu in plan["gpus"]:
        for block in gpu["threadblocks"]:
            block["ops"] = [op for op in block["ops"] if op["name"] != name]
    changed = plan != compiled("ring:4", "reduce-scatter", "forest", "Simple", 1 << 20)[0]
    assert changed == (not all(right(plan, seed) for seed in range(5)))
