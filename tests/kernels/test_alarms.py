"""Events come by time, then by number, whatever was moved or taken away before."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colsynth.kernels.alarms import first_of, no_events, schedule

CHANGES = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0, 1e9, np.inf])))


@given(st.integers(7, 20), CHANGES)
def test_the_first_event_is_the_least_by_time_and_number(blocks, changes):
    tree, events = no_events(blocks), {}
    for number, time in changes:
        b = number * (blocks - 1) // 6
        schedule(tree, b, time)
        events[b] = time
        left = [(at, b) for b, at in events.items() if at < np.inf]
        if left:
            assert (tree[1], first_of(tree.view(np.int64))) == min(left)
        else:
            assert tree[1] == np.inf


def test_one_threadblock_and_none():
    assert no_events(0)[1] == np.inf
    tree = no_events(1)
    schedule(tree, 0, 2.0)
    assert (tree[1], first_of(tree.view(np.int64))) == (2.0, 0)
