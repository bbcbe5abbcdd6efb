"""Sums of more contributions than a runtime adds in one go (`Profile.longest_sum`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


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
