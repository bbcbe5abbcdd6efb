"""What every threadblock of every GPU does: the content of a schedule file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct

from colsynth.model.chunks import Origin, Slot
from colsynth.model.problem import Collective

SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
"""Steps that send to, and that receive from, the peer of their threadblock."""

MULTICASTS = frozenset({"glres", "gstore"})
"""Steps over a switch: the sum of a chunk of all ranks, or a chunk of this one, stored at all."""


class Wait(NamedTuple):
    """A dependency: step number `step` of threadblock `threadblock` of the same GPU."""

    threadblock: int
    step: int


class Step(Struct, frozen=True, gc=False):
    """One instruction of a threadblock.

    Parameters
    ----------
    op : str
        ``s r rcs rrs rrc rrcs cpy re nop`` as the runtimes define them
        (``shared/facts/runtime_contract.md`` 4.1), or one of `MULTICASTS`.
    source, target : Slot or None
        First chunk of the local source and destination operand. A reader keeps what
        the file says, used or not; lowering sets only the operands the step uses.
    count : int
        Adjacent chunks, 0 on a nop.
    waits : tuple of Wait
        Dependencies. At most one once dependencies are spelt (and in every file).
    signals : bool
        Whether completion is published (``hasdep``).
    origin : Origin or None
        Which tree asked for the step; None when read from a file.
    folds : tuple of (int, int)
        Rank and channel of further connections whose next message an ``rrc`` adds. Only plans
        can say so.
    """

    op: str
    source: Slot | None
    target: Slot | None
    count: int
    waits: tuple[Wait, ...] = ()
    signals: bool = False
    origin: Origin | None = None
    folds: tuple[tuple[int, int], ...] = ()


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
    steps : tuple of Step
    """

    id: int
    send: int | None
    recv: int | None
    channel: int
    steps: tuple[Step, ...]


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


@dataclass(frozen=True, slots=True)
class ThreadblockProgram:
    """A whole schedule file: a header and one program per rank, in rank order."""

    header: Header
    gpus: tuple[Gpu, ...]

    @property
    def multicasts(self) -> bool:
        """Whether data moves over a switch that multicasts, which only plans can say.

        Such a program has no connections, and no waits: the places of threadblocks say who waits
        for whom (`colsynth.runtimes.plans.multicast`).
        """
        return any(
            step.op in MULTICASTS for block in self.gpus[0].threadblocks for step in block.steps
        )

    @property
    def max_threadblocks(self) -> int:
        """Most threadblocks on any rank."""
        return max(len(gpu.threadblocks) for gpu in self.gpus)

    @property
    def max_steps(self) -> int:
        """Most steps in any threadblock."""
        return max(len(tb.steps) for gpu in self.gpus for tb in gpu.threadblocks)
