"""One instruction of a threadblock, as a runtime understands it."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from colsynth.model.chunks import Origin, Slot

SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
"""Steps that send to, and that receive from, the peer of their threadblock."""

MULTICASTS = frozenset({"glres", "gstore"})
"""Steps over a switch: the sum of a chunk of all ranks, or a chunk of this one, stored at all."""


class Wait(NamedTuple):
    """A dependency: step number `step` of threadblock `threadblock` of the same GPU."""

    threadblock: int
    step: int


class Step(Struct, frozen=True, gc=False):
    """One instruction of a threadblock.

    Parameters
    ----------
    op : str
        ``s r rcs rrs rrc rrcs cpy re nop`` as the runtimes define them
        (``shared/facts/runtime_contract.md`` 4.1), or one of `MULTICASTS`.
    source, target : Slot or None
        First chunk of the local source and destination operand. A reader keeps what
        the file says, used or not; lowering sets only the operands the step uses.
    count : int
        Adjacent chunks, 0 on a nop.
    waits : tuple of Wait
        Dependencies. At most one once dependencies are spelt (and in every file).
    signals : bool
        Whether completion is published (``hasdep``).
    origin : Origin or None
        Which tree asked for the step; None when read from a file.
    folds : tuple of (int, int)
        Rank and channel of further connections whose next message an ``rrc`` adds. Only plans
        can say so.
    """

    op: str
    source: Slot | None
    target: Slot | None
    count: int
    waits: tuple[Wait, ...] = ()
    signals: bool = False
    origin: Origin | None = None
    folds: tuple[tuple[int, int], ...] = ()
