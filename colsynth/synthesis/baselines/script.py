"""Programs written down transfer by transfer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from colsynth.errors import Diagnostic, LimitError
from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem, Transfer

_MOST_CHUNKS = 2**15
"""Of a buffer: offsets have 16 bits with a sign in all runtimes (``max_offset``)."""


@dataclass(slots=True)
class Script:
    """Transfers so far, each written down once for every parallel copy.

    Chunks are numbered as for one copy; `program` makes room for the others.

    Parameters
    ----------
    problem : Problem
    chunks : int
        Chunks of a message in one copy, `ChunkProgram.chunks`.
    instances : int
        Parallel copies.

    Raises
    ------
    LimitError
        CS402: more chunks than any runtime counts; they would be written down in vain.
    """

    problem: Problem
    chunks: int
    instances: int = 1
    transfers: list[Transfer] = field(default_factory=list)

    def __post_init__(self) -> None:
        found = self.chunks * self.instances
        if found > _MOST_CHUNKS:
            phrase = f"chunks per buffer: {found}, but no runtime allows more than {_MOST_CHUNKS}"
            advice = "use fewer --instances, or larger chunks"
            raise LimitError(Diagnostic("CS402", phrase, help=advice))

    def send(
        self,
        source: int,
        target: int,
        chunk: int,
        after: Iterable[int] = (),
        *,
        origin: Origin | None = None,
    ) -> int:
        """Append a transfer of one chunk; return its number.

        Parameters
        ----------
        source, target, chunk : int
        after : iterable of int
            Numbers of earlier transfers into `source`.
        origin : Origin, optional
            Phase 0 outwards, a tree per chunk, unless given. A phase inwards adds up.
        """
        origin = Origin(0, Direction.OUT, chunk) if origin is None else origin
        reduces = origin.direction is Direction.IN
        number = len(self.transfers)
        needed = tuple(sorted(after))
        self.transfers.append(Transfer(source, target, chunk, 1, reduces, needed, origin))
        return number

    def relay(self, paths: Iterable[tuple[int, Sequence[int]]]) -> None:
        """Append transfers of chunks along paths, of all chunks one connection at a time.

        Parameters
        ----------
        paths : iterable of (int, sequence of int)
            Chunks, and the ranks that each passes, both ends included.
        """
        left = list(paths)
        arrived: dict[int, int] = {}
        while left:
            for chunk, path in left:
                after = (arrived[chunk],) if chunk in arrived else ()
                arrived[chunk] = self.send(path[0], path[1], chunk, after)
            left = [(chunk, path[1:]) for chunk, path in left if len(path) > 2]

    def program(self, ordering: Ordering) -> ChunkProgram:
        """Return the program of all copies; `ordering` as in `ChunkProgram`.

        Copies of a chunk stand side by side, so that each shard has its part of all of them.
        An allreduce has no shards: there, the chunks of a copy do, to travel together.
        """
        copies = self.instances
        summed = self.problem.collective is Collective.ALLREDUCE
        step, shift = (1, self.chunks) if summed else (copies, 1)
        transfers = tuple(
            Transfer(
                one.source,
                one.target,
                one.chunk * step + copy * shift,
                one.count,
                one.reduces,
                tuple(number * copies + copy for number in one.after),
                one.origin._replace(instance=one.origin.instance * copies + copy),
            )
            for one in self.transfers
            for copy in range(copies)
        )
        return ChunkProgram(self.problem, self.chunks * copies, transfers, ordering=ordering)
