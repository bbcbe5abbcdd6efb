"""Columns of steps hold what the steps say, and give it back one by one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from colsynth.model import Direction, Origin, Rows, Slot, Step, StepTable, Wait
from colsynth.model.step_table import table_of

STEPS = (
    Step("s", Slot("i", 3), None, 2, (Wait(1, 2), Wait(4, 0)), signals=True),
    Step("nop", None, None, 0, (Wait(0, 7),)),
    Step("rrc", Slot("s", 0), Slot("o", 5), 1, folds=((3, 0), (4, 1))),
    Step("cpy", Slot("i", 1), Slot("s", 2), 4, origin=Origin(1, Direction.OUT, 5, 2, 3)),
    Step("strange", Slot("q", -1), Slot("", 2), -4, origin=Origin(0, Direction.IN, -1)),
    Step("glres", None, Slot("o", 2), 1),
)


def test_steps_come_back():
    table = StepTable.of(STEPS)
    assert table.steps(0, len(STEPS)) == STEPS
    assert table.steps(2, 4) == STEPS[2:4]
    rows = Rows(table, 1, 5)
    assert (*rows,) == STEPS[1:5]
    assert rows[0] == STEPS[1]
    assert rows[-2:] == STEPS[3:5]
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_some_steps_are_taken_in_any_order():
    table = StepTable.of(STEPS).take(np.array([4, 2, 0, 2]))
    assert table.steps(0, 4) == (STEPS[4], STEPS[2], STEPS[0], STEPS[2])


@pytest.mark.parametrize("place", range(len(STEPS)))
def test_rows_are_equal_where_their_steps_are(place):
    """Also where the columns of two tables have other codes for the same words."""
    rows = Rows(StepTable.of(STEPS), 0, len(STEPS))
    other = [*STEPS]
    assert rows == Rows(StepTable.of([*STEPS[::-1], *STEPS]), len(STEPS), 2 * len(STEPS))
    assert rows == STEPS
    other[place] = Step("s", Slot("i", 0), None, 1)
    assert rows != Rows(StepTable.of(other), 0, len(other))
    assert rows != tuple(other)


@pytest.mark.parametrize(
    "changed",
    [
        Step("r", None, Slot("o", 1), 1, (Wait(0, 1),)),
        Step("r", None, Slot("o", 1), 1, (Wait(0, 1), Wait(1, 1))),
        Step("r", None, Slot("o", 1), 1, (Wait(0, 2), Wait(1, 2))),
        Step("r", None, Slot("o", 2), 1, (Wait(0, 1), Wait(1, 2))),
    ],
)
def test_rows_differ_where_columns_do(changed):
    step = Step("r", None, Slot("o", 1), 1, (Wait(0, 1), Wait(1, 2)))
    rows = [Rows(StepTable.of([STEPS[0], one, STEPS[3]]), 0, 3) for one in (step, step, changed)]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]
    assert hash(rows[0]) == hash(rows[1])


def test_the_table_of_threadblocks_is_theirs_where_they_follow_each_other():
    table = StepTable.of(STEPS)
    parts = list(table.parts([2, 0, 4]))
    assert table_of(parts) is table
    turned = table_of(parts[::-1])
    assert turned.steps(0, len(STEPS)) == (*STEPS[2:], *STEPS[:2])
    assert table_of([parts[0], (), STEPS[4:]]).steps(0, 4) == (*STEPS[:2], *STEPS[4:])
    assert len(table_of([])) == 0
    assert table.used() == sorted(set(table.used()), key=table.words.index)
    assert table.has("glres")
    assert not table.has("rcs")
