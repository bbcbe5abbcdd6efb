"""What rounds of PyTorch cost on one GPU: ``python -m tests.gpu.rounds``.

It needs PyTorch with CUDA and NCCL. Prints microseconds of the host and of the GPU for a call by
its rounds, and how fast local copies and sums are. The constants ``step``, ``wait``, ``round``,
``post`` and ``local_rate`` of the simulator's model come from these tables. A rank alone sends to
itself, so no wire is counted. Four ranks share the GPU and reach each other by sockets; there only
the time of the host tells anything.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.table import Table

import colsynth.torch
from colsynth.model import Collective, Header, LocalStep, Message, Round, RoundProgram, Slot
from colsynth.torch.engine import DeviceEngine
from colsynth.torch.rounds import RankProgram, execute, part_of
from colsynth.torch.transport import NcclTransport
from tests.bench.harness import show
from tests.torch.gpu_jobs import LENGTH, share_gpu

ROUNDS = (1, 8, 32)
MESSAGES = (1, 4, 16)
"""Sends, and receives, that a rank posts in a round."""
BYTES = (16, 1 << 16, 1 << 20, 1 << 24, 1 << 28)
REPEATS = 10


def program(rank: int, size: int, rounds: int, messages: int, sums: bool) -> RankProgram:
    """Return rounds that each send so many chunks to the next rank, and add one up if asked."""
    header = Header("", Collective.ALLREDUCE, "Simple", size, messages, 1, True, True)
    slots = [(Slot("i", n), Slot("s", n)) for n in range(messages)]
    sent = [Message(one, (one + 1) % size, *pair, 1) for one in range(size) for pair in slots]
    added = [LocalStep(n, Slot("s", 0), Slot("i", 0), Slot("i", 0), 1) for n in range(size)]
    own = Round(tuple(sent), tuple(added) if sums else ())
    return part_of("", RoundProgram(header, (messages,) * size, (own,) * rounds), rank)


def call(engine: DeviceEngine, own: RankProgram, data: torch.Tensor) -> Callable[[], None]:
    """Return a call of a program, after which the current stream has waited for it."""

    def job(transport: Any) -> None:
        execute(own, data, data, data.numel(), torch.add, transport)

    return lambda: engine.submit("", job, [data], [data]).wait()


def host(work: Callable[[], None], many: int = 4) -> float:
    """Return the median of microseconds until calls are queued, one call of some."""
    seen = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(many):
            work()
        seen.append((time.perf_counter() - begin) / many)
    torch.cuda.synchronize()
    return 1e6 * statistics.median(seen)


def device(work: Callable[[], None], many: int = 4) -> float:
    """Return the median of microseconds between two events of the GPU, one call of some."""
    seen = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(many):
            work()
        end.record()
        end.synchronize()
        seen.append(begin.elapsed_time(end) / many)
    return 1e3 * statistics.median(seen)


def graph_of(work: Callable[[], None]) -> Callable[[], None]:
    """Return a replay of a CUDA graph of a call."""
    own = torch.cuda.CUDAGraph()
    with torch.cuda.graph(own, capture_error_mode="thread_local"):
        work()
    return own.replay


def rounds_table(engine: DeviceEngine) -> Table:
    """Return times of a rank's calls to itself, by rounds and messages."""
    columns = ("rounds", "messages", "sums", "host", "GPU", "GPU, as a graph")
    table = Table(*columns, title="one rank: microseconds a call")
    for messages in MESSAGES:
        for sums in (False, True) if messages == 1 else (False,):
            for rounds in ROUNDS:
                data = torch.ones(4 * messages, device="cuda")
                work = call(engine, program(0, 1, rounds, messages, sums), data)
                work()
                times = [host(work), device(work), device(graph_of(work))]
                cells = [f"{us:.1f}" for us in times]
                table.add_row(str(rounds), str(messages), "yes" if sums else "no", *cells)
    return table


def calls_table(size: int) -> Table:
    """Return microseconds of the host for calls with and without a schedule."""
    table = Table("call", "by", "host", title=f"{size} ranks: microseconds a call")
    whole, part = torch.ones(LENGTH), torch.ones(LENGTH // size)
    calls = {
        "all_reduce": lambda group: dist.all_reduce(whole, group=group),
        "all_gather": lambda group: dist.all_gather_into_tensor(whole, part, group=group),
        "reduce_scatter": lambda group: dist.reduce_scatter_tensor(part, whole, group=group),
    }
    for backend in ("nccl", "colsynth"):
        own = dist.new_group(backend=backend)
        for name, work in calls.items():
            work(own)
            table.add_row(name, backend, f"{host(partial(work, own), 1):.1f}")
    print(colsynth.torch.served(own), flush=True)
    return table


def local_table() -> Table:
    """Return what local steps take, one kernel after the other."""
    columns = ("bytes", "copy, us", "sum, us", "sum, GB/s", "7 sums, us", "at once, us")
    table = Table(*columns, title="local steps of one chunk")
    for size in BYTES:
        a, b, c = (torch.ones(size // 4, device="cuda") for _ in range(3))
        many = torch.ones(7, size // 4, device="cuda")

        def one_by_one(b: torch.Tensor = b, many: torch.Tensor = many) -> None:
            for row in many:
                torch.add(b, row, out=b)

        def at_once(b: torch.Tensor = b, many: torch.Tensor = many) -> None:
            torch.add(b, torch.sum(many, 0, dtype=b.dtype), out=b)

        copied = device(lambda c=c, a=a: c.copy_(a), 16)
        added = device(lambda a=a, b=b: torch.add(a, b, out=b), 16)
        cells = [copied, added, size / added / 1e3, device(one_by_one, 4), device(at_once, 4)]
        table.add_row(str(size), *(f"{cell:.2f}" for cell in cells))
    return table


def run(rank: int, size: int, place: str) -> None:
    """Do a rank's part; rank 0 prints."""
    share_gpu(rank)
    store = dist.FileStore(place, size)
    if size > 1:
        dist.init_process_group("nccl", store=store, rank=rank, world_size=size)
        table = calls_table(size)
    else:
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timedelta(minutes=1)
        backend = dist.ProcessGroupNCCL(store, rank, size, options)
        table = rounds_table(DeviceEngine(NcclTransport(backend)))
    if rank == 0:
        show(table)


def main() -> None:
    """Print all tables, each made by processes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for size in (1, 4):
            children = []
            for rank in range(size):
                child = os.fork()
                if not child:
                    failed = 1
                    try:
                        run(rank, size, str(Path(folder) / f"store{size}"))
                        failed = 0
                    except BaseException:  # noqa: BLE001 - the parent goes on
                        traceback.print_exc()
                    finally:
                        sys.stdout.flush()
                        os._exit(failed)
                children.append(child)
            if sum(os.waitpid(child, 0)[1] for child in children):
                sys.exit(1)
    print(torch.cuda.get_device_name(0), torch.__version__, torch.cuda.nccl.version())
    show(local_table())


if __name__ == "__main__":
    main()
