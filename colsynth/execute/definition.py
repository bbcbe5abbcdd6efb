"""What each collective is: the buffers of a call, their contents before, and after.

Contents are whole numbers, small enough for sums to be exact in the type of the call. They repeat
with a prime period, so that data in the wrong place is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.model import Collective, Header

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Data = NDArray[Any]

TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "int32": "int32",
    "int64": "int64",
    "int8": "int8",
    "uint8": "uint8",
    "uint32": "uint32",
    "uint64": "uint64",
}
"""Types of numpy, and what nccl-tests calls them."""

_PERIOD = 8191
"""A prime, so that no chunk of a usual size is a multiple of it."""

_SUMS = (Collective.ALLREDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER)


def counts_of(header: Header, whole: int) -> tuple[int, int]:
    """Return how much of a message is input and output of a rank, in the unit of the message."""
    shard, kind = whole // header.ranks, header.collective
    inputs = shard if kind is Collective.ALLGATHER else whole
    return inputs, shard if kind is Collective.REDUCE_SCATTER else whole


@dataclass
class Call:
    """The user's buffers of one rank.

    Parameters
    ----------
    header : Header
        Of the file.
    custom : bool
        Whether the collective has no agreed result.
    rank : int
    dtype : numpy type
    elements : int
        Of a whole message.
    in_place : bool
    """

    header: Header
    custom: bool
    rank: int
    dtype: np.dtype[Any]
    elements: int
    in_place: bool
    given: Data = field(init=False)
    taken: Data = field(init=False)

    def __post_init__(self) -> None:
        inputs, outputs = self.counts
        shard = self.rank * (self.elements // self.header.ranks)
        if self.in_place:
            whole = np.empty(max(inputs, outputs), self.dtype)
            first = shard if inputs < outputs else 0
            last = shard if outputs < inputs else 0
            self.given, self.taken = whole[first : first + inputs], whole[last : last + outputs]
        else:
            self.given = np.empty(inputs, self.dtype)
            self.taken = np.empty(outputs, self.dtype)

    @property
    def counts(self) -> tuple[int, int]:
        """Elements of input and output."""
        return counts_of(self.header, self.elements)

    def table(self, rank: int, launch: int) -> Data:
        """Return a period of what a rank contributes to a call."""
        kind, ranks = self.dtype, self.header.ranks
        if kind.kind == "f":
            most = 2 ** min(np.finfo(kind).nmant + 1, 40) // ranks
        else:
            most = int(np.iinfo(kind).max) // (1 if kind.itemsize == 1 else ranks)
        rng = np.random.default_rng((launch, rank))
        return rng.integers(0, most, _PERIOD).astype(kind)

    def fill(self, launch: int) -> None:
        """Put the input of a call in its place, and what nobody sent into the output."""
        self.taken.fill(1)
        self.given[:] = np.resize(self.table(self.rank, launch), self.given.size)

    def expected(self, launch: int, root: int) -> Data | None:
        """Return what the output must be; None where it is of no account."""
        header, kind = self.header, self.header.collective
        inputs, outputs = self.counts
        ranks, shard = range(header.ranks), self.elements // header.ranks
        if kind is Collective.BROADCAST:
            return np.resize(self.table(root, launch), outputs)
        if kind is Collective.ALLGATHER:
            return np.concatenate([np.resize(self.table(r, launch), inputs) for r in ranks])
        if kind is Collective.ALLTOALL:
            places = np.arange(self.rank * shard, (self.rank + 1) * shard) % _PERIOD
            return np.concatenate([self.table(r, launch)[places] for r in ranks])
        if kind not in _SUMS or (kind is Collective.REDUCE and self.rank != root):
            return None
        total = self.table(0, launch)
        for rank in ranks[1:]:
            total = total + self.table(rank, launch)
        first = self.rank * shard if kind is Collective.REDUCE_SCATTER else 0
        return np.resize(np.roll(total, -(first % _PERIOD)), outputs)

    def wrong(self, launch: int) -> list[int]:
        """Return how many elements are wrong, for every rank that may be the root."""
        roots = range(self.header.ranks if self.header.collective.rooted else 1)
        if self.custom:
            return [0 for _ in roots]
        spoilt = 0
        if not self.in_place:
            given = np.resize(self.table(self.rank, launch), self.given.size)
            spoilt = int(np.count_nonzero(self.given != given))
        counts = []
        for root in roots:
            wanted = self.expected(launch, root)
            missed = 0 if wanted is None else int(np.count_nonzero(self.taken != wanted))
            counts.append(missed + spoilt)
        return counts
