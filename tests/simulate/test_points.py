"""Bandwidths as nccl-tests defines them (doc/PERFORMANCE.md)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from colsynth.model import Collective
from colsynth.simulate import Point, bus_factor


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
@pytest.mark.parametrize("collective", list(Collective))
def test_bus_factors(collective, ranks):
    share = Fraction(ranks - 1, ranks)
    expected = {
        Collective.ALLREDUCE: 2 * share,
        Collective.ALLGATHER: share,
        Collective.REDUCE_SCATTER: share,
        Collective.ALLTOALL: share,
        Collective.SCATTER: share,
        Collective.GATHER: share,
    }.get(collective, Fraction(1))
    assert bus_factor(collective, ranks) == float(expected)


def test_a_line_of_nccl_tests_comes_out_as_it_was_printed():
    """2 x 8 H200, allreduce of 1 GiB: 4389.5 us, 244.62 and 458.65 GB/s (nccl-tests#256)."""
    point = Point(1073741824, 4389.5e-6, 16, Collective.ALLREDUCE)
    assert round(point.algbw / 1e9, 2) == 244.62
    assert round(point.busbw / 1e9, 2) == 458.65


def test_no_time_is_no_bandwidth():
    assert Point(8, 0.0, 2, Collective.BROADCAST).busbw == 0
