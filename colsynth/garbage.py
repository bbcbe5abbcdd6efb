"""Python's search for reference cycles, paused where millions of values are made.

Transfers and steps are tuples of small values that refer to nothing back, so the search
finds nothing, yet looks at each of them several times: it takes a third of the time it
takes to lower and verify a program of 256 GPUs. Values without cycles are freed as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_cycles() -> Iterator[None]:
    """Make no search for reference cycles while the block runs, if there was one before."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()
