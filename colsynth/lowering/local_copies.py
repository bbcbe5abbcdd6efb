"""Local copies: chunk by chunk, so that threadblocks can share them, or left out in place."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from colsynth.lowering.layout import Layout
from colsynth.lowering.renumbered import with_after
from colsynth.model import Transfer


def is_own_copy(transfer: Transfer) -> bool:
    """Whether a transfer is a local copy that no schedule asked for (`Origin.tree`)."""
    return transfer.is_local and transfer.origin.tree < 0


def without_own_copies(transfers: tuple[Transfer, ...], layout: Layout) -> tuple[Transfer, ...]:
    """Return the transfers for calls in place, without copies from input to output.

    There, both are one place, and input is there from the start: such copies wait for nothing.
    """
    if not any(_stays(transfer, layout) for transfer in transfers):
        return transfers
    place: list[int | None] = []
    kept: list[Transfer] = []
    for transfer in transfers:
        if _stays(transfer, layout):
            place.append(None)
            continue
        place.append(len(kept))
        found = [place[number] for number in transfer.after]
        after = tuple(number for number in found if number is not None)
        kept.append(transfer if after == transfer.after else with_after(transfer, after))
    return tuple(kept)


def _stays(transfer: Transfer, layout: Layout) -> bool:
    """Whether a transfer is a copy of a rank's own from its input to its output."""
    if not is_own_copy(transfer):
        return False
    where = transfer.target, transfer.chunk
    return (transfer.read, transfer.write) == (layout.input(*where), layout.output(*where))


def split_own_copies(transfers: tuple[Transfer, ...]) -> tuple[Transfer, ...]:
    """Return the transfers with each such copy cut into copies of one chunk.

    Whoever waits for a copy then waits only for the chunks that it moves itself.
    """
    if not any(transfer.count > 1 and is_own_copy(transfer) for transfer in transfers):
        return transfers
    found: list[Transfer] = []
    became: list[range] = []
    for transfer in transfers:
        begin = len(found)
        after = _after(transfer, transfers, became)
        if is_own_copy(transfer):
            found += _chunk_by_chunk(transfer)
        else:
            found.append(transfer if after == transfer.after else with_after(transfer, after))
        became.append(range(begin, len(found)))
    return tuple(found)


def _after(
    transfer: Transfer, transfers: Sequence[Transfer], became: Sequence[range]
) -> tuple[int, ...]:
    """Return the new numbers of what a transfer waits for."""
    after: list[int] = []
    for number in transfer.after:
        earlier, parts = transfers[number], became[number]
        if is_own_copy(earlier):
            first = max(0, transfer.chunk - earlier.chunk)
            last = min(earlier.count, transfer.chunk + transfer.count - earlier.chunk)
            after += parts[first : max(first, last)]
        else:
            after += parts
    return tuple(after)


def _chunk_by_chunk(copy: Transfer) -> list[Transfer]:
    return [
        structs.replace(
            copy,
            chunk=copy.chunk + place,
            count=1,
            read=copy.read and copy.read.behind(place),
            write=copy.write and copy.write.behind(place),
        )
        for place in range(copy.count)
    ]
