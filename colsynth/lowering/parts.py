"""Chunks of a transfer on their way to slots, and the transfers that are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from colsynth.model import Origin, Slot, Transfer


class Part(Struct, gc=False):
    """Some chunks of a transfer, and where they are read."""

    source: int
    target: int
    chunk: int
    count: int
    after: tuple[int, ...]
    origin: Origin
    read: Slot


def arriving(part: Part, write: Slot, operand: Slot | None = None) -> Transfer:
    """Return a transfer that is written, added to `operand` where there is one."""
    adds, source = operand is not None, part.source
    return Transfer(  # by position: names take half as long again
        source, part.target, part.chunk, part.count, adds, part.after, part.origin, part.read,
        write, operand,
    )  # fmt: skip


def behind(
    part: Part, earlier: int, read: Slot, write: Slot, operand: Slot | None = None
) -> Transfer:
    """Return a local step of a transfer's target, behind another placed transfer."""
    adds, rank = operand is not None, part.target
    return Transfer(
        rank, rank, part.chunk, part.count, adds, (earlier,), part.origin, read, write, operand
    )


def runs(keys: Iterable[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    """Yield runs of adjacent chunks on one rank, at most `most` long."""
    run: list[tuple[int, int]] = []
    for rank, chunk in keys:
        if run and (run[-1] != (rank, chunk - 1) or len(run) == most):
            yield run
            run = []
        run.append((rank, chunk))
    if run:
        yield run
