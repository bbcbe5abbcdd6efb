import numpy as np
import pytest

from colsynth.kernels.compiled import njit


@njit(cache=False)
def _smaller(one, other):
    return one if one[0] < other[0] else other


@njit(cache=False)
def _ramp(n):
    return np.arange(n)


@njit(cache=False)
def _halves(array):
    return array[:2], array[2:].sum()


@njit(cache=False, allocates=True)
def _counted(array):
    return array if array[0] else array.copy()


@njit(cache=False)
def _swapped(array):
    part = array[1:3]
    part[0], part[1] = part[1], part[0]
    return part[0]


@njit(cache=False)
def returns_an_argument(one, other):
    return _smaller(one, other)[0]


@njit(cache=False)
def returns_a_new_one(n):
    return _ramp(n).sum()


@njit(cache=False)
def returns_a_part(array):
    return _halves(array)[1]


@njit(cache=False, allocates=True)
def _room(n):
    return np.zeros(n)


@njit(cache=False)
def _total(n):
    return _room(n).sum()


@njit(cache=False)
def uses_a_new_one(n):
    return _total(n)


@njit(cache=False)
def is_right(array):
    kept = _counted(array)
    for _ in range(1000):
        _swapped(kept)
        kept = _counted(kept)
    return kept


@pytest.mark.parametrize(
    ("kernel", "given", "named"),
    [
        (returns_an_argument, (np.ones(3), np.ones(3)), "_smaller"),
        (returns_a_part, (np.ones(3),), "_halves returns arrays"),
        (returns_a_new_one, (3,), "_ramp"),
        (uses_a_new_one, (3,), "what calls _room gets arrays"),
    ],
)
def test_a_kernel_that_does_not_count_references_cannot_make_or_return_arrays(kernel, given, named):
    with pytest.raises(Exception, match=named):
        kernel(*given)


def test_borrowed_arrays_outlive_the_kernels_that_use_them():
    array = np.array([1, 5, 7])
    assert is_right(array).tolist() == [1, 5, 7]
    assert is_right(np.array([0, 5, 7])).tolist() == [0, 5, 7]
    assert array.tolist() == [1, 5, 7]
