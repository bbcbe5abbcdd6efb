"""What the chunks of an alltoall need scratch for."""

from __future__ import annotations

from collections.abc import Iterable

from colsynth.lowering.layout import Layout
from colsynth.model import Transfer


def passing(layout: Layout, transfers: Iterable[Transfer]) -> list[tuple[int, int]]:
    """Return (rank, chunk), ascending, for chunks on their way to another rank."""
    return sorted(
        {
            (transfer.target, chunk)
            for transfer in transfers
            for chunk in range(transfer.chunk, transfer.chunk + transfer.count)
            if not layout.keeps(transfer.target, chunk)
        }
    )


def overwritten(
    layout: Layout, transfers: tuple[Transfer, ...], *, every: bool
) -> list[tuple[int, int]]:
    """Return (rank, chunk), ascending, for input that an in-place call must save first.

    In place, the chunk that j sends to i arrives where the chunk from i to j lies. It may
    leave from there only if it does so before the other arrives; one of each two cannot.
    A transfer saves all of its chunks or none, so that it stays one step.

    Parameters
    ----------
    layout : Layout
        Of an alltoall.
    transfers : tuple of Transfer
        In the order in which they will be made.
    every : bool
        Whether no input can be sent from where it lies.
    """
    arrival: dict[int, int] = {}
    for number, transfer in enumerate(transfers):
        for chunk in range(transfer.chunk, transfer.chunk + transfer.count):
            if layout.keeps(transfer.target, chunk):
                arrival[chunk] = number
    saved: set[tuple[int, int]] = set()
    for number, transfer in enumerate(transfers):
        chunks = range(transfer.chunk, transfer.chunk + transfer.count)
        own = [chunk for chunk in chunks if layout.owner(chunk) == transfer.source]
        late = any(arrival.get(layout.reverse(chunk), number) < number for chunk in own)
        if every or late:
            saved.update((transfer.source, chunk) for chunk in own)
    return sorted(saved)
