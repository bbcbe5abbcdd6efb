"""Slots: the input is never written, sums live where there is room for them."""

import pytest

from colsynth.lowering.place_slots import PlaceSlots

MODES = [(True, False), (False, True), (True, True)]
COLLECTIVES = ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"]


def root_of(collective):
    return 2 if collective in ("broadcast", "reduce") else None


@pytest.mark.parametrize("runtime", ["msccl-executor", "rccl"])
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(("in_place", "out_of_place"), MODES)
def test_the_input_is_never_written(lowered, collective, runtime, in_place, out_of_place):
    program = lowered(
        "mi250",
        collective,
        until=PlaceSlots,
        runtime=runtime,
        root=root_of(collective),
        in_place=in_place,
        out_of_place=out_of_place,
    )
    assert all(t.write.buffer != "i" for t in program.transfers)


@pytest.mark.parametrize("runtime", ["msccl-executor", "rccl"])
def test_buffers_that_may_be_invalid_are_not_touched(lowered, runtime):
    """Out of place, reduce has no output and broadcast no input but at the root (4.8)."""
    gone = {"reduce": "o", "broadcast": "i"}
    for collective, buffer in gone.items():
        program = lowered(
            "mi250", collective, until=PlaceSlots, runtime=runtime, root=2, out_of_place=True
        )
        for transfer in program.transfers:
            slots = [(transfer.source, transfer.read), (transfer.target, transfer.write)]
            slots.append((transfer.target, transfer.operand))
            assert all(s.buffer != buffer for rank, s in slots if s is not None and rank != 2)


def test_runtimes_that_cannot_add_while_receiving_get_local_steps(lowered):
    program = lowered("mi250", "allreduce", until=PlaceSlots, runtime="rccl")
    assert all(t.operand is None for t in program.transfers if not t.is_local)
    adding = [t for t in program.transfers if t.is_local and t.operand is not None]
    assert adding
    assert all(t.operand == t.write for t in adding)
    done = [t for t in program.transfers if t.is_local and t.write.buffer == "o"]
    assert sum(t.count for t in done) == program.chunks  # a sum gets there once
    landed = {(t.target, t.chunk) for t in adding if t.write.buffer == "s"}
    copied = {(t.target, t.chunk) for t in done if t.operand is None}
    assert copied <= landed  # of one arrival, with the rank's own input, which may lie there


@pytest.mark.parametrize("name", ["ring:2", "ring:5", "mi250"])
def test_sums_begin_with_what_arrives_first(lowered, name):
    """No copy of the input is made: a rank adds its own to the first arrival, and once."""
    program = lowered(name, "allreduce", until=PlaceSlots, runtime="rccl")
    added = {}
    for transfer in program.transfers:
        if transfer.is_local and transfer.operand is not None:
            for chunk in range(transfer.chunk, transfer.chunk + transfer.count):
                added.setdefault((transfer.target, chunk), []).append(transfer.read.buffer)
    assert all(buffers == ["i"] + ["s"] * (len(buffers) - 1) for buffers in added.values())
    copies = [t for t in program.transfers if t.is_local and t.operand is None]
    assert all((t.read.buffer, t.write.buffer) == ("s", "o") for t in copies)


def test_fused_allreduce_needs_no_scratch(lowered):
    program = lowered("mi250", "allreduce", until=PlaceSlots, out_of_place=True)
    assert set(program.scratch) == {0}


def test_only_programs_that_serve_out_of_place_calls_copy_their_own_data(lowered):
    def copies(**modes):
        program = lowered("dgx-a100", "allgather", until=PlaceSlots, **modes)
        return sum(t.is_local for t in program.transfers)

    assert copies(in_place=True, out_of_place=False) == 0
    assert copies(in_place=False, out_of_place=True) == 8
    assert copies(in_place=True, out_of_place=True) == 8


@pytest.mark.parametrize("collective", ["allgather", "broadcast"])
def test_nobody_waits_for_the_copy_of_a_root_that_serves_both_modes(lowered, collective):
    program = lowered("dgx-a100", collective, in_place=True, out_of_place=True)
    steps = [step for gpu in program.gpus for block in gpu.threadblocks for step in block.steps]
    copies = [step for step in steps if step.op == "cpy"]
    assert copies
    assert not any(step.waits or step.signals for step in copies)
