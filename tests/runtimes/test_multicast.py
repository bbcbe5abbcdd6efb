"""Plans over a switch that multicasts and reduces: written, executed, lifted, and bounded."""

import copy
import json
from dataclasses import replace

import pytest

from colsynth import api
from colsynth.bounds.optimum import best_optimum
from colsynth.bounds.runtime import runtime_bounds
from colsynth.errors import ColsynthError
from colsynth.runtimes import profile
from colsynth.runtimes.plans.form import SCRATCH_BYTES
from colsynth.runtimes.plans.multicast import DEPTH, Teams
from colsynth.runtimes.plans.shape import CREDITS, LARGEST_UNIT
from colsynth.runtimes.schedules import read, write
from colsynth.simulate import simulate
from colsynth.verify import verify_bytes
from tests.verify.plans.test_execution import right

PROFILE = profile("mscclpp@0.10")
COLLECTIVES = ("allreduce", "allgather", "reduce-scatter")
SIZES = (1 << 12, 1 << 20, 1 << 25, 1 << 30)
BOX = """\
version: 1
name: star
box:
  nodes:
    - {{name: gpu, kind: gpu, count: {gpus}}}
    - {{name: switch, kind: switch, capabilities: [{words}]}}
  links:
    - {{from: gpu, to: switch, bandwidth: 100 GB/s, latency: 0.3 us}}
"""


@pytest.fixture
def star(tmp_path):
    def made(gpus, words="multicast, reduce"):
        path = tmp_path / "star.yaml"
        path.write_text(BOX.format(gpus=gpus, words=words))
        return api.load_topology(str(path))

    return made


def compiled(topology, collective, runtime="mscclpp@0.10", **options):
    problem = api.make_problem(topology, collective)
    return api.compile(problem, runtime, **{"algorithm": "multicast", "level": 0} | options)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_what_is_written_gives_the_right_numbers_launch_after_launch(star, collective):
    for number, file in enumerate(compiled(star(3), collective, instances=2).artefacts):
        assert right(json.loads(file.data), number)
        again = read(file.data, PROFILE, file="plan").program
        assert again.gpus == file.program.gpus
        assert write(again, PROFILE) == file.data


def test_any_number_of_gpus_serves_messages_of_any_size(star):
    """Shards of an allreduce differ by a chunk; they cover all chunks, and teams have as many."""
    for gpus, instances in ((3, 1), (5, 2), (6, 4)):
        (file,) = compiled(star(gpus), "allreduce", instances=instances, several=False).artefacts
        chunks = file.program.header.chunks
        assert chunks & (chunks - 1) == 0
        parts = Teams(gpus, chunks, instances)
        own = [[parts.own(rank, team) for team in range(instances)] for rank in range(gpus)]
        assert sorted(k for row in own for part in row for k in part) == list(range(chunks))
        assert all(parts.owner(k) == rank for rank in range(gpus) for p in own[rank] for k in p)
        each = [sum(len(row[team]) for row in own) for team in range(instances)]
        assert max(each) == min(each)
        assert all(part for row in own for part in row)


def test_smaller_iterations_let_the_roles_work_side_by_side(star):
    """Their number follows the unit; what each moves fits scratch `DEPTH` times."""
    topology = star(4)
    times, files = {}, {}
    for unit in (0, 1 << 15, 1 << 11, 1 << 30):
        passes = f"build-multicast{{instances=2,unit={unit}}}"
        done = compiled(topology, "allreduce", algorithm=None, passes=passes, several=False)
        (file,) = done.artefacts
        plan = json.loads(file.data)
        loops = {
            op["iter_context"]["unit_size"]
            for gpu in plan["gpus"]
            for block in gpu["threadblocks"]
            for op in block["ops"]
        }
        (loop,) = loops
        assert loop * plan["gpus"][0]["scratch_chunks"] * DEPTH == SCRATCH_BYTES
        files[unit] = file.data
        if 0 < unit < 1 << 30:
            assert loop == max(unit, 1 << 14)  # 65,535 iterations of 4 GiB
        assert done.verified
        assert read(file.data, PROFILE, file="plan").program.gpus == file.program.gpus
        times[unit] = simulate(file.program, topology, PROFILE, (1 << 20, 1 << 30))
    assert times[1 << 15][0].seconds < times[0][0].seconds
    assert times[1 << 11][1].seconds > times[0][1].seconds
    assert files[1 << 30] == files[0]  # there is room for no more


