"""Runs MSCCL++ plans on one GPU with ``plans.cu``; needs cupy."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from colsynth.execute.definition import Call
from colsynth.runtimes.plans.reader import header_of
from tests.gpu.device import LINE, Outcome, buffers
from tests.gpu.device import kernels as other_kernels
from tests.gpu.plan_tables import tables_of

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Plan
    from colsynth.runtimes.profile import Profile

FEWER = (512, 256, 128, 64, 32)
"""Threads of a threadblock where more of them are to be resident."""
COPIES = 3
"""Calls of a launch whose data is looked at, each with data of its own. Odd, so that data and
halves of scratch meet in every way."""
QUEUE, TRIGGER = 128, 5
"""Triggers that wait for a proxy at most, and words of each, as in the kernel."""
PATIENCE = 1_000_000_000
"""Nanoseconds until a launch is taken for stuck."""
HOLD = 20_000
"""Nanoseconds by which ranks are held back at most, in every other launch that is looked at."""
MOST_FAULTS = 40


def source(path: Path) -> str:
    """Return a file with ``orders.cuh`` in its place, so that a compiler needs no folders."""
    orders = path.with_name("orders.cuh").read_text()
    return path.read_text().replace('#include "orders.cuh"\n', orders)


@cache
def kernel() -> Any:
    """Return the compiled interpreter of plans."""
    code = source(Path(__file__).with_name("plans.cu"))
    return cupy.RawModule(code=code, options=("-std=c++17",)).get_function("run_plan")


class Arena:
    """The buffers of every rank: the user's for some calls in turn, then scratch.

    Parameters
    ----------
    calls : list of Call
        Of every rank.
    words : int
        Numbers of 4 bytes in all.
    copies : int
    real : bool
        Whether the plan is a collective, so that it is known what must be in the buffers.
    """

    def __init__(self, calls: list[Call], words: int, copies: int, real: bool) -> None:
        self.now = cupy.full(words, np.nan, np.float32)
        self.counted = cupy.zeros(1, cupy.uint64)
        self.first = self.wanted = cupy.zeros(0, np.float32)
        if not real:
            return
        first: list[Any] = []
        wanted: list[Any] = []
        for call in calls:
            before, after, _ = buffers(call, call.in_place)
            first += before
            wanted += after
        # Sums stay exact where all numbers are multiplied by a power of 2.
        self.first, self.wanted = (
            cupy.concatenate([own * np.float32(2**k) for k in range(copies)])
            for own in (cupy.asarray(np.concatenate(parts)) for parts in (first, wanted))
        )

    def reset(self) -> None:
        """Put the user's data back; scratch stays as the last call left it."""
        self.now[: len(self.first)] = self.first

    def wrong(self) -> int:
        """Return how many elements are not what they must be."""
        self.counted.fill(0)
        numbers = self.now, self.wanted, np.int64(len(self.wanted)), self.counted
        other_kernels().get_function("compare")((264,), (512,), numbers)
        return int(self.counted.get()[0])

    def faults(self) -> list[tuple[int, int]]:
        """Return where wrong elements are: the first of each row of them, and how many."""
        wanted = cupy.asnumpy(self.wanted)
        now = cupy.asnumpy(self.now[: len(wanted)])
        places = np.flatnonzero(~np.isnan(wanted) & (now != wanted))
        begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        lengths = np.diff(np.append(begins, len(places)))
        return list(zip(places[begins].tolist(), lengths.tolist(), strict=True))


