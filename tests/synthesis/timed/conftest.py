"""Schedules are made and checked on one thread."""

import numba
import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """Small cases wait for threads longer than they compute."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)
