"""Runs programs on one GPU with ``interpreter.cu``; needs cupy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from colsynth.execute.definition import Call
from tests.gpu.tables import Tables, tables_of

if TYPE_CHECKING:
    from colsynth.model import ThreadblockProgram
    from colsynth.runtimes.profile import Profile

THREADS = {"Simple": 512, "LL": 512, "LL128": 640}
"""Of a threadblock in the runtime; Simple has one warp more."""
FEWER = (256, 128, 64, 32)
"""Threads where more threadblocks are to be resident."""
SLOT = {"Simple": 512 << 10, "LL": 64 << 10, "LL128": 614400}
SLOTS, LINE, PATIENCE = 8, 16, 2_000_000_000
MOST_FAULTS = 40


@dataclass(frozen=True)
class Outcome:
    """What a program did with one message size.

    Parameters
    ----------
    seconds : float64 (launches,)
        From the last threadblock's begin to the last one's end.
    wrong : int
        Wrong elements of all launches that were looked at.
    spoilt : int
        Launches that had any.
    stuck : bool
        Whether the program hung.
    """

    seconds: Any
    wrong: int
    spoilt: int
    stuck: bool


@cache
def kernels() -> Any:
    """Return the compiled interpreter."""
    code = Path(__file__).with_name("interpreter.cu").read_text()
    return cupy.RawModule(code=code, options=("-std=c++17",))


class Memory:
    """The user's buffers and the scratch buffer of every rank, in one array of float32.

    Parameters
    ----------
    program : ThreadblockProgram
    size : int
        Bytes of the message.
    in_place : bool
    real : bool
        Whether the program is a collective, so that it is known what must be in the buffers.

    Raises
    ------
    ValueError
        Chunks are not multiples of 16 bytes.
    """

    def __init__(self, program: ThreadblockProgram, size: int, in_place: bool, real: bool) -> None:
        header = program.header
        if size % (16 * header.chunks):
            raise ValueError(f"{size} bytes are not chunks of a multiple of 16")
        chunk = size // header.chunks // 4
        first: list[Any] = []
        wanted: list[Any] = []
        places = []
        for gpu in program.gpus:
            if real:
                call = Call(header, False, gpu.rank, np.dtype(np.float32), size // 4, in_place)
                parts = buffers(call, in_place)
            else:
                zeros = [np.zeros(n * chunk, np.float32) for n in (gpu.input_chunks,) * 2]
                parts = zeros, zeros, (0, len(zeros[0]))
            at = sum(map(len, first))
            spare = np.full(gpu.scratch_chunks * chunk, np.nan, np.float32)
            places.append([at + place for place in parts[2]] + [at + sum(map(len, parts[0]))])
            first += [*parts[0], spare]
            wanted += [*parts[1], spare]
        self.first, self.wanted = (cupy.asarray(np.concatenate(x)) for x in (first, wanted))
        self.now = self.first.copy()
        self.bases = self.now.data.ptr + 4 * cupy.array(places, cupy.uint64)
        self.counted = cupy.zeros(1, cupy.uint64)

    def reset(self) -> None:
        """Put the input back, and numbers that are none into the scratch buffers."""
        self.now[...] = self.first

    def wrong(self) -> int:
        """Return how many elements are not what they must be."""
        self.counted.fill(0)
        numbers = self.now, self.wanted, np.int64(len(self.now)), self.counted
        kernels().get_function("compare")((264,), (512,), numbers)
        return int(self.counted.get()[0])

    def faults(self) -> list[tuple[int, int]]:
        """Return where wrong elements are: the first of each row of them, and how many."""
        now, wanted = cupy.asnumpy(self.now), cupy.asnumpy(self.wanted)
        places = np.flatnonzero(~np.isnan(wanted) & (now != wanted))
        begins = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        lengths = np.diff(np.append(begins, len(places)))
        return list(zip(places[begins].tolist(), lengths.tolist(), strict=True))


def buffers(call: Call, in_place: bool) -> tuple[list[Any], list[Any], tuple[int, int]]:
    """Return a rank's buffers before and after a call, and where input and output begin.

    What is of no account afterwards is not a number.
    """
    call.fill(0)
    result = call.expected(0, 0)
    if not in_place:
        return [call.given, call.taken], [call.given.copy(), result], (0, len(call.given))
    whole = max(call.given, call.taken, key=len)
    given, taken = ((x.ctypes.data - whole.ctypes.data) // 4 for x in (call.given, call.taken))
    after = np.full(len(whole), np.nan, np.float32)
    after[taken : taken + len(result)] = result
    return [whole], [after], (given, taken)


def shared_bytes(tables: Tables) -> int:
    """Return the shared memory in which every threadblock can hold its steps and waits."""
    waits = np.append(tables.units[:, 8], len(tables.waits))
    first, last = tables.blocks[:, 3], tables.blocks[:, 4]
    words = (last - first) * tables.units.shape[1] + 2 * (waits[last] - waits[first])
    return 4 * int(words.max())


class Loaded:
    """A program on the GPU.

    Parameters
    ----------
    program : ThreadblockProgram
    profile : Profile
    fence : bool
        Whether a threadblock fences its stores before it signals, as runtimes do where some
        connection leaves the box.
    threads : int, optional
        Of a threadblock, without the warp that posts; as the runtime has them unless given.
    """

    def __init__(
        self,
        program: ThreadblockProgram,
        profile: Profile,
        fence: bool = False,
        threads: int | None = None,
    ) -> None:
        self.program, self.profile, self.fence = program, profile, fence
        self.protocol = program.header.protocol
        tables = tables_of(program)
        self.blocks = len(tables.blocks)
        self.kernel = kernels().get_function(f"run_{self.protocol.lower()}")
        self.shared = shared_bytes(tables)
        posts = 32 * (self.protocol == "Simple")
        self.threads = self._threads() if threads is None else threads + posts
        self.tables = [
            cupy.asarray(x if x.size else np.zeros(2, np.int32))
            for x in (tables.blocks, tables.units, tables.waits, tables.more)
        ]
        slots = tables.connections * SLOTS * SLOT[self.protocol]
        self.fifos = cupy.zeros(slots, cupy.uint8)
        self.counters = cupy.zeros(2 * tables.connections * LINE, cupy.uint64)
        self.flags = cupy.zeros(self.blocks * LINE, cupy.uint64)
        self.steps = cupy.zeros(2 * self.blocks, cupy.uint64)
        self.times = cupy.zeros((self.blocks, 2), cupy.uint64)
        self.arrived, self.stuck = cupy.zeros(1, cupy.uint64), cupy.zeros(1, cupy.int32)
        self.work = 0
        self.faults: list[list[tuple[int, int]]] = []

    @property
    def whole(self) -> bool:
        """Whether every threadblock has an SM and the threads that it has in the runtime."""
        return self.threads - 32 * (self.protocol == "Simple") == THREADS[self.protocol]

    def _threads(self) -> int:
        """Return the most threads with which all threadblocks are resident, one per SM if whole."""
        many = cupy.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]
        posts = 32 * (self.protocol == "Simple")
        if self.blocks <= many:
            return THREADS[self.protocol] + posts
        for threads in FEWER:
            each = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
                self.kernel.kernel.ptr, threads + posts, self.shared
            )
            if self.blocks <= many * each:
                return threads + posts
        raise ValueError(f"{self.blocks} threadblocks are not resident together")

    def launch(self, memory: Memory, size: int) -> float:
        """Execute the program once; return the seconds it took."""
        chunk = size // self.program.header.chunks
        room = self.profile.tile_bytes[self.protocol]
        group = max(1, min(self.profile.max_count, room // chunk))
        self.work += 1
        arrays = (
            *self.tables, memory.bases, self.fifos, self.counters, self.flags, self.steps,
            self.times, self.arrived, self.stuck,
        )  # fmt: skip
        numbers = (
            np.int64(chunk), np.int64(room), np.int32(math.ceil(chunk / room)), np.int32(group),
            np.uint64(self.work), np.int32(self.fence), np.int64(PATIENCE),
        )  # fmt: skip
        self.kernel((self.blocks,), (self.threads,), (*arrays, *numbers), shared_mem=self.shared)
        times = cupy.asnumpy(self.times).astype(np.int64)
        return float(times[:, 1].max() - times[:, 0].min()) / 1e9

    def measure(self, memory: Memory, size: int, *, launches: int, looks: int) -> Outcome:
        """Execute the program at a message size, first with a look at the data.

        Parameters
        ----------
        memory : Memory
            Of the same program and size.
        size : int
            Bytes, as nccl-tests counts them; chunks of them are multiples of 16.
        launches, looks : int
            Launches that are timed, and those of which the data is looked at.
        """
        wrong = []
        for _ in range(looks):
            memory.reset()
            self.launch(memory, size)
            wrong.append(memory.wrong())
            if wrong[-1]:
                self.faults.append(memory.faults()[:MOST_FAULTS])
        seconds = np.array([self.launch(memory, size) for _ in range(launches)])
        return Outcome(seconds, sum(wrong), sum(map(bool, wrong)), bool(self.stuck.get()[0]))