class LoadedPlan:
    """A plan on the GPU, at one message size.

    Parameters
    ----------
    plan : Plan
    profile : Profile
    size : int
        Bytes of the message; chunks of them are multiples of 16.
    real : bool
        Whether the plan is a collective. Data of one that is not is never looked at.
    threads : int, optional
        Of a threadblock; as the plan says unless given, fewer where not all would be resident.

    Raises
    ------
    ValueError
        The plan needs what is not done here, or more threadblocks than are resident together.
    """

    def __init__(
        self, plan: Plan, profile: Profile, size: int, real: bool = True, threads: int | None = None
    ) -> None:
        found = header_of(plan, profile)
        assert found is not None
        kind = np.dtype(np.float32)
        calls = [
            Call(found[0], False, rank, kind, size // 4, plan.inplace)
            for rank in range(len(plan.gpus))
        ]
        self.copies = COPIES if real else 1
        tables = tables_of(plan, profile, calls, self.copies)
        self.tables = tables
        self.blocks = len(tables.blocks)
        self.shared = tables.shared_bytes
        self.wanted_threads = plan.num_threads_per_block
        self.threads = threads or self._threads()
        self.arena = Arena(calls, tables.bytes // 4, self.copies, real)
        self.begin = np.zeros(max(1, len(tables.semaphores)) * 2 * LINE, np.int32)
        self.begin[: len(tables.semaphores) * 2 * LINE : 2 * LINE] = tables.semaphores
        self.inbound, self.expected = _words(tables.channels), _words(tables.channels)
        self.semaphores = cupy.asarray(self.begin)
        triggers = cupy.zeros(max(1, tables.queues) * QUEUE * TRIGGER, cupy.uint64)
        self.times = cupy.zeros((self.blocks, 2), cupy.uint64)
        self.arrived, self.stuck = cupy.zeros(1, cupy.uint64), cupy.zeros(1, cupy.int32)
        lists = (tables.blocks, tables.ops, tables.operands, tables.ids)
        self.arrays = (
            *(cupy.asarray(np.ascontiguousarray(x)) for x in lists),
            self.arena.now, self.inbound, self.expected, self.semaphores,
            _words(tables.barriers), _words(len(plan.gpus)), _words(tables.queues),
            _words(tables.queues), triggers, self.times, self.arrived, self.stuck,
        )  # fmt: skip
        self.launches = self.calls = 0
        self.faults: list[list[tuple[int, int]]] = []

    @property
    def whole(self) -> bool:
        """Whether every threadblock has an SM and the threads that it has in the library."""
        many = cupy.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]
        return self.blocks <= many and self.threads == self.wanted_threads

    def _threads(self) -> int:
        """Return the most threads with which all threadblocks are resident together."""
        many = cupy.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]
        if self.shared > 48 << 10:
            raise ValueError(f"a threadblock needs {self.shared} bytes of shared memory")
        for threads in (self.wanted_threads, *FEWER):
            each = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                kernel().kernel.ptr, threads, self.shared
            )
            if self.blocks <= many * each:
                return int(threads)
        raise ValueError(f"{self.blocks} threadblocks are not resident together")

    def launch(self, calls: int, hold: int = 0) -> float:
        """Execute the plan so many times in one launch; return the seconds it took."""
        self.launches += 1
        numbers = (
            np.int64(self.tables.user_bytes), np.int32(calls), np.uint64(self.launches),
            np.uint64(self.calls), np.uint64(hold), np.int64(PATIENCE),
        )  # fmt: skip
        kernel()((self.blocks,), (self.threads,), (*self.arrays, *numbers), shared_mem=self.shared)
        self.calls += calls
        times = cupy.asnumpy(self.times[: self.tables.workers]).astype(np.int64)
        return float(times[:, 1].max() - times[:, 0].min()) / 1e9

    def left(self) -> int:
        """Return signals and counts of semaphores out of balance: 0 after calls that ended."""
        signals = cupy.asnumpy(self.inbound).astype(np.int64) - cupy.asnumpy(self.expected)
        return int(np.abs(signals).sum() + (cupy.asnumpy(self.semaphores) != self.begin).sum())

    def measure(self, *, launches: int, looks: int) -> Outcome:
        """Execute the plan, first with a look at the data.

        Parameters
        ----------
        launches : int
            Launches that are timed, of one call each.
        looks : int
            Launches of which the data is looked at, of `COPIES` calls each; in every other one,
            ranks are held back at random.
        """
        wrong: list[int] = []
        for number in range(looks):
            self.arena.reset()
            self.launch(self.copies, HOLD * (number % 2))
            wrong.append(self.arena.wrong())
            if wrong[-1]:
                self.faults.append(self.arena.faults()[:MOST_FAULTS])
            if self.stuck.get()[0]:
                break
        stuck = bool(self.stuck.get()[0])
        seconds = [0.0 if stuck else self.launch(1) for _ in range(max(1, launches))]
        stuck = stuck or bool(self.stuck.get()[0])
        return Outcome(np.array(seconds), sum(wrong), sum(map(bool, wrong)), stuck)


def _words(many: int) -> Any:
    """Return counters, each in a line of its own."""
    return cupy.zeros(max(1, many) * LINE, cupy.uint64)
