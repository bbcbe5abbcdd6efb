"""Plans as files: equal bytes, names of their own, back to steps, and boxes as channels."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from colsynth import api
from colsynth.errors import ColsynthError, DefectError, InputError, LimitError
from colsynth.model import Collective, Gpu, Header, Slot, Step, Threadblock, ThreadblockProgram
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile, read, write
from colsynth.runtimes.plans.estimate import most_operations
from colsynth.runtimes.plans.form import Op, Operand, operations
from colsynth.runtimes.plans.sequence import Sequence
from colsynth.runtimes.plans.shape import PlanShape
from colsynth.runtimes.plans.writer import longest_written, plan_of
from colsynth.search.wish import configured
from colsynth.simulate.steps import steps_of
from colsynth.verify import verify_bytes
from colsynth.verify.contract import IN_PLACE, OUT_OF_PLACE, buffer_chunks, layout
from tests.verify.plans.test_execution import PAIRS, right

MESH = api.load_topology("mesh:2x2")


def compiled(topology, collective, root=None, **options):
    problem = api.make_problem(topology, collective, root)
    return api.compile(problem, "mscclpp", level=0, algorithm="forest", **options)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.yaml"
    path.write_text(PAIRS)
    return api.load_topology(str(path))


def test_equal_programs_give_equal_bytes_and_other_ones_another_name():
    first, again = (compiled(MESH, "allreduce").artefacts[0] for _ in range(2))
    assert first.data == again.data == write(first.program, profile("mscclpp@0.10"))
    header = first.program.header
    other = write(replace(first.program, header=replace(header, max_bytes=1 << 28)), MSCCLPP)
    names = [json.loads(data)["name"] for data in (first.data, other)]
    assert names[0] != names[1]
    assert {name.rpartition(" #")[0] for name in names} == {header.name}


MSCCLPP = profile("mscclpp")


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_iterations_of_a_chosen_size_are_right_and_predicted_as_they_are_written(pairs, collective):
    """They are those of other plans where these are no larger, and as many as can be counted."""
    problem, size = api.make_problem(pairs, collective), 1 << 24
    data, seconds = {}, {}
    for unit in (0, 1 << 15, 100_000, 1 << 16, 1 << 18, 1 << 20):
        passes = ALGORITHMS["forest"].replace("spell-dependencies", "spell-dependencies{unit=%d}")
        options = {"passes": passes % unit, "size": size, "several": False}
        made = api.compile(problem, "mscclpp", level=0, **options)
        data[unit], seconds[unit] = made.artefacts[0].data, made.predicted[0].seconds
        (told,) = api.simulate(data[unit], "mscclpp", pairs, [size]).points
        assert told.seconds == pytest.approx(seconds[unit], rel=1e-6)
    assert data[0] == data[1 << 20]
    assert data[100_000] == data[1 << 16]
    assert loops(data[1 << 15]) == {1 << 15}
    assert loops(data[1 << 16]) == {1 << 16}
    assert right(json.loads(data[1 << 18]), 7)
    with pytest.raises(InputError, match="unit"):
        api.compile(problem, "mscclpp", passes=passes % 1023)


def test_a_chosen_size_of_iterations_holds_where_all_messages_have_room():
    """Else a chunk would be passed on whole, and tune writes such files."""
    problem, size = api.make_problem(api.load_topology("ring:4"), "allgather"), 1 << 20
    passes = ALGORITHMS["forest"].replace("spell-dependencies", "spell-dependencies{unit=%d}")
    for unit in (0, 1 << 14):
        options = {"passes": passes % unit, "size": size, "several": False}
        free = api.compile(problem, "mscclpp", **options)
        limited = api.compile(problem, "mscclpp", max_bytes=2 * size, **options)
        (least,), (own,) = free.predicted, limited.predicted
        assert limited.verified
        if unit:
            assert own.seconds == least.seconds
            assert set(loops(limited.artefacts[0].data)) == {unit}
        else:
            assert not loops(limited.artefacts[0].data)


@pytest.mark.parametrize("algorithm", ["allpairs", "pairwise"])
def test_large_chunks_are_passed_on_in_parts_where_all_messages_have_room(algorithm):
    problem, size = api.make_problem(api.load_topology("clique:4"), "alltoall"), 1 << 24
    options = {"algorithm": algorithm, "level": 0, "size": size, "several": False}
    free = api.compile(problem, "mscclpp", **options)
    limited = api.compile(problem, "mscclpp", max_bytes=2 * size, **options)
    assert limited.predicted[0].seconds == free.predicted[0].seconds


def test_no_plan_has_more_iterations_than_the_runtime_counts():
    passes = ALGORITHMS["forest"].replace("spell-dependencies", "spell-dependencies{unit=1024}")
    problem = api.make_problem(MESH, "broadcast", 0)
    made = api.compile(problem, "mscclpp", level=0, passes=passes, mode="in-place")
    header = made.artefacts[0].program.header
    (unit,) = loops(made.artefacts[0].data)
    assert unit > 1024
    assert header.max_bytes / header.chunks / unit <= MSCCLPP.max_tiles
    assert header.max_bytes / header.chunks / (unit // 2) > MSCCLPP.max_tiles


def loops(data):
    """Return the bytes of the iterations of a plan."""
    blocks = [block for gpu in json.loads(data)["gpus"] for block in gpu["threadblocks"]]
    ops = [op for block in blocks for op in block["ops"] if op["name"] == "pipeline"]
    return {op["iter_context"]["unit_size"] for op in ops}


@pytest.mark.parametrize("most", [1 << 16, None])
@pytest.mark.parametrize(("version", "beyond"), [("mscclpp", 0), ("mscclpp@0.8", 1)])
def test_the_largest_size_is_served_also_where_the_end_is_exclusive(version, beyond, most):
    problem = api.make_problem(MESH, "allgather")
    runtime = profile(version)
    made = api.compile(problem, version, level=0, algorithm="forest", max_bytes=most).artefacts[0]
    most = most or runtime.default_max_bytes
    assert json.loads(made.data)["max_message_size"] == most + beyond < 1 << 32
    header = read(made.data, runtime, file="plan").program.header
    assert header.max_bytes == made.program.header.max_bytes == most
    assert verify_bytes(made.data, runtime, subject="plan").findings == ()


@pytest.mark.parametrize(
    ("collective", "options"),
    [("allreduce", {}), ("reduce-scatter", {}), ("allreduce", {"protocol": "LL"})],
)
def test_a_file_is_predicted_like_the_program_it_was_made_of(pairs, collective, options):
    for topology in (MESH, pairs):
        done = compiled(topology, collective, **options)
        sizes = [point.size_bytes for point in done.predicted]
        assert max(sizes) <= (done.artefacts[0].program.header.max_bytes or max(sizes))
        told = api.simulate(done.artefacts[0].data, "mscclpp", topology, sizes).points
        for point, predicted in zip(told, done.predicted, strict=True):
            assert point.seconds == pytest.approx(predicted.seconds, rel=1e-9)


def test_a_message_that_lands_before_it_is_sent_is_predicted_as_two_steps():
    """Only a receive and a send of one operation are one step when a plan is read back."""
    passes = (
        "pack-trees,round-weights,lower-forest{segments=4},order-transfers{order=round-robin},"
        "place-slots,assign-threadblocks{strategy=paired-all},spell-dependencies"
    )
    problem = api.make_problem(api.load_topology("ring:6"), "reduce")
    for size in (1 << 20, 1 << 28):  # a flat plan, and a pipeline
        done = api.compile(problem, "mscclpp", passes=passes, mode="in-place", size=size)
        (artefact,), (predicted,) = done.artefacts, done.predicted
        sizes = [predicted.size_bytes]
        (told,) = api.simulate(artefact.data, "mscclpp", problem.topology, sizes).points
        assert told.seconds == pytest.approx(predicted.seconds, rel=1e-9)


def test_sums_of_several_chunks_are_predicted_as_a_plan_has_them():
    """In a pipeline each chunk has an operation of its own, which adds up all that comes for it."""
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=4), "allreduce")
    strategy = "strategy=spread"
    passes = f"build-rails{{pieces=2,{strategy}}},assign-threadblocks{{{strategy}}}"
    passes += ",spell-dependencies"
    done = api.compile(problem, "mscclpp", passes=passes, mode="in-place", size=1 << 20)
    (artefact,), (predicted,) = done.artefacts, done.predicted
    steps = artefact.program.steps
    assert steps.count[steps.among({"re"})].max() == 2
    sizes = [predicted.size_bytes]
    (told,) = api.simulate(artefact.data, "mscclpp", problem.topology, sizes).points
    assert told.seconds == pytest.approx(predicted.seconds, rel=1e-9)


@pytest.mark.parametrize(("runtime", "operands"), [("mscclpp", 10), ("mscclpp@0.8", 8)])
@pytest.mark.parametrize("size", [1 << 10, 1 << 28])
def test_sums_in_a_row_are_one_operation_of_as_many_as_it_takes(runtime, operands, size):
    """What the simulator takes for one operation is one in the plan."""
    problem = api.make_problem(api.load_topology("clique:13"), "reduce-scatter")
    target = replace(aim(problem, profile(runtime)), out_of_place=False, max_bytes=size)
    program = configured("forest", {"sums": "joined", "instances": 1}).run(problem, target)
    plan = plan_of(program, profile(runtime))
    ops = [op for gpu in plan.gpus for block in gpu.threadblocks for op in operations(block)]
    sums = [len(op.src_buff) for op in ops if op.name == "re"]
    assert max(sums) == operands
    assert program.max_steps > 10  # so many sends and receives fill a threadblock
    units = steps_of(program, operands - 1)
    adds = units.table.among({"re"})[units.row]
    assert len(sums) == int((adds & ~units.joined).sum()) < int(adds.sum())
    assert sum(sums) - len(sums) == int(adds.sum())


def test_ranks_in_one_box_share_memory_and_others_use_ports(pairs):
    plan = read(compiled(pairs, "allreduce").artefacts[0].data, MSCCLPP, file="plan").plan
    kinds = {
        (gpu.id, peer): channels.channel_type
        for gpu in plan.gpus
        for channels in gpu.channels
        for peer in channels.connected_to
    }
    assert {kind for (a, b), kind in kinds.items() if a // 2 == b // 2} == {"memory"}
    assert {kind for (a, b), kind in kinds.items() if a // 2 != b // 2} == {"port"}
    assert all(r.type == "s" for gpu in plan.gpus for r in gpu.remote_buffers)


def test_small_messages_need_no_pipeline_and_packets_no_channels():
    found = {}
    for name, options in {
        "pipeline": {},
        "flat": {"max_bytes": 1 << 20},
        "packets": {"protocol": "LL"},
    }.items():
        plan = read(
            compiled(MESH, "allreduce", **options).artefacts[0].data, MSCCLPP, file="plan"
        ).plan
        blocks = [block for gpu in plan.gpus for block in gpu.threadblocks]
        found[name] = {op.name for block in blocks for op in operations(block)}
        assert max(len(operations(block)) for block in blocks) <= 64
        assert plan.min_message_size == 16 * plan.gpus[0].input_chunks
    assert "pipeline" in found["pipeline"]
    assert "pipeline" not in found["flat"]
    assert not found["packets"] & {"pipeline", "signal", "wait", "put"}


PROGRAMS = [
    ("forest", {}),
    ("forest", {"sums": "joined"}),
    ("forest", {"fold": 2, "strategy": "spread"}),
    ("forest", {"strategy": "fewest", "segments": "1-1-1"}),
    ("ring", {}),
    ("tree", {"channels": 2}),
    ("ten", {}),
]


@pytest.mark.parametrize(("algorithm", "options"), PROGRAMS)
def test_what_is_known_of_a_plan_before_it_is_written(pairs, algorithm, options):
    """Nothing exceeds the quick bound of operations; ports and scratch are those of the plan."""
    found = []
    for topology, collective, fields in product(
        (MESH, pairs),
        ("allgather", "reduce-scatter", "allreduce"),
        ({"max_bytes": 1 << 32}, {"max_bytes": 1 << 20}, {"protocol": "LL"}),
    ):
        problem = api.make_problem(topology, collective)
        target = replace(aim(problem, MSCCLPP), out_of_place=False, **fields)
        try:
            program = configured(algorithm, options).run(problem, target)
        except ColsynthError:
            continue  # the cycle of the pairs is no ring, and some sums are not safe as packets
        plan, shape = plan_of(program, MSCCLPP), PlanShape(program)
        blocks = [block for gpu in plan.gpus for block in gpu.threadblocks]
        quick = most_operations(shape, MSCCLPP.longest_sum)
        lengths = [len(operations(block)) for block in blocks]
        assert (quick >= lengths).all()
        found.append((max(lengths), quick.max()))
        chosen = np.arange(len(lengths)) % 3 == 0
        exact = [length for length, taken in zip(lengths, chosen, strict=True) if taken]
        assert max(longest_written(shape, MSCCLPP, chosen)) == max(exact)
        ports = [
            sum(len(c.connected_to) for c in gpu.channels if c.channel_type == "port")
            for gpu in plan.gpus
        ]
        assert shape.most_ports == max(ports)
        assert shape.scratch_chunks == max(gpu.scratch_chunks for gpu in plan.gpus)
    assert len(found) > 3
    assert any(quick < 4 * exact for exact, quick in found), found


def test_what_no_plan_can_do_is_refused():
    with pytest.raises(LimitError, match="with packets is not safe"):
        compiled(MESH, "broadcast", root=0, protocol="LL")
    with pytest.raises(LimitError, match="messages of 1 GiB do not fit the plan"):
        compiled(MESH, "allreduce", protocol="LL", max_bytes=1 << 30)
    program = compiled(MESH, "allgather").artefacts[0].program
    both = replace(program, header=replace(program.header, out_of_place=True))
    with pytest.raises(DefectError, match="serves one call mode"):
        write(both, MSCCLPP)


def test_traps_of_the_library_are_told():
    told = {
        collective: " ".join(compiled(MESH, collective, root).notes)
        for collective, root in (("reduce-scatter", None), ("reduce", 0), ("allreduce", None))
    }
    assert "hang" in told["reduce-scatter"]
    assert "never reach" in told["reduce"]
    assert "mscclpp.Executor" not in told["allreduce"]
    assert "CUDA graph" in " ".join(compiled(MESH, "allgather", protocol="LL").notes)


def test_joined_operations_name_no_more_than_one_operation_can():
    row = Sequence()
    for k in range(20):
        row.add(Op("wait", channel_ids=(k,), channel_type="memory"))
    for name in ("sem_acquire", "sem_release"):
        for first in (0, 16, 32):
            row.add(Op(name, semaphore_ids=tuple(range(first, min(first + 16, 35)))))
    told = [(op.name, len(op.channel_ids) + len(op.semaphore_ids)) for op in row.ops]
    waits = [("wait", 8), ("wait", 8), ("wait", 4)]
    takes, gives = ([(name, 16), (name, 16), (name, 3)] for name in ("sem_acquire", "sem_release"))
    assert told == [*waits, *takes, ("nop", 0), *gives]


@pytest.mark.parametrize("collective", ["alltoall", "allreduce", "allgather", "reduce-scatter"])
@pytest.mark.parametrize("mode", [IN_PLACE, OUT_OF_PLACE])
def test_a_nop_parts_operations_that_touch_one_place_of_a_call(collective, mode):
    inside = mode == IN_PLACE
    header = Header("three", Collective(collective), "LL", 3, 6, 1, inside, not inside)
    inputs, outputs = buffer_chunks(header)
    gpus = [Gpu(rank, inputs, outputs, 2, ()) for rank in range(3)]
    shape = PlanShape(ThreadblockProgram(header, tuple(gpus)))
    base = layout(header, mode, np.full(3, 2)).base
    for gpu, mine, theirs in product(gpus, range(inputs), range(outputs)):
        row = Sequence(lies_in=shape.lies_in(gpu))
        away = Operand(0, 1, buffer_id=0)
        row.add(Op("ppkt", (Operand(mine, 1, "i"),), (away,), channel_type="memory"))
        row.add(Op("upkt", (Operand(1, 1, "s"),), (Operand(theirs, 1, "o"),)))
        same = int(base[gpu.rank, 0] + mine == base[gpu.rank, 1] + theirs)
        assert [op.name for op in row.ops] == ["ppkt", *["nop"] * same, "upkt"]


@pytest.mark.parametrize("protocol", ["LL", "Simple"])
@pytest.mark.parametrize("boxes", [(0, 0), (0, 1)])
@pytest.mark.parametrize("most", [1 << 20, 1 << 31])
def test_data_may_land_where_a_threadblock_has_just_sent_from(protocol, boxes, most):
    header = Header("two", Collective.ALLTOALL, protocol, 2, 2, 1, True, False, boxes=boxes)
    gpus = []
    for rank, peer in ((0, 1), (1, 0)):
        steps = Step("s", Slot("i", peer), None, 1), Step("r", None, Slot("o", peer), 1)
        gpus.append(Gpu(rank, 2, 2, 1, (Threadblock(0, peer, peer, 0, steps),)))
    program = ThreadblockProgram(replace(header, max_bytes=most), tuple(gpus))
    report = api.verify(write(program, MSCCLPP), "mscclpp")
    assert report.ok, report.findings