def test_an_iteration_has_no_more_than_threadblocks_may_move(star):
    """A larger unit counts as the largest; the file says so, and is read back as it was."""
    for unit in (1 << 20, 1 << 30):
        passes = f"build-multicast{{instances=1,unit={unit}}}"
        done = compiled(star(3), "allreduce", algorithm=None, passes=passes, several=False)
        (file,) = done.artefacts
        scratch = {gpu.scratch_chunks for gpu in file.program.gpus}
        assert scratch == {SCRATCH_BYTES // (CREDITS * LARGEST_UNIT)}
        assert read(file.data, PROFILE, file="plan").program.gpus == file.program.gpus


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_small_messages_have_fewer_chunks(star, collective):
    """Chunks have 16 bytes at least."""
    for largest in (1024, 300):
        (file,) = compiled(star(9), collective, max_bytes=largest, several=False).artefacts
        header = file.program.header
        assert 16 * header.chunks <= header.min_bytes <= header.max_bytes == largest


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("largest", "asked"), [(100, {}), (1024, {"instances": 8})])
def test_messages_below_the_chunks_of_a_plan_are_refused(star, collective, largest, asked):
    with pytest.raises(ColsynthError) as caught:
        compiled(star(9), collective, max_bytes=largest, several=False, **asked)
    assert caught.value.diagnostic.code == "CS222"


def test_many_gpus_meet_in_groups(star):
    """More peers than a threadblock has channels, and more than a semaphore operation takes."""
    done = compiled(star(18), "allreduce", instances=1, several=False)
    plan = json.loads(done.artefacts[0].data)
    blocks = [b["channels"] for b in plan["gpus"][4]["threadblocks"]]
    met = [sum(len(c["channel_ids"]) for c in lists) for lists in blocks]
    assert (sum(met[:16]), met[16], sum(met[17:]), len(met)) == (17, 1, 17, 33)
    assert done.verified


def test_every_operation_is_needed(star):
    """Of threadblocks that meet two others: one signal and one release are of one thread."""
    (file,) = compiled(star(3), "allreduce", instances=1, several=False).artefacts
    whole = file.program.header.collective
    teams = Teams(ranks=3, chunks=file.program.header.chunks, teams=1)
    gpus = [
        replace(gpu, threadblocks=teams.blocks(whole, gpu.rank, 1)) for gpu in file.program.gpus
    ]
    plan, missed = json.loads(write(replace(file.program, gpus=tuple(gpus)), PROFILE)), []
    assert verify_bytes(json.dumps(plan).encode(), PROFILE, subject="plan").ok
    for number, block in enumerate(plan["gpus"][1]["threadblocks"]):
        for place, op in enumerate(block["ops"][0]["ops"]):
            mutant = copy.deepcopy(plan)
            del mutant["gpus"][1]["threadblocks"][number]["ops"][0]["ops"][place]
            data = json.dumps(mutant).encode()
            if verify_bytes(data, PROFILE, subject="mutant").ok:
                missed.append((number, place, op["name"]))
    assert missed == []


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_is_predicted_to_beat_the_bound(collective):
    topology = api.load_topology("dgx-h100")
    problem = api.make_problem(topology, collective)
    least = runtime_bounds(problem, PROFILE, best_optimum(problem), SIZES)
    for instances in (0, 1):
        (file,) = compiled(topology, collective, instances=instances, several=False).artefacts
        points = simulate(file.program, topology, PROFILE, SIZES)
        for point, bound in zip(points, least, strict=True):
            assert point.seconds >= bound.seconds


def test_an_allreduce_gains_by_it_and_the_search_finds_it():
    problem = api.make_problem(api.load_topology("dgx-h100"), "allreduce")
    asked = {"level": 0, "several": False}
    plain = api.compile(problem, "mscclpp", algorithm="forest", **asked).predicted[-1]
    found = api.compile(problem, "mscclpp", several=False)
    assert found.algorithm == "multicast"
    assert not any("can multicast" in note for note in found.notes)
    best = found.predicted[-1]
    assert best.seconds < 0.6 * plain.seconds
    assert best.least.algbw == plain.least.algbw > 1.55 * 226e9  # 400 of 257 GB/s on links
    assert sum(found.limited_by.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("gpus", "words", "collective", "runtime", "options", "code"),
    [
        (3, "multicast, reduce", "allreduce", "msccl", {}, "CS323"),
        (3, "multicast, reduce", "allreduce", "torch", {}, "CS323"),
        (3, "multicast, reduce", "allgather", "mscclpp", {}, "CS323"),
        (3, "multicast, reduce", "allreduce", "mscclpp", {"protocol": "LL"}, "CS323"),
        (3, "multicast, reduce", "alltoall", "mscclpp", {}, "CS311"),
        (3, "multicast", "allreduce", "mscclpp", {}, "CS312"),
        (3, "multicast, reduce", "allreduce", "mscclpp", {"instances": 35}, "CS402"),
    ],
)
def test_what_it_does_not_serve_is_refused(star, gpus, words, collective, runtime, options, code):
    with pytest.raises(ColsynthError) as caught:
        compiled(star(gpus, words), collective, runtime, several=False, **options)
    assert caught.value.diagnostic.code == code


def test_a_plan_of_others_is_not_taken_for_one(star):
    """One that lacks a semaphore, or a threadblock, is no program of ours, and no crash."""
    (file,) = compiled(star(3), "allreduce", instances=1, several=False).artefacts
    plan = json.loads(file.data)
    for broken in (lambda gpu: gpu["semaphores"].pop(), lambda gpu: gpu["threadblocks"].pop()):
        broken(plan["gpus"][0])
        assert read(json.dumps(plan).encode(), PROFILE, file="plan").program is None
