"""How messages are cut, tiles left out, and programs that hang or cannot run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colsynth import api
from colsynth.cost import default_model, ideal_model
from colsynth.errors import InfeasibleError, InputError, VerificationError
from colsynth.model import Topology, Wait
from colsynth.runtimes import profile
from colsynth.simulate import run, simulate
from colsynth.simulate.machine import build
from tests.simulate.programs import nccl_ring, program_of, star_topology, step

MSCCL, RCCL = profile("msccl"), profile("rccl")
PAIR = star_topology([25 * 10**9] * 2)
MIB = 2**20


def cut_of(protocol, chunk, runtime=MSCCL):
    program = program_of([[(1, None, 0, [step("s", 70)])], [(None, 0, 0, [step("r", 70)])]], 100)
    program = replace(program, header=replace(program.header, protocol=protocol))
    machine = build(program, PAIR, default_model(runtime))
    return run.tile_message(machine, runtime, 100 * chunk)


@pytest.mark.parametrize(
    ("protocol", "chunk", "group"),
    [
        *[("Simple", size, n) for size, n in ((1024, 71), (2**15, 64), (MIB, 2), (MIB + 1, 1))],
        *[("LL", size, n) for size, n in ((1024, 32), (2**13, 4), (2**15, 1))],
        *[("LL128", size, n) for size, n in ((1024, 71), (2**13, 70), (2**15, 17), (MIB, 1))],
    ],
)
def test_chunks_of_a_call_are_those_of_the_contract(protocol, chunk, group):
    assert cut_of(protocol, chunk).group == group


def test_tiles_and_slots():
    simple = cut_of("Simple", 5 * MIB)
    assert (simple.tiles, simple.tile, simple.last) == (3, 2 * MIB, MIB)
    assert (simple.slices, simple.depth) == (2, 4)
    assert cut_of("LL", 40000).tiles == 2
    assert cut_of("LL", 40000, RCCL).tiles == 3
    small = cut_of("LL", 8)
    assert (small.slices, small.depth) == (1, 8)


def test_tiles_left_out_hardly_change_the_time():
    topology, size = api.load_topology("dgx-a100"), 8 * 10**9
    machines = [
        (build(nccl_ring(8, channels, protocol), topology, default_model(MSCCL)))
        for channels, protocol in ((1, "Simple"), (2, "LL128"), (5, "Simple"))
    ]
    problem = api.make_problem(topology, "allreduce")
    done = api.compile(problem, "msccl", algorithm="forest", mode="in-place").artefacts[0].program
    machines.append(build(done, topology, default_model(MSCCL)))
    whole = [run.run(machine, MSCCL, size, most=10**9) for machine in machines]
    assert all(found.tiling.simulated == found.tiling.tiles for found in whole)
    for machine, expected in zip(machines, whole, strict=True):
        found = run.run(machine, MSCCL, size, most=1)
        assert run.LEAST_TILES <= found.tiling.simulated < found.tiling.tiles
        assert found.seconds == pytest.approx(expected.seconds, rel=0.005)


def test_a_program_whose_threadblocks_run_far_ahead_of_others_keeps_its_rhythm():
    topology, size = api.load_topology("mi300x", nodes=4), 2**30
    problem = api.make_problem(topology, "allreduce")
    passes = "pack-trees{trees=1},round-weights,lower-forest,coalesce-chunks,"
    passes += (
        "order-transfers{order=list-schedule},place-slots,assign-threadblocks{strategy=spread},"
    )
    done = api.compile(problem, "msccl", protocol="LL128", passes=passes + "spell-dependencies")
    machine = build(done.artefacts[0].program, topology, default_model(MSCCL))
    found, expected = (run.run(machine, MSCCL, size, most=most) for most in (1, 10**9))
    assert found.tiling.simulated < expected.tiling.simulated == expected.tiling.tiles
    assert found.seconds == pytest.approx(expected.seconds, rel=0.01)


def exchange(count):
    """Both ranks send before they receive: more calls than slots hang (contract 4.6)."""
    steps = [step("s", count), step("r", count)]
    return program_of([[(1, 1, 0, steps)], [(0, 0, 0, steps)]], 8)


def test_more_calls_than_slots_hang():
    fits, hangs = 8 * MIB, 8 * (MIB + 1)  # two chunks per call, then one
    assert simulate(exchange(4), PAIR, MSCCL, [fits])[0].seconds > 0
    assert simulate(exchange(2), PAIR, MSCCL, [hangs])[0].seconds > 0
    with pytest.raises(VerificationError) as caught:
        simulate(exchange(3), PAIR, MSCCL, [hangs])
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == "CS603"
    assert "rank 0, threadblock 0 is the first of 2 that wait forever" in diagnostic.notes
    ll = replace(exchange(8), header=replace(exchange(8).header, protocol="LL"))
    assert simulate(ll, PAIR, MSCCL, [hangs])[0].seconds > 0


def test_a_wait_for_what_never_comes_hangs():
    waits = [Wait(1, 0)]
    silent = program_of([[(None, None, 0, [step("cpy", waits=waits)]), (None, None, 1, [])], []], 1)
    with pytest.raises(VerificationError, match="CS603"):
        simulate(silent, PAIR, MSCCL, [1])
    unknown = program_of([[(None, None, 0, [step("cpy", waits=[Wait(5, 0)])])], []], 1)
    with pytest.raises(VerificationError, match="CS603"):
        simulate(unknown, PAIR, MSCCL, [1])


def test_a_later_flag_serves_an_earlier_wait():
    """Contract 4.5: step 0 is silent, step 1 of the same threadblock publishes for it."""
    blocks = [(None, None, 0, [step("cpy"), step("cpy", signals=True)])]
    blocks.append((None, None, 1, [step("cpy", waits=[Wait(0, 0)])]))
    model = default_model(MSCCL)
    (point,) = simulate(program_of([blocks, []], 1), PAIR, MSCCL, [24000], model)
    expected = model.launch["Simple"] + 3 * (model.step["Simple"] + 1) + model.wait
    assert point.seconds * 1e6 == pytest.approx(expected)


def test_waits_of_nops_come_before_the_next_step():
    first = (None, None, 0, [step("cpy", signals=True)])
    second = (None, None, 1, [step("cpy", 2, signals=True)])
    both = [step("nop", 0, [Wait(0, 0)]), step("cpy", waits=[Wait(1, 0)])]
    program = program_of([[first, second, (None, None, 2, both)], []], 2)
    model = default_model(MSCCL)
    (point,) = simulate(program, PAIR, MSCCL, [48000], model)
    slowest = model.step["Simple"] + 2
    expected = model.launch["Simple"] + slowest + model.wait + model.step["Simple"] + 1
    assert point.seconds * 1e6 == pytest.approx(expected)


def test_sums_that_the_runtime_joins_begin_and_write_once():
    model = default_model(RCCL)
    for signals, begins, moved in ((False, 1, 1 + 2 * model.operand), (True, 3, 3)):
        sums = [step("re", signals=signals) for _ in range(3)]
        program = program_of([[(None, None, 0, sums)], []], 1)
        (point,) = simulate(program, PAIR, RCCL, [12000], model)
        expected = model.launch["Simple"] + begins * model.step["Simple"] + moved
        assert point.seconds * 1e6 == pytest.approx(expected)


def test_an_empty_program_takes_the_launch():
    (point,) = simulate(program_of([[], []], 1), PAIR, MSCCL, [10])
    assert point.seconds == pytest.approx(8.4e-6)
    assert simulate(program_of([[], []], 1), PAIR, MSCCL, [10], ideal_model())[0].algbw == 0


BROKEN = {
    "no peer": program_of([[(None, None, 0, [step("s")])], []], 1),
    "itself": program_of([[(0, None, 0, [step("s")])], []], 1),
    "no rank": program_of([[(7, None, 0, [step("s")])], []], 1),
    "shared": program_of([[(1, None, 0, [])] * 2, [(None, 0, 0, [])]], 1),
    "ra": program_of([[(None, None, 0, [step("ra")])], []], 1),
    "negative": program_of([[(None, None, 0, [step("cpy", -1)])], []], 1),
    "immense": program_of([[(None, None, 0, [step("cpy", 2**15 + 1)])], []], 1),
    "no chunks": program_of([[], []], 0),
}
_TWICE = program_of([[(None, None, 0, [])] * 2, []], 1)
_SAME_ID = replace(_TWICE.gpus[0], threadblocks=(_TWICE.gpus[0].threadblocks[0],) * 2)
BROKEN["same id"] = replace(_TWICE, gpus=(_SAME_ID, _TWICE.gpus[1]))
BROKEN["too few"] = replace(_TWICE, gpus=_TWICE.gpus[:1])
BROKEN["same rank"] = replace(_TWICE, gpus=(_TWICE.gpus[0],) * 2)


@pytest.mark.parametrize("fault", sorted(BROKEN))
def test_what_cannot_be_executed_is_refused(fault):
    with pytest.raises(InputError) as caught:
        simulate(BROKEN[fault], PAIR, MSCCL, [8])
    assert caught.value.diagnostic.code == "CS602"
    assert caught.value.diagnostic.notes


def test_ranks_sizes_and_routes_must_fit():
    with pytest.raises(InputError, match="CS600"):
        simulate(nccl_ring(3), PAIR, MSCCL, [8])
    with pytest.raises(InputError, match="CS604"):
        simulate(nccl_ring(2), PAIR, MSCCL, [8, 0])
    lonely = Topology("islands", PAIR.nodes, PAIR.links[:1], PAIR.ranks)
    with pytest.raises(InfeasibleError, match="CS601"):
        simulate(nccl_ring(2), lonely, MSCCL, [8])


def test_data_passes_other_gpus_where_no_links_lead():
    """NVB and PXN: in a line of three the outer ones reach each other through the middle."""
    topology = api.load_topology("mesh:1x3", bandwidth="10 GB/s", latency="1 us")
    blocks = [[(2, None, 0, [step("s")])], [], [(None, 0, 0, [step("r")])]]
    (point,) = simulate(program_of(blocks, 1), topology, MSCCL, [10000], ideal_model())
    assert point.seconds == pytest.approx(1e-6 + 2e-6)
