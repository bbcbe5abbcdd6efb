"""How a rank that fails tells the others why."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

_FAILURE = "failure"


def told(store: Any, rank: int, what: str, reason: str) -> str:
    """Return what is said of a call that has failed, with what a rank that failed before said.

    Parameters
    ----------
    store : Store
        Keeps what the first rank says.
    rank : int
    what, reason : str
        Name of the call, and why it has failed.
    """
    text = f"colsynth: {what} failed on rank {rank}: {reason}"
    with suppress(Exception):  # the store may be gone with the rank that kept it
        known = store.compare_set(_FAILURE, "", text).decode()
        text = text if known in (text, "") else f"{text}; before that, {known}"
    return text


def end_process(store: Any, rank: int, what: str, reason: str) -> None:
    """Say why a call on a GPU has failed, and end the process.

    A kernel of NCCL that waits for another rank ends in no other way. As with PyTorch's own calls,
    ``TORCH_NCCL_ASYNC_ERROR_HANDLING=0`` lets the process go on.
    """
    sys.stderr.write(told(store, rank, what, reason) + "\n")
    sys.stderr.flush()
    if os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "") != "0":
        os._exit(1)
