"""What a log says, whatever tool printed it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from colsynth.errors import Diagnostic

TESTS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "sendrecv": "sendrecv",
    "gather": "gather",
    "scatter": "scatter",
    "hypercube": "hypercube",
}
"""What nccl-tests runs, ``all_reduce_perf`` and so on, and what colsynth calls it."""


def number_of(word: Any) -> float | None:
    """Return a field as a number above zero; None where it is none, or no measurement."""
    try:
        value = float(word)
    except (TypeError, ValueError):
        return None
    return value if 0 < value < math.inf else None


class Device(NamedTuple):
    """A rank of the run: host, number of the GPU there, what the GPU is called, and the line."""

    host: str
    device: int
    name: str = ""
    line: int = 0


class Started(NamedTuple):
    """How many ranks a command starts, and the line that it stands in."""

    ranks: int
    line: int


class Row(NamedTuple):
    """One measurement: bytes as nccl-tests counts them, seconds, and the line (0 in JSON)."""

    size: int
    seconds: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class Pinned:
    """What the run was told to use; None where nothing is known of it.

    Parameters
    ----------
    collective : str or None
        A value of `TESTS`.
    algorithm : str or None
        As colsynth calls it: ``"ring"`` or ``"tree"``; others in lower case.
    protocol : str or None
        ``"Simple"``, ``"LL"`` or ``"LL128"``.
    channels : int or None
        Channels of a collective, or channels per peer of a sendrecv.
    """

    collective: str | None = None
    algorithm: str | None = None
    protocol: str | None = None
    channels: int | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """One figure of a link without a collective around it.

    Parameters
    ----------
    what : str
        ``"copy"``: bytes per second from GPU to GPU by a copy engine (nvbandwidth);
        ``"network"``: bytes per second from NIC to NIC (ib_write_bw); ``"latency"``: seconds
        from NIC to NIC (ib_send_lat).
    value : float
    pair : (int, int) or None
        Numbers of the two GPUs, source first, where they are known.
    """

    what: str
    value: float
    pair: tuple[int, int] | None = None


@dataclass(frozen=True)
class Log:
    """The measurements of one file.

    Parameters
    ----------
    name, digest : str
        Of the file; its SHA-256, in hexadecimal.
    tool : str
        ``"nccl-tests"``, ``"nvbandwidth"``, ``"ib_write_bw"`` or ``"ib_send_lat"``.
    pinned : Pinned
    devices : tuple of Device
        By rank; empty where the log does not say.
    least_ranks : int
        The ranks of one process; there were more where several ran.
    started : Started or None
        The ranks of the command of mpirun or srun, if the log shows one.
    rows : tuple of Row
        By size, ascending: one for each, the median of what was kept.
    wires : tuple of Wire
    notes : tuple of str
        What was left out, and why; what its user should know.
    doubts : tuple of Diagnostic
        Warnings: what the log says against itself or its user.
    path : str
        Of the file, as its user wrote it.
    """

    name: str
    digest: str
    tool: str
    pinned: Pinned = Pinned()
    devices: tuple[Device, ...] = ()
    least_ranks: int = 1
    started: Started | None = None
    rows: tuple[Row, ...] = ()
    wires: tuple[Wire, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[Diagnostic, ...] = ()
    path: str = ""
