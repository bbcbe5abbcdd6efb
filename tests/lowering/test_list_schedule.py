"""The order in which links could carry out transfers, on programs small enough to see it."""

from colsynth import topology
from colsynth.lowering.list_schedule import list_schedule
from colsynth.model import Direction, Origin, Transfer

ORIGIN = Origin(0, Direction.OUT, 0)


def moved(source, target, *after, count=1):
    return Transfer(source, target, 0, count, False, after, ORIGIN)


def test_the_longest_way_goes_first():
    """Both leave GPU 0 for GPU 1, and the second has further to go."""
    program = [moved(0, 1), moved(0, 1), moved(1, 2, 1), moved(2, 3, 2)]
    assert list_schedule(program, topology.load("ring:4")) == [1, 2, 0, 3]


def test_a_link_carries_one_transfer_at_a_time():
    """The relay of the first is free to go before the third arrives."""
    program = [moved(0, 1), moved(0, 1), moved(0, 1), moved(1, 2, 0), moved(1, 2, 1)]
    assert list_schedule(program, topology.load("ring:4")) == [0, 1, 3, 2, 4]


def test_more_chunks_take_longer():
    program = [moved(0, 1, count=3), moved(2, 3), moved(1, 2, 0), moved(3, 0, 1)]
    assert list_schedule(program, topology.load("ring:4")) == [0, 1, 3, 2]


def test_what_is_on_other_links_does_not_wait():
    program = [moved(0, 1), moved(0, 1), moved(0, 3), moved(2, 1)]
    assert sorted(list_schedule(program, topology.load("ring:4"))[:3]) == [0, 2, 3]


def test_local_steps_take_no_link():
    program = [moved(0, 1), Transfer(1, 1, 0, 1, False, (0,), ORIGIN), moved(1, 2, 1)]
    assert list_schedule(program, topology.load("ring:4")) == [0, 1, 2]


def test_ports_of_a_switch_are_shared():
    """Two transfers into GPU 2 take turns; one into GPU 3 does not wait for them."""
    program = [moved(0, 2), moved(1, 2), moved(4, 3), moved(2, 5, 1)]
    assert list_schedule(program, topology.load("dgx-a100")) == [1, 2, 0, 3]
