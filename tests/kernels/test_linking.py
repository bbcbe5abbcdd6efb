import numpy as np
from numba.core.compiler import Flags

from colsynth.kernels.compiled import njit


@njit(cache=False, allocates=True)
def _room(n):
    return np.zeros(n, np.int64)


@njit(cache=False, allocates=True)
def squares(n):
    found = _room(n)
    for i in range(n):
        found[i] = i * i
    return found


@njit(cache=False)
def sums(n):
    """Call what `squares` calls too, before and after it."""
    found = _room(n + 1)
    found[1:] = np.cumsum(squares(n))
    return found + _room(n + 1)


def test_only_what_python_calls_becomes_machine_code():
    assert sums(4).tolist() == [0, 0, 1, 5, 14]
    assert not squares.overloads
    (inner,) = _room.overloads.values()
    (outer,) = sums.overloads.values()
    assert not inner.library._translated
    assert outer.library._translated
    assert squares(3).tolist() == [0, 1, 4]
    assert sums(2).tolist() == [0, 0, 1]


def test_flags_that_only_concern_entries_from_python_make_no_difference():
    usual = Flags()
    outside, checked = copied(usual, release_gil=True), copied(usual, boundscheck=True)
    assert outside == usual
    assert hash(outside) == hash(usual)
    assert checked != usual
    assert usual != "flags"


def copied(flags, **options):
    """Return flags with other options."""
    changed = flags.copy()
    for name, value in options.items():
        setattr(changed, name, value)
    return changed
