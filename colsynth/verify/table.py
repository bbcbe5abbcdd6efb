"""A threadblock program as columns: one row per threadblock, one per step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Header, Step, ThreadblockProgram

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

OPS = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")
S, R, RCS, RRS, RRC, RRCS, CPY, RE, NOP = range(9)
UNKNOWN = 9
BUFFERS = "ios"
NO_BUFFER, ABSENT = 3, 4
"""Codes of a buffer letter that does not exist, and of an operand that is not given."""

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
    steps = [step for _, block in blocks for step in block.steps]
    lengths = np.array([len(block.steps) for _, block in blocks], dtype=np.int64)
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    rank = _column([gpu.rank for gpu, _ in blocks])
    ids = _column([block.id for _, block in blocks])
    threadblock = np.repeat(np.arange(len(blocks)), lengths)
    wait_id, wait_step = _waits(steps)
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
        op=_codes([step.op for step in steps], OPS, UNKNOWN),
        **_operands(steps),
        count=_column([step.count for step in steps]),
        wait=_targets(rank, ids, threadblock, wait_id),
        wait_id=wait_id,
        wait_step=wait_step,
        signals=np.array([step.signals for step in steps], dtype=np.bool_),
        **_declared(program),
    )


def _column(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _codes(words: list[str], known: tuple[str, ...] | str, otherwise: int) -> Ints:
    codes = {word: code for code, word in enumerate(known)}
    return _column([codes.get(word, otherwise) for word in words])


def _operands(steps: list[Step]) -> dict[str, Ints]:
    codes = {letter: code for code, letter in enumerate(BUFFERS)}
    sources, targets = [step.source for step in steps], [step.target for step in steps]
    columns = {}
    for name, slots in (("source", sources), ("target", targets)):
        columns[f"{name}_buffer"] = _column(
            [ABSENT if slot is None else codes.get(slot[0], NO_BUFFER) for slot in slots]
        )
        columns[name] = _column([-1 if slot is None else slot[1] for slot in slots])
    return columns


def _waits(steps: list[Step]) -> tuple[Ints, Ints]:
    pairs = np.full((len(steps), 2), NONE, dtype=np.int64)
    for index, step in enumerate(steps):
        if step.waits:
            if len(step.waits) > 1:
                phrase = (
                    f"a step waits for {len(step.waits)} others; dependencies are not spelt yet"
                )
                raise DefectError(Diagnostic("CS591", phrase))
            pairs[index] = step.waits[0]
    return pairs[:, 0], pairs[:, 1]


def _targets(rank: Ints, ids: Ints, threadblock: Ints, wait_id: Ints) -> Ints:
    """Return the global number of the threadblock that each step depends on."""
    index = {
        pair: n
        for n, pair in reversed(list(enumerate(zip(rank.tolist(), ids.tolist(), strict=False))))
    }
    wait = np.full(len(wait_id), NONE, dtype=np.int64)
    for step in np.flatnonzero(wait_id >= 0).tolist():
        pair = (int(rank[threadblock[step]]), int(wait_id[step]))
        wait[step] = index.get(pair, MISSING)
    return wait


def _declared(program: ThreadblockProgram) -> dict[str, Any]:
    sizes = np.zeros((3, program.header.ranks), dtype=np.int64)
    for gpu in program.gpus:
        if 0 <= gpu.rank < program.header.ranks:
            sizes[:, gpu.rank] = gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks
    names = ("input_chunks", "output_chunks", "scratch_chunks")
    return dict(zip(names, sizes, strict=True))
