"""Rows of unequal length one after the other, as the kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]


def offsets(sizes: ArrayLike) -> Ints:
    """Return where each row begins and, last, where all end: int64 (rows + 1,)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def group_by(keys: NDArray[Any], size: int) -> tuple[Ints, Ints]:
    """Return (first, order): entries in order of their keys, and where each key's begin.

    Parameters
    ----------
    keys : integer (n,)
        Each from 0 to below `size`.
    size : int
    """
    return offsets(np.bincount(keys, minlength=size)), np.argsort(keys, kind="stable")
