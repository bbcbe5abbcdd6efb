"""A threadblock program as columns: one row per threadblock, one per step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Header, StepTable, ThreadblockProgram

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

OPS = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")
S, R, RCS, RRS, RRC, RRCS, CPY, RE, NOP = range(9)
UNKNOWN = 9
BUFFERS = "ios"
NO_BUFFER, ABSENT = 3, 4
"""Codes of a buffer letter that does not exist, and of an operand that is not given."""

_WIDE = 32
"""Bits of a threadblock's id, as the runtimes read it."""

NONE, MISSING = -1, -2
"""`Table.wait`: no dependency, and a dependency on a threadblock that does not exist."""


def _among(*ops: int) -> Bools:
    return np.isin(np.arange(UNKNOWN + 1), ops)


SENDS = _among(S, RCS, RRS, RRCS)
RECEIVES = _among(R, RCS, RRS, RRC, RRCS)
READS_SOURCE = _among(S, RRS, RRC, RRCS, CPY, RE)
READS_TARGET = _among(RE)
WRITES_TARGET = _among(R, RCS, RRC, RRCS, CPY, RE)
REDUCES = _among(RRS, RRC, RRCS, RE)
"""What each op does, by op code (contract 4.1)."""


@dataclass(frozen=True)
class Table:
    """Columns of a program.

    Threadblocks are numbered over the whole program in the order of ranks and ids,
    steps in the order of threadblocks and file order.

    Parameters
    ----------
    header : Header
    rank, id, send, recv, channel : int arrays, one entry per threadblock
        `send` and `recv` are -1 for none.
    start : int array, one entry more than threadblocks
        First step of each threadblock.
    threadblock, ordinal, op : int arrays, one entry per step
        `ordinal` counts within the threadblock.
    source_buffer, source, target_buffer, target, count : int arrays, one entry per step
    wait : int array
        Threadblock (global number) the step depends on, `NONE` or `MISSING`.
    wait_id, wait_step : int arrays
        The same as spelt in the file: id within the GPU, ordinal.
    signals : bool array
    input_chunks, output_chunks, scratch_chunks : int arrays, one entry per rank
        As declared; 0 for ranks without a GPU.
    """

    header: Header
    rank: Ints
    id: Ints
    send: Ints
    recv: Ints
    channel: Ints
    start: Ints
    threadblock: Ints
    ordinal: Ints
    op: Ints
    source_buffer: Ints
    source: Ints
    target_buffer: Ints
    target: Ints
    count: Ints
    wait: Ints
    wait_id: Ints
    wait_step: Ints
    signals: Bools
    input_chunks: Ints
    output_chunks: Ints
    scratch_chunks: Ints

    @property
    def threadblocks(self) -> int:
        """Number of threadblocks."""
        return len(self.rank)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.op)

    @cached_property
    def step_rank(self) -> Ints:
        """Rank of every step."""
        return self.rank[self.threadblock]

    def place(self, step: int) -> tuple[int, int, int]:
        """Return rank, threadblock id and ordinal of a step."""
        block = int(self.threadblock[step])
        return int(self.rank[block]), int(self.id[block]), int(self.ordinal[step])

    def name(self, step: int) -> str:
        """Return a step for people: ``"rank 0, threadblock 3, step 5 (rrc)"``."""
        rank, block, ordinal = self.place(step)
        return f"rank {rank}, threadblock {block}, step {ordinal} ({OPS[self.op[step]]})"


def tabulate(program: ThreadblockProgram) -> Table:
    """Return the columns of `program`.

    Raises
    ------
    DefectError
        CS591 when a step has more than one dependency: no file can say that.
    """
    blocks = [(gpu, block) for gpu in program.gpus for block in gpu.threadblocks]
    steps, lengths = program.steps, program.lengths
    if int(steps.waits.max(initial=0)) > 1:
        many = steps.waits.max()
        phrase = f"a step waits for {many} others; dependencies are not spelt yet"
        raise DefectError(Diagnostic("CS591", phrase))
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    rank = _column([gpu.rank for gpu, _ in blocks])
    ids = _column([block.id for _, block in blocks])
    threadblock = np.repeat(np.arange(len(blocks)), lengths)
    wait = np.full((2, len(steps)), NONE)
    wait[:, steps.waits > 0] = steps.wait_block, steps.wait_step
    return Table(
        header=program.header,
        rank=rank,
        id=ids,
        send=_column([-1 if block.send is None else block.send for _, block in blocks]),
        recv=_column([-1 if block.recv is None else block.recv for _, block in blocks]),
        channel=_column([block.channel for _, block in blocks]),
        start=start,
        threadblock=threadblock,
        ordinal=np.arange(len(steps)) - start[threadblock],
        op=_codes(steps.words, OPS, UNKNOWN)[steps.op],
        **_operands(steps),
        count=steps.count,
        wait=_targets(rank, ids, threadblock, wait[0]),
        wait_id=wait[0],
        wait_step=wait[1],
        signals=steps.signals > 0,
        **_declared(program),
    )


def _column(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _codes(words: tuple[str, ...], known: tuple[str, ...] | str, otherwise: int) -> Ints:
    codes = {word: code for code, word in enumerate(known)}
    return _column([codes.get(word, otherwise) for word in words])


def _operands(steps: StepTable) -> dict[str, Ints]:
    codes = np.append(_codes(steps.buffers, BUFFERS, NO_BUFFER), ABSENT)  # the last one is -1
    columns = {}
    for name, (buffer, offset) in (("source", steps.source), ("target", steps.target)):
        columns[f"{name}_buffer"] = codes[buffer]
        columns[name] = offset
    return columns


def _targets(rank: Ints, ids: Ints, threadblock: Ints, wait_id: Ints) -> Ints:
    """Return the global number of the threadblock that each step depends on."""
    key = (rank << _WIDE) + ids
    order = np.argsort(key, kind="stable")  # of two threadblocks of one number, the first counts
    wait = np.full(len(wait_id), NONE, dtype=np.int64)
    waiting = np.flatnonzero(wait_id >= 0)
    wanted = (rank[threadblock[waiting]] << _WIDE) + wait_id[waiting]
    place = np.searchsorted(key[order], wanted).clip(max=max(len(order) - 1, 0))
    found = order[place]
    wait[waiting] = np.where(key[found] == wanted, found, MISSING)
    return wait


def _declared(program: ThreadblockProgram) -> dict[str, Any]:
    sizes = np.zeros((3, program.header.ranks), dtype=np.int64)
    for gpu in program.gpus:
        if 0 <= gpu.rank < program.header.ranks:
            sizes[:, gpu.rank] = gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks
    names = ("input_chunks", "output_chunks", "scratch_chunks")
    return dict(zip(names, sizes, strict=True))
