"""What every threadblock of every GPU does: the content of a schedule file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from colsynth.model.problem import Collective
from colsynth.model.step import MULTICASTS, Step
from colsynth.model.step_table import StepTable, table_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Threadblock:
    """Ordered steps with at most one peer to send to and one to receive from.

    Parameters
    ----------
    id : int
        Equal to its index in `Gpu.threadblocks`.
    send, recv : int or None
        Peer ranks.
    channel : int
    steps : sequence of Step
        A tuple, or rows of the table of all steps of a program.
    """

    id: int
    send: int | None
    recv: int | None
    channel: int
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Gpu:
    """The program of one rank; buffer sizes in chunks."""

    rank: int
    input_chunks: int
    output_chunks: int
    scratch_chunks: int
    threadblocks: tuple[Threadblock, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """What the runtime reads before it looks at any GPU.

    Parameters
    ----------
    name : str
    collective : Collective
    protocol : str
        ``"Simple"``, ``"LL"`` or ``"LL128"``.
    ranks, chunks, channels : int
    in_place, out_of_place : bool
        Modes of the call that the program serves.
    min_bytes : int
        Smallest message served, inclusive.
    max_bytes : int or None
        Largest message served, inclusive on every runtime (writers translate);
        None is unlimited, which no compiled program is.
    root : int or None
        Rank, for broadcast and reduce (not written to any file; verification finds it).
    boxes : tuple of int or None
        The box of every rank, where they are in several. XML does not say it; plans name
        channels accordingly.
    """

    name: str
    collective: Collective
    protocol: str
    ranks: int
    chunks: int
    channels: int
    in_place: bool
    out_of_place: bool
    min_bytes: int = 0
    max_bytes: int | None = None
    root: int | None = None
    boxes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ThreadblockProgram:
    """A whole schedule file: a header and one program per rank, in rank order."""

    header: Header
    gpus: tuple[Gpu, ...]

    @classmethod
    def of(
        cls, header: Header, gpus: tuple[Gpu, ...], steps: StepTable, lengths: NDArray[np.int64]
    ) -> ThreadblockProgram:
        """Return a program whose threadblocks hold rows of a table, one after the other.

        Parameters
        ----------
        header : Header
        gpus : tuple of Gpu
        steps : StepTable
        lengths : int64 (B,)
            Number of steps of every threadblock.
        """
        program = cls(header, gpus)
        vars(program).update(steps=steps, lengths=lengths)  # what the properties would find
        return program

    def headed(self, header: Header) -> ThreadblockProgram:
        """Return the program with another header; the steps are the same."""
        return self.of(header, self.gpus, self.steps, self.lengths)

    def __eq__(self, other: object) -> bool:
        """Whether both do the same; tables are compared as a whole, since most differ early."""
        import numpy as np

        if not isinstance(other, ThreadblockProgram):
            return NotImplemented
        return (
            self.header == other.header
            and np.array_equal(self.lengths, other.lengths)
            and self.steps.same(other.steps)
            and self._outline() == other._outline()
        )

    def __hash__(self) -> int:
        return hash((self.header, self.lengths.tobytes()))

    def _outline(self) -> list[tuple[int | None, ...]]:
        """Return everything but the header and the steps."""
        found: list[tuple[int | None, ...]] = []
        for gpu in self.gpus:
            blocks = gpu.threadblocks
            sizes = gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks
            found.append((gpu.rank, *sizes, len(blocks)))
            found += ((block.id, block.send, block.recv, block.channel) for block in blocks)
        return found

    @cached_property
    def steps(self) -> StepTable:
        """The steps of all threadblocks, one after the other."""
        return table_of([block.steps for gpu in self.gpus for block in gpu.threadblocks])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of steps of every threadblock, of all GPUs one after the other."""
        import numpy as np

        found = [len(block.steps) for gpu in self.gpus for block in gpu.threadblocks]
        return np.array(found, dtype=np.int64)

    @property
    def first_blocks(self) -> NDArray[np.int64]:
        """For every threadblock, the number of the first one of its GPU."""
        import numpy as np

        many = [len(gpu.threadblocks) for gpu in self.gpus]
        found: NDArray[np.int64] = np.repeat(np.cumsum(many) - many, many)
        return found

    @property
    def multicasts(self) -> bool:
        """Whether data moves over a switch that multicasts, which only plans can say.

        Such a program has no connections, and no waits: the places of threadblocks say who waits
        for whom (`colsynth.runtimes.plans.multicast`).
        """
        own = table_of([block.steps for block in self.gpus[0].threadblocks])
        return any(own.has(word) for word in MULTICASTS)

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Source and target ranks of all connections."""
        return {
            (gpu.rank, block.send)
            for gpu in self.gpus
            for block in gpu.threadblocks
            if block.send is not None
        }

    @property
    def max_threadblocks(self) -> int:
        """Most threadblocks on any rank."""
        return max(len(gpu.threadblocks) for gpu in self.gpus)

    @property
    def max_steps(self) -> int:
        """Most steps in any threadblock."""
        return int(self.lengths.max(initial=0))
