"""What a user decides before the search: which ways data may take, and what must look alike."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Pairs = tuple[tuple[int, int], ...]
"""(source, target) ranks, sorted, each once."""


class Connections(StrEnum):
    """How many connections through a switch are wished for."""

    FEW = "few"
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Sketch:
    """Limits on the schedules of a problem, all in ranks of its topology.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    within : Pairs or None
        GPUs of the same box that may send to each other without a third; None for all. Ways
        between GPUs of a box through a NIC are never allowed.
    between : Pairs or None
        GPUs of different boxes that may do so; None for all.
    leave : tuple of tuple of int
        By rank, through which GPUs of its box the chunks that begin there leave the box, and no
        other box passes them on to a third one. Empty where chunks may take any way.
    in_order : bool
        Whether a sender's own chunks go before those that it relays.
    connections : Connections or None
        How many connections through switches are preferred; None for no preference.
    symmetries : tuple of tuple of int
        Permutations of all ranks that a schedule has to be invariant under.
    chunks : int or None
        Chunks that the share of every GPU is cut into.
    share : int or None
        Bytes of that share.
    """

    name: str
    within: Pairs | None = None
    between: Pairs | None = None
    leave: tuple[tuple[int, ...], ...] = ()
    in_order: bool = False
    connections: Connections | None = None
    symmetries: tuple[tuple[int, ...], ...] = ()
    chunks: int | None = None
    share: int | None = None
