"""Sums of several messages in one step: right results, fewer steps, and predicted as written."""

import json
from dataclasses import replace

import pytest
from msgspec import structs

from colsynth import api
from colsynth.lowering.finishes import finishes
from colsynth.lowering.fold_sums import folded, folds
from colsynth.model import Wait
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.runtimes import profile
from colsynth.runtimes.choice import Basis
from colsynth.search.case import Case
from colsynth.search.measured import Limit
from colsynth.search.plan import Plan
from colsynth.search.workshop import Workshop
from colsynth.topology import load
from tests.verify.plans.test_execution import PAIRS, right

BOXES = PAIRS.replace("count: 2", "count: 4")
FORMS = {
    "pipeline": {},
    "flat": {"max_bytes": 1 << 16},
    "packets": {"protocol": "LL", "max_bytes": 1 << 16},
}


def compiled(machine, collective, fold, runtime="mscclpp", **options):
    topology = load(machine, data=BOXES.encode() if machine == "boxes" else None)
    problem = api.make_problem(topology, collective, 1 if collective == "reduce" else None)
    pipeline = ALGORITHMS["forest"].replace("strategy=", f"fold={fold},strategy=")
    return topology, api.compile(problem, runtime, level=0, passes=pipeline, **options)


def most_sources(data):
    """Return the most sources of a sum."""
    blocks = [b for gpu in json.loads(data)["gpus"] for b in gpu["threadblocks"]]
    ops = [[x for op in b["ops"] for x in (op, *op.get("ops", ()))] for b in blocks]
    sums = [len(x["src_buff"]) for row in ops for x in row if x["name"] in ("re", "repkt")]
    return max(sums)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("machine", "collective"),
    [("clique:5", "reduce-scatter"), ("clique:6", "allreduce"), ("boxes", "allreduce")],
)
def test_folded_sums_are_right_and_predicted_as_they_are_written(machine, collective, form):
    topology, done = compiled(machine, collective, 3, **FORMS[form])
    for artefact in done.artefacts:
        assert most_sources(artefact.data) == 4
        assert right(json.loads(artefact.data), 7)
    sizes = [point.size_bytes for point in done.predicted]
    told = api.simulate(done.artefacts[0].data, "mscclpp", topology, sizes).points
    for point, predicted in zip(told, done.predicted, strict=True):
        assert point.seconds == pytest.approx(predicted.seconds, rel=0.05)


def test_one_pass_over_many_messages_is_faster_than_one_each():
    times = [
        compiled("clique:9", "reduce-scatter", fold)[1].predicted[0].seconds for fold in (1, 2, 8)
    ]
    assert times[0] > 1.2 * times[1] > 1.2 * times[2]
    widest = compiled("clique:9", "reduce-scatter", 8)[1].artefacts[0].data
    assert most_sources(widest) == 8  # of 8 messages and the own chunk, two operations


def test_a_sum_that_would_hang_stays_as_it_is():
    """Where messages come only after sums of others, folding them would wait for itself."""
    program = compiled("clique:4", "reduce-scatter", 1)[1].artefacts[0].program
    assert folded(program, 3) != program
    late = _chained(program)
    assert finishes(late)
    assert folded(late, 3) == late


def _chained(program):
    """Let rank 1 send to rank 0 only what it has summed, and rank 0 send it after one message."""
    gpus = list(program.gpus)
    first = gpus[0].threadblocks
    early = next(b.id for b in first if b.steps[0].op == "rrc" and b.steps[0].source.buffer == "i")
    for rank, peer in ((0, 1), (1, 0)):
        blocks = list(gpus[rank].threadblocks)
        sums = [b for b in blocks if b.steps[0].op == "rrc"]
        waited = early if rank == 0 else next(b.id for b in sums if b.recv == peer)
        place = next(b.id for b in blocks if b.send == peer)
        step = structs.replace(blocks[place].steps[0], waits=(Wait(waited, 0),))
        blocks[place] = replace(blocks[place], steps=(step,))
        gpus[rank] = replace(gpus[rank], threadblocks=tuple(blocks))
    return replace(program, gpus=tuple(gpus))


def test_other_runtimes_are_left_alone():
    files = [compiled("clique:4", "reduce-scatter", fold, "msccl")[1] for fold in (1, 4)]
    assert files[0].artefacts[0].data == files[1].artefacts[0].data


def test_sums_that_are_joined_already_are_not_folded_too():
    pipeline = ALGORITHMS["forest"]
    for sums in ("running", "joined"):
        passes = pipeline.replace("place-slots", f"place-slots{{sums={sums}}}")
        problem = api.make_problem(api.load_topology("clique:4"), "reduce-scatter")
        plan = Plan("passes", "Simple", passes)
        (made,) = Workshop(Case(problem, "mscclpp", (2**20,))).measure([(plan, Limit())])
        seen = Basis(problem, profile("mscclpp"), "Simple", 2**20, made.shape, plan.values())
        assert any(folds(seen)) == (sums == "running")
