"""Sums of more contributions than a runtime adds in one go (`Profile.longest_sum`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from colsynth.model import ThreadblockProgram

T = TypeVar("T")


def joined(program: ThreadblockProgram, longest: int | None) -> NDArray[np.bool_]:
    """Return which steps of a program the runtime does in one go with the one before.

    It fuses local reductions in a row into the same chunk, from the same buffer, unless somebody
    waits for the first (contract 4.5).

    Parameters
    ----------
    program : ThreadblockProgram
    longest : int or None
        As `Profile.longest_sum`.
    """
    steps, lengths = program.steps, program.lengths
    block = np.repeat(np.arange(len(lengths)), lengths)
    keys = np.stack([block, *steps.target, steps.source[0], steps.count])
    adds = steps.among({"re"})
    same = (keys[:, 1:] == keys[:, :-1]).all(axis=0) & adds[1:] & adds[:-1]
    same &= (steps.waits[1:] == 0) & (steps.signals[:-1] == 0)
    found = np.concatenate([np.zeros(min(len(steps), 1), dtype=np.bool_), same])
    if longest is not None:
        place = np.arange(len(found))
        found &= (place - np.maximum.accumulate(np.where(found, 0, place))) % longest > 0
    return found


def additions(parts: Sequence[T], into: T, longest: int | None) -> Iterator[tuple[T, T]]:
    """Yield what is added, and to what, so that no chain of additions is too long.

    Where there are too many for one chain, the others are added up where the first of them is, and
    then these sums.

    Parameters
    ----------
    parts : sequence
        What is to be added.
    into : object
        Where everything comes together.
    longest : int or None
        Additions that the runtime does in one go; None: any number.
    """
    most = longest or len(parts)
    first = most - (len(parts) == most + 1)  # one alone would only make the chain longer
    yield from ((part, into) for part in parts[:first])
    heads = []
    for begin in range(first, len(parts), most + 1):
        head, *others = parts[begin : begin + most + 1]
        heads.append(head)
        yield from ((part, head) for part in others)
    if heads:
        yield from additions(heads, into, longest)
