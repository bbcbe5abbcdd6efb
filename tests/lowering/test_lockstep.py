"""Lockstep: every rank sends its own data first, then passes on what the others sent."""

import numpy as np
import pytest

from colsynth.lowering.columns import Columns, rows
from colsynth.lowering.lockstep import in_send_order, relays
from colsynth.model import Direction, Origin, Slot, Transfer

ORIGIN = Origin(0, Direction.OUT, 0)


def copy(source, target, chunk, after=()):
    place = Slot("o", chunk)
    return Transfer(source, target, chunk, 1, False, after, ORIGIN, place, place)


def relayed(transfers, waits):
    """Return the pairs of arrival and send that share a step."""
    found = relays(Columns.of(transfers), rows(waits)).tolist()
    return {arrival: send for arrival, send in enumerate(found) if send >= 0}


def test_a_relay_may_stand_behind_other_transfers():
    transfers = (copy(0, 1, 0), copy(1, 2, 1), copy(1, 2, 0, (0,)))
    assert relayed(transfers, ((),) * 4 + ((1,), ())) == {1: 4}


def test_a_send_that_waits_for_more_than_the_arrival_has_a_step_of_its_own():
    transfers = (copy(0, 1, 0), copy(2, 1, 3), copy(1, 2, 0, (0,)))
    assert relayed(transfers, ((),) * 4 + ((1, 3), ())) == {}


def test_an_arrival_is_passed_on_in_one_step_only():
    transfers = (copy(0, 1, 0), copy(1, 2, 0, (0,)), copy(1, 3, 0, (0,)))
    assert relayed(transfers, ((), (), (1,), (), (1,), ())) == {1: 2}


def test_a_copy_is_never_sent_on_as_a_sum():
    summed = Transfer(1, 2, 0, 1, True, (0,), ORIGIN, Slot("o", 0), Slot("o", 0), Slot("i", 0))
    assert relayed((copy(0, 1, 0), summed), ((), (), (1,), ())) == {}


def test_slots_are_the_same_whatever_else_is_read():
    passed = Slot("s", 0)
    transfers = (
        Transfer(0, 1, 0, 1, False, (), ORIGIN, Slot("i", 9), passed),
        Transfer(1, 2, 0, 1, False, (0,), ORIGIN, passed, passed),
    )
    assert relayed(transfers, ((), (), (1,), ())) == {1: 2}


def test_what_is_read_elsewhere_is_sent_for_itself():
    moved = Transfer(1, 2, 0, 1, False, (0,), ORIGIN, Slot("i", 0), Slot("o", 0))
    assert relayed((copy(0, 1, 0), moved), ((), (), (1,), ())) == {}


def sorted_steps(transfers, steps, waits):
    """Return the steps of one threadblock in their order; None for a circle."""
    ends = np.array([(step[0], step[-1]) for step in steps])
    block = np.zeros(len(steps), np.int64)
    order = in_send_order(block, ends, Columns.of(transfers), rows(waits))
    return None if order is None else [steps[number] for number in order]


def test_what_a_peer_sends_keeps_its_order():
    """The arrival 1 moves to its relay at 6, so 3 from the same peer comes behind it."""
    transfers = (copy(1, 0, 0), copy(1, 0, 1), copy(0, 2, 2), copy(0, 2, 0))
    steps = [(3,), (1, 6), (4,)]
    assert sorted_steps(transfers, steps, ((),) * 8) == [(4,), (1, 6), (3,)]


def test_what_can_be_sent_is_sent_before_anything_is_received():
    transfers = (copy(1, 0, 0), copy(3, 4, 1), copy(0, 2, 2), copy(0, 2, 0))
    waits = ((),) * 6 + ((1,), ())
    assert sorted_steps(transfers, [(1,), (4,), (6,)], waits) == [(4,), (1,), (6,)]


def test_transfers_that_overtake_each_other_either_way_have_no_order():
    transfers = (copy(1, 0, 0), copy(1, 0, 1), copy(0, 2, 1), copy(0, 2, 0))
    assert sorted_steps(transfers, [(1, 6), (3, 4)], ((),) * 8) is None


def test_threadblocks_are_sorted_each_for_itself():
    transfers = (copy(1, 0, 0), copy(0, 2, 0), copy(3, 0, 1), copy(0, 4, 1))
    ends = np.array([(1, 1), (2, 2), (5, 5), (6, 6)])
    waits = rows(((), (), (1,), (), (), (), (), ()))
    order = in_send_order(np.array([0, 0, 1, 1]), ends, Columns.of(transfers), waits)
    assert order.tolist() == [0, 1, 3, 2]


@pytest.mark.parametrize("size", [3, 8])
def test_a_ring_passes_sums_on_in_one_step(size):
    from colsynth import api

    problem = api.make_problem(api.load_topology(f"ring:{size}"), "reduce-scatter")
    done = api.compile(problem, "msccl", algorithm="ring", channels=1, mode="in-place")
    for gpu in done.artefacts[0].program.gpus:
        kinds = [step.op for block in gpu.threadblocks for step in block.steps]
        assert kinds == ["s", *["rrs"] * (size - 2), "rrc"]


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
