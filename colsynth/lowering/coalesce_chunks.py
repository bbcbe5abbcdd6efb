"""Pass coalesce-chunks: adjacent chunks that travel together become one transfer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from msgspec import structs

from colsynth.errors import require_least
from colsynth.lowering.proposals import unmerged
from colsynth.lowering.renumbered import with_after
from colsynth.model import ChunkProgram, Transfer
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class CoalesceChunks:
    """Merge transfers of adjacent chunks on the same edge with the same prerequisites.

    Trees of one root that share their first edges (outwards) or their last leaves
    (inwards) need fewer steps this way; the number of bytes and their routes stay.

    Segments of a tree (`lower-forest{segments=...}`) stay apart.

    Who waits for one of the chunks then waits for all. A program with an order of its own
    (`ChunkProgram.ordered`) was timed without that and holds together already what loses
    no time by it, so it is left alone unless `merge` asks for fewer steps.

    Parameters
    ----------
    merge : int
        Most chunks of a merged transfer; 1 merges nothing, so that more threadblocks can share
        the work: adjacent chunks of large messages are moved one by one all the same. 0 takes
        the runtime's largest ``cnt``, but merges nothing in an ordered program.
    """

    merge: int = 0

    name: ClassVar[str] = "coalesce-chunks"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("merge", propose=unmerged),)

    def __post_init__(self) -> None:
        require_least("merge", self.merge, 0)

    def run(self, value: ChunkProgram, target: Target) -> ChunkProgram:
        """Return the program with merged transfers, in the order of their first parts."""
        if self.merge == 1 or (value.ordered and not self.merge):
            return value
        most = min(self.merge or target.profile.max_count, target.profile.max_count)
        merged: list[Transfer] = []
        became: list[int] = []
        latest: dict[object, int] = {}
        for transfer in value.transfers:
            after = transfer.after
            if len(merged) < len(became):
                after = tuple(sorted({became[t] for t in after}))
            origin = transfer.origin
            key = (
                *(transfer.source, transfer.target, transfer.reduces),
                *(origin.phase, origin.instance, origin.segment, after),
            )
            last = latest.get(key)
            if last is not None and _continues(merged[last], transfer, most):
                merged[last] = structs.replace(
                    merged[last], count=merged[last].count + transfer.count
                )
                became.append(last)
                continue
            latest[key] = len(merged)
            became.append(len(merged))
            merged.append(transfer if after == transfer.after else with_after(transfer, after))
        return replace(value, transfers=tuple(merged))


def _continues(first: Transfer, second: Transfer, most: int) -> bool:
    """Whether `second` starts where `first` ends and both fit into one."""
    return second.chunk == first.chunk + first.count and first.count + second.count <= most
