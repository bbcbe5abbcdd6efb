"""Transfers in another order, their prerequisites numbered to match."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from colsynth.model import Transfer


def reordered(transfers: Sequence[Transfer], order: Sequence[int]) -> tuple[Transfer, ...]:
    """Return the transfers in a new order, with `after` renumbered to match."""
    place = [0] * len(transfers)
    for new, old in enumerate(order):
        place[old] = new
    found = []
    for old in order:
        transfer = transfers[old]
        if len(transfer.after) == 1:
            after: tuple[int, ...] = (place[transfer.after[0]],)
        else:
            after = tuple(sorted([place[t] for t in transfer.after]))
        if after != transfer.after:
            transfer = with_after(transfer, after)
        found.append(transfer)
    return tuple(found)


def with_after(transfer: Transfer, after: tuple[int, ...]) -> Transfer:
    """Return a transfer after others."""
    return structs.replace(transfer, after=after)
