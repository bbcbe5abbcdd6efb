"""What every test may ask for."""

import os

import pytest
from hypothesis import settings

from colsynth.jobs import process_copy
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target

# Every run tries the same examples; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "seeded"))

IS_POSSIBLE = process_copy.is_possible
process_copy.is_possible = lambda: False  # all cores have tests to run


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Kernels run on one thread where a test does not ask for more, as other tests do beside it.

    Small cases wait for threads longer than they compute.
    """
    import numba

    numba.set_num_threads(1)


@pytest.fixture
def threads():
    """Return a function that sets the number of threads, for one test."""
    import numba

    yield lambda most: numba.set_num_threads(min(most, numba.config.NUMBA_NUM_THREADS))
    numba.set_num_threads(1)


@pytest.fixture
def copies(monkeypatch):
    """Let this process copy itself, as the command line does."""
    monkeypatch.setattr(process_copy, "is_possible", IS_POSSIBLE)


def pytest_collection_modifyitems(items):
    """Begin with what takes long, lest one worker is left with it when all others are done."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def target():
    """A target for passes that do not look at its limits."""
    profile = Profile(
        name="toy",
        title="a runtime for tests",
        version="0",
        ops=("s", "r", "cpy", "re", "nop"),
        collectives={},
        both_modes=True,
        exclusive_max=False,
        least_min_bytes=0,
        default_max_bytes=None,
        max_threadblocks=64,
        resident_threadblocks=64,
        max_steps=64,
        max_channels=32,
        max_threadblocks_per_channel=64,
        max_xml_nodes=4094,
        max_count=71,
        max_offset=32767,
        max_wait_target=127,
        fifo_calls={"Simple": 2},
        tile_bytes={"Simple": 2**19},
        longest_sum=15,
        max_tiles=65536,
    )
    return Target(profile)
