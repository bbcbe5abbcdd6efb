"""Tasks on groups of threadblocks, equal to the slow twin and within its rules."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colsynth.kernels.timetable import Tasks, due_times, timetable
from tests.reference.timetable import Task, Timetable


def made(seed):
    """Return random tasks and the threadblocks of each group; followers share their group."""
    rng = random.Random(seed)
    groups = [rng.randint(1, 3) for _ in range(rng.randint(1, 4))]
    tasks: list[Task] = []
    for n in range(rng.randint(1, 25)):
        needs = tuple(rng.sample(range(n), min(n, rng.randint(0, 2))))
        group, chain = rng.randrange(len(groups)), n
        if needs and rng.random() < 0.3:
            group, chain = tasks[needs[0]].group, tasks[needs[0]].chain
        tasks.append(Task(group, chain, rng.randint(1, 9), rng.randint(0, 4), 0, needs, 0))
        tasks[chain].steps += rng.randint(1, 2)
    return tasks, groups


def arrays(tasks):
    columns = zip(*((t.group, t.chain, t.duration, t.late, t.steps) for t in tasks), strict=True)
    first = np.cumsum([0, *(len(t.needs) for t in tasks)])
    other = np.array([n for t in tasks for n in t.needs], np.int64)
    return Tasks(*(np.array(column, np.int64) for column in columns), first, other)


@given(st.integers(0, 10**9), st.integers(2, 40))
def test_the_kernel_equals_its_twin(seed, room):
    tasks, groups = made(seed)
    kernel = arrays(tasks)
    due = due_times(kernel, np.full(len(tasks), 100))
    for task, time in zip(tasks, due.tolist(), strict=True):
        task.due = time
    ends = np.cumsum([0, *groups])
    twin = Timetable(tasks, [range(a, b) for a, b in pairwise(ends.tolist())], room)
    fits = twin.run()
    block, begin, found = timetable(kernel, due, ends, room)
    assert found == fits
    if fits:
        assert block.tolist() == [twin.block[n] for n in range(len(tasks))]
        assert begin.tolist() == [twin.begin[n] for n in range(len(tasks))]
        assert all(block[n] == block[task.chain] for n, task in enumerate(tasks))


@given(st.integers(0, 10**9))
def test_who_is_needed_is_due_before_who_needs_it(seed):
    tasks, _ = made(seed)
    due = due_times(arrays(tasks), np.full(len(tasks), 100))
    for n, task in enumerate(tasks):
        users = [due[m] for m, other in enumerate(tasks) if n in other.needs]
        assert due[n] == min(users, default=100) - task.duration - task.late
