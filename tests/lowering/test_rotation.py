"""Sums that go round their peers: every beat fills every connection, and files are faster."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from colsynth import api
from colsynth.lowering.columns import Columns
from colsynth.lowering.rotation import rotated_beats
from colsynth.lowering.round_robin import box_numbers, round_robin
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.target import aim
from colsynth.runtimes.catalog import profile
from colsynth.simulate import simulate

LOWERED = "pack-trees{trees=1},lower-forest{segments=%s}"
FILE = (
    "pack-trees{trees=1},round-weights,lower-forest{segments=%s},coalesce-chunks,"
    "order-transfers{order=round-robin,rotation=%d},place-slots,assign-threadblocks{strategy=paired},"
    "spell-dependencies"
)


def lowered(problem, segments):
    target = aim(problem, profile("rccl"), "Simple")
    return Pipeline.from_text(LOWERED % "-".join(["1"] * segments)).run(problem, target).transfers


@pytest.mark.parametrize(
    ("ranks", "rotation", "rounds"), [(4, 1, 2), (4, 5, 1), (6, 3, 2), (8, 8, 1)]
)
def test_every_beat_uses_every_connection_once(ranks, rotation, rounds):
    topology = api.load_topology(f"clique:{ranks}")
    problem = api.make_problem(topology, "reduce-scatter")
    transfers = lowered(problem, (ranks - 1) * rotation * rounds)
    columns = Columns.of(transfers)
    inside = np.ones(len(transfers), np.int64)
    beats = rotated_beats(transfers, columns, box_numbers(topology), inside, rotation).tolist()
    used, sums = defaultdict(list), defaultdict(list)
    for beat, transfer in zip(beats, transfers, strict=True):
        used[beat].append((transfer.source, transfer.target))
        sums[transfer.target, transfer.origin.segment].append(beat)
    for ways in used.values():
        assert len(ways) == len(set(ways)) == ranks * (ranks - 1)
    for found in sums.values():
        gaps = {(b - a) % ((ranks - 1) * rotation) for a, b in pairwise(found)}
        assert all(gap % rotation == 0 and gap for gap in gaps)  # no two of a sum at a time


@pytest.mark.parametrize(("machine", "nodes"), [("mesh:2x3", None), ("dgx-a100", 2), ("mi250", 1)])
@pytest.mark.parametrize("collective", ["reduce-scatter", "allreduce", "allgather"])
def test_any_forest_keeps_what_its_transfers_wait_for(machine, nodes, collective):
    topology = api.load_topology(machine, nodes=nodes)
    transfers = lowered(api.make_problem(topology, collective), 3)
    order = round_robin(transfers, topology, rotation=2)
    place = {number: at for at, number in enumerate(order)}
    assert sorted(order) == list(range(len(transfers)))
    for number, transfer in enumerate(transfers):
        assert all(place[other] < place[number] for other in transfer.after)


@pytest.mark.parametrize(
    ("nodes", "segments", "rotation", "gain"), [(1, 112, 8, 1.1), (2, 64, 4, 1.05)]
)
def test_files_whose_sums_go_round_are_faster_and_right(nodes, segments, rotation, gain):
    problem = api.make_problem(api.load_topology("dgx-h100", nodes=nodes), "reduce-scatter")
    times = []
    for beats in (0, rotation):
        passes = FILE % ("-".join(["1"] * segments), beats)
        (artefact,) = api.compile(problem, "rccl", passes=passes).artefacts
        assert artefact.report.ok
        (point,) = simulate(artefact.program, problem.topology, profile("rccl"), (2**30,))
        times.append(float(point.seconds))
    assert times[1] < times[0] / gain
