"""Messages over gloo, by PyTorch's distributed package."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.execute.transport import FIELDS, Head, Message

if TYPE_CHECKING:
    from colsynth.execute.transport import Bytes

_DAY = timedelta(days=1)
_LEAVES = -1


class TorchTransport:
    """Messages by ``send`` and ``recv``, head and data one after the other.

    A thread per peer receives all the time, so a send never waits for the peer's program.
    """

    def __init__(self) -> None:
        torch: Any = import_module("torch")
        dist: Any = import_module("torch.distributed")
        torch.set_num_threads(1)
        self._torch, self._dist = torch, dist
        store = os.environ.get("COLSYNTH_STORE")
        if store is None:  # torchrun names a place to meet
            dist.init_process_group("gloo", timeout=_DAY)
        else:
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            place = dist.FileStore(store, size)
            dist.init_process_group("gloo", store=place, rank=rank, world_size=size, timeout=_DAY)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._groups = {
            ranks: dist.new_group(list(range(ranks)), _DAY, "gloo")
            for ranks in range(2, self.size + 1)
        }
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._threads = [
            Thread(target=self._listen, args=(peer,), daemon=True)
            for peer in range(self.size)
            if peer != self.rank
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, peer: int) -> None:
        head = self._torch.empty(FIELDS + 1, dtype=self._torch.int64)
        while True:
            self._dist.recv(head, src=peer)
            *fields, count = head.tolist()
            if count == _LEAVES:
                return
            data = np.empty(count, np.uint8)
            if count:
                self._dist.recv(self._torch.from_numpy(data), src=peer)
            self._inbox.put(Message(peer, tuple(fields), data))

    def send(self, target: int, head: Head, data: Bytes | None = None) -> None:
        """Send a message; returns when the peer's thread has it."""
        if target == self.rank:
            own = np.empty(0, np.uint8) if data is None else data.copy()
            self._inbox.put(Message(target, head, own))
            return
        count = 0 if data is None else data.size
        fields = self._torch.tensor([*head, count], dtype=self._torch.int64)
        self._dist.send(fields, dst=target)
        if data is not None and count:
            self._dist.send(self._torch.from_numpy(data), dst=target)

    def receive(self, seconds: float) -> Message | None:
        """Return the next message."""
        try:
            return self._inbox.get(timeout=seconds) if seconds > 0 else self._inbox.get_nowait()
        except Empty:
            return None

    def collective(self, name: str, ranks: int, root: int, given: Any, taken: Any) -> float | None:
        """Run the collective of gloo."""
        dist, group = self._dist, self._groups[ranks]
        source, target = self._torch.from_numpy(given), self._torch.from_numpy(taken)
        dist.barrier(group)
        start = time.perf_counter()
        if name in ("allreduce", "reduce", "broadcast"):
            target.copy_(source)
        {
            "allreduce": lambda: dist.all_reduce(target, group=group),
            "reduce": lambda: dist.reduce(target, root, group=group),
            "broadcast": lambda: dist.broadcast(target, root, group=group),
            "reduce-scatter": lambda: dist.reduce_scatter_tensor(target, source, group=group),
            "allgather": lambda: dist.all_gather_into_tensor(target, source, group=group),
            "alltoall": lambda: dist.all_to_all_single(target, source, group=group),
        }[name]()
        return time.perf_counter() - start

    def close(self) -> None:
        """Tell all peers, whose threads then end."""
        leave = self._torch.tensor([0] * FIELDS + [_LEAVES], dtype=self._torch.int64)
        for peer in range(self.size):
            if peer != self.rank:
                self._dist.send(leave, dst=peer)
        for thread in self._threads:
            thread.join()
        self._dist.destroy_process_group()
