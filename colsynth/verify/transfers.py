"""Whether a chunk program keeps what it promises of its transfers, before kernels rely on it."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter

import numpy as np

from colsynth.model import ChunkProgram, Collective
from colsynth.verify.table import Bools, Ints


def fault_of_transfers(program: ChunkProgram) -> str | None:
    """Return the first promise of a chunk program that it does not keep, None where it keeps all.

    Ranks and chunks exist, and each transfer waits only for earlier ones into its source.
    """
    transfers, size = program.transfers, program.problem.topology.size
    messages = size if program.problem.collective is Collective.ALLTOALL else 1
    chunks = program.chunks * messages
    if not transfers:
        return "it holds no transfers"
    if program.chunks < 1:
        return f"its messages have {program.chunks} chunks"
    names = ("source", "target", "chunk", "count")
    source, target, chunk, count = (_numbers(map(attrgetter(name), transfers)) for name in names)
    waits = _numbers(len(transfer.after) for transfer in transfers)
    own = np.repeat(np.arange(len(transfers)), waits)
    earlier = _numbers(chain.from_iterable(map(attrgetter("after"), transfers)))
    known = (earlier >= 0) & (earlier < own)
    rules: tuple[tuple[Bools, str], ...] = (
        ((source >= 0) & (source < size), f"its source must be a rank from 0 to {size - 1}"),
        ((target >= 0) & (target < size), f"its target must be a rank from 0 to {size - 1}"),
        (count >= 1, "it must move one chunk or more"),
        ((chunk >= 0) & (chunk + count <= chunks), f"its chunks must be from 0 to {chunks - 1}"),
        (_all(len(transfers), own, known), "it may wait for earlier transfers only"),
        (
            _all(len(transfers), own, target[np.where(known, earlier, 0)] == source[own]),
            "it may wait only for transfers into its source",
        ),
    )
    for right, rule in rules:
        if not right.all():
            place = int(np.argmin(right))
            return f"transfers[{place}], {_told(program, place)}: {rule}"
    return None


def _numbers(values: object) -> Ints:
    return np.fromiter(values, dtype=np.int64)  # type: ignore[call-overload, no-any-return]


def _all(count: int, own: Ints, right: Bools) -> Bools:
    """Return for each transfer whether all of its waits are right."""
    found: Bools = np.ones(count, dtype=np.bool_)
    found[own[~right]] = False
    return found


def _told(program: ChunkProgram, place: int) -> str:
    it = program.transfers[place]
    return f"chunk {it.chunk} from rank {it.source} to {it.target} after {it.after}"
