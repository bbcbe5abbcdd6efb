"""Messages over MPI."""

from __future__ import annotations

import re
import time
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.execute.transport import FIELDS, Head, Message

if TYPE_CHECKING:
    from colsynth.execute.transport import Bytes

_HEAD = FIELDS * 8
_CALLS = {
    "allreduce": "Allreduce",
    "reduce-scatter": "Reduce_scatter_block",
    "allgather": "Allgather",
    "alltoall": "Alltoall",
}
_SEGMENT = re.compile(r"/dev/shm/mpich_shm_\w+")  # noqa: S108 - read of the system, not guessed
"""Shared memory of MPICH, as the system lists what a process has mapped."""

_SHORTEST, _LONGEST = 2e-5, 2e-3
"""Seconds between two looks for messages. MPI itself would poll without a pause, and ranks share
cores here."""


def _unname_segments() -> None:
    """Remove the names of MPICH's shared memory; the system frees it when the last rank ends.

    MPICH removes them at its own end only, so they would stay when a rank is killed.
    """
    with suppress(OSError):
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
        for name in set(_SEGMENT.findall(mapped)):
            with suppress(OSError):
                Path(name).unlink()


class MpiTransport:
    """Messages over MPI's point-to-point operations: head and data are one message."""

    def __init__(self) -> None:
        self._mpi: Any = import_module("mpi4py.MPI")
        self._comm: Any = self._mpi.COMM_WORLD.Dup()
        _unname_segments()  # every rank has them, as all took part in the call before
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._groups: dict[int, Any] = {self.size: self._comm.Dup()}
        self._own: deque[Message] = deque()
        self._sending: list[tuple[Any, Bytes]] = []

    def send(self, target: int, head: Head, data: Bytes | None = None) -> None:
        """Send a copy of the data."""
        size = 0 if data is None else data.size
        whole = np.empty(_HEAD + size, np.uint8)
        whole[:_HEAD].view(np.int64)[:] = head
        if data is not None:
            whole[_HEAD:] = data
        if target == self.rank:
            self._own.append(Message(target, head, whole[_HEAD:]))
            return
        self._sending = [pair for pair in self._sending if not pair[0].Test()]
        self._sending.append((self._comm.Isend([whole, self._mpi.BYTE], target), whole))

    def receive(self, seconds: float) -> Message | None:
        """Return the next message."""
        if self._own:
            return self._own.popleft()
        end, pause = time.perf_counter() + seconds, _SHORTEST
        status = self._mpi.Status()
        while (found := self._comm.Improbe(status=status)) is None:
            if time.perf_counter() >= end:
                return None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        whole = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        found.Recv([whole, self._mpi.BYTE])
        head = tuple(whole[:_HEAD].view(np.int64).tolist())
        return Message(status.Get_source(), head, whole[_HEAD:])

    def collective(self, name: str, ranks: int, root: int, given: Any, taken: Any) -> float | None:
        """Run MPI's own collective."""
        if given.dtype == np.float16:
            return None
        comm = self._group(ranks)
        comm.Barrier()
        start = time.perf_counter()
        match name:
            case "broadcast":
                if self.rank == root:
                    taken[:] = given
                comm.Bcast(taken, root=root)
            case "reduce":
                comm.Reduce(given, taken, root=root)
            case _:
                getattr(comm, _CALLS[name])(given, taken)
        return time.perf_counter() - start

    def _group(self, ranks: int) -> Any:
        """Return a communicator of the first ranks; only they take part in making it."""
        if ranks not in self._groups:
            members = self._comm.Get_group().Incl(list(range(ranks)))
            self._groups[ranks] = self._comm.Create_group(members, tag=ranks)
        return self._groups[ranks]

    def close(self) -> None:
        """Wait until everything was sent."""
        self._mpi.Request.Waitall([request for request, _ in self._sending])
        self._mpi.Finalize()
