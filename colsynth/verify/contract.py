"""What each collective promises: where data starts, where it must end, which memory is one.

Contract 2.4 (buffer sizes in chunks) and 4.8 (in-place aliasing). C is the number of
chunks of the whole message, R the number of ranks, p = C / R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colsynth.model import Collective, Header
from colsynth.verify.table import Ints

REDUCING = (Collective.ALLREDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER)
SHARDED = (Collective.ALLGATHER, Collective.REDUCE_SCATTER, Collective.ALLTOALL)
EVERYONE, NOBODY = -1, -2
"""Who contributes to an output chunk, where that is no single rank."""
IN_PLACE, OUT_OF_PLACE = "in place", "out of place"


def buffer_chunks(header: Header) -> tuple[int, int]:
    """Return the chunks of the input and of the output buffer of a rank."""
    shard = header.chunks // header.ranks
    inputs = shard if header.collective is Collective.ALLGATHER else header.chunks
    outputs = shard if header.collective is Collective.REDUCE_SCATTER else header.chunks
    return inputs, outputs


def modes(header: Header) -> tuple[str, ...]:
    """Return the call modes that the header claims."""
    claimed = ((IN_PLACE, header.in_place), (OUT_OF_PLACE, header.out_of_place))
    return tuple(mode for mode, is_claimed in claimed if is_claimed)


@dataclass(frozen=True)
class Layout:
    """Where every chunk of every buffer lies in one mode: aliases share a location.

    Parameters
    ----------
    mode : str
    base : int array (ranks, 3)
        Location of chunk 0 of ``i``, ``o`` and ``s`` of each rank.
    size : int array (ranks, 3)
        Chunks that really exist there.
    locations : int
        Number of locations of all ranks together.
    """

    mode: str
    base: Ints
    size: Ints
    locations: int


def layout(header: Header, mode: str, scratch: Ints) -> Layout:
    """Return the memory of a call; `scratch` holds each rank's scratch chunks."""
    inputs, outputs = buffer_chunks(header)
    ranks = np.arange(header.ranks)
    shift = ranks * (header.chunks // header.ranks)
    zero = np.zeros_like(ranks)
    if mode == OUT_OF_PLACE:
        starts, whole = [zero, zero + inputs], inputs + outputs
    else:
        gathers = header.collective is Collective.ALLGATHER
        scatters = header.collective is Collective.REDUCE_SCATTER
        starts = [shift if gathers else zero, shift if scatters else zero]
        whole = max(inputs, outputs)
    used = whole + scratch
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(used)])
    base = np.stack([first[:-1] + start for start in [*starts, zero + whole]], axis=1)
    size = np.stack([zero + inputs, zero + outputs, scratch], axis=1)
    return Layout(mode, base, size, int(first[-1]))


def contributions(header: Header, rank: int, chunks: int) -> range:
    """Return the numbers, over the whole collective, of the chunks of a rank's input."""
    first = 0
    if header.collective is Collective.ALLGATHER:
        first = rank * (header.chunks // header.ranks)
    elif header.collective is Collective.ALLTOALL:
        first = rank * header.chunks
    return range(first, first + chunks)


def wanted(header: Header, rank: int, root: int | None) -> tuple[Ints, Ints]:
    """Return what each output chunk of a rank must hold: its number and who contributes.

    Parameters
    ----------
    header : Header
    rank : int
    root : int or None
        For broadcast and reduce.

    Returns
    -------
    chunk, who : int arrays
        Per output chunk: number as in `contributions`; a rank, `EVERYONE` or `NOBODY`. Empty
        where the rank's output is of no account.
    """
    shard, chunks = header.chunks // header.ranks, np.arange(header.chunks)
    match header.collective:
        case Collective.ALLREDUCE | Collective.REDUCE:
            counts = header.collective is Collective.ALLREDUCE or rank == root
            return chunks[: header.chunks * counts], np.full(header.chunks * counts, EVERYONE)
        case Collective.REDUCE_SCATTER:
            return rank * shard + chunks[:shard], np.full(shard, EVERYONE)
        case Collective.BROADCAST:
            return chunks, np.full_like(chunks, NOBODY if root is None else root)
        case Collective.ALLGATHER:
            return chunks, chunks // max(shard, 1)
        case Collective.ALLTOALL:
            source = np.repeat(np.arange(header.ranks), shard)
            own = np.tile(np.arange(shard), header.ranks)
            return source * header.chunks + rank * shard + own, source
    return chunks[:0], chunks[:0]


def expected(header: Header, rank: int, root: int | None) -> list[tuple[int, int]]:
    """Return what `wanted` does, chunk by chunk, with bit masks of the ranks that contribute."""
    masks = {EVERYONE: (1 << header.ranks) - 1, NOBODY: 0}
    pairs = zip(*(column.tolist() for column in wanted(header, rank, root)), strict=True)
    return [(chunk, masks[who] if who < 0 else 1 << who) for chunk, who in pairs]
