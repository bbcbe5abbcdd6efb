"""Lockstep: every rank sends its own data first, then passes on what the others sent."""

import pytest

from colsynth.lowering.allocation import PlacedStep
from colsynth.lowering.columns import Columns
from colsynth.lowering.hazards import operations
from colsynth.lowering.lockstep import in_send_order, relays
from colsynth.model import Direction, Origin, Slot, Transfer

ORIGIN = Origin(0, Direction.OUT, 0)


def copy(source, target, chunk, after=()):
    place = Slot("o", chunk)
    return Transfer(source, target, chunk, 1, False, after, ORIGIN, place, place)


def test_a_relay_may_stand_behind_other_transfers():
    transfers = (copy(0, 1, 0), copy(1, 2, 1), copy(1, 2, 0, (0,)))
    ops = operations(Columns.of(transfers))
    assert relays(transfers, ops, ((),) * 4 + ((1,), ())) == {1: 4}


def test_a_send_that_waits_for_more_than_the_arrival_has_a_step_of_its_own():
    transfers = (copy(0, 1, 0), copy(2, 1, 3), copy(1, 2, 0, (0,)))
    ops = operations(Columns.of(transfers))
    assert relays(transfers, ops, ((),) * 4 + ((1, 3), ())) == {}


def test_an_arrival_is_passed_on_in_one_step_only():
    transfers = (copy(0, 1, 0), copy(1, 2, 0, (0,)), copy(1, 3, 0, (0,)))
    ops = operations(Columns.of(transfers))
    assert relays(transfers, ops, ((), (), (1,), (), (1,), ())) == {1: 2}


def test_a_copy_is_never_sent_on_as_a_sum():
    summed = Transfer(1, 2, 0, 1, True, (0,), ORIGIN, Slot("o", 0), Slot("o", 0), Slot("i", 0))
    transfers = (copy(0, 1, 0), summed)
    assert relays(transfers, operations(Columns.of(transfers)), ((), (), (1,), ())) == {}


def test_what_a_peer_sends_keeps_its_order():
    """The arrival 1 moves to its relay at 6, so 3 from the same peer comes behind it."""
    steps = [PlacedStep(1, None, (3,)), PlacedStep(1, 2, (1, 6)), PlacedStep(None, 2, (4,))]
    assert in_send_order(steps, ((),) * 8) == [steps[2], steps[1], steps[0]]


def test_what_can_be_sent_is_sent_before_anything_is_received():
    steps = [PlacedStep(1, None, (1,)), PlacedStep(None, 2, (4,)), PlacedStep(None, 2, (6,))]
    needed = ((),) * 6 + ((1,), ())
    assert in_send_order(steps, needed) == [steps[1], steps[0], steps[2]]


def test_hops_that_overtake_each_other_either_way_have_no_order():
    steps = [PlacedStep(1, 2, (1, 6)), PlacedStep(1, 2, (3, 4))]
    assert in_send_order(steps, ((),) * 8) is None


@pytest.mark.parametrize("size", [2, 3, 8])
def test_a_ring_takes_the_calls_of_the_textbook(size):
    """2 N - 1 of them: N - 1 to add up, N - 1 to copy, and one that begins."""
    from colsynth import api

    problem = api.make_problem(api.load_topology(f"ring:{size}"), "allreduce")
    done = api.compile(problem, "msccl", algorithm="ring", channels=1, mode="in-place")
    for gpu in done.artefacts[0].program.gpus:
        (block,) = gpu.threadblocks
        kinds = [step.op for step in block.steps]
        middle = ["rrs"] * (size - 2) + ["rrcs"] + ["rcs"] * (size - 2)
        assert kinds == ["s", *middle, "r"]
