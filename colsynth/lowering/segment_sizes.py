"""Sizes of segments: small at the ends, and as many chunks in all as suits messages."""

from __future__ import annotations

from fractions import Fraction
from heapq import heapify, heapreplace

CHUNKS = 7
"""Chunks of a segment at most, on average: enough that sizes can differ by less than half."""


def ones_and_twos(number: int, total: int) -> str:
    """Return the sizes of two segments or more, those at both ends half as large as the others.

    Their sum, from `number` to twice that, is given: runtimes take a file only for
    messages whose elements its chunks divide (contract 1.4, `Basis.cut`).
    """
    small = 2 * number - total
    sizes = [1] * (small // 2) + [2] * (number - small) + [1] * (small - small // 2)
    return "-".join(map(str, sizes))


def sizes_of(number: int, total: int, *, rises: bool, falls: bool) -> str:
    """Return the sizes of segments as `lower-forest{segments}` has them.

    They grow steadily with the distance from the ends that are to be small, where they are a
    third to half as large as at the other end or in the middle. Larger differences make
    threadblocks wait: where a small segment and a large one are on their way at once, all take as
    long as the large one. Chunks are divided as d'Hondt divides seats.

    Parameters
    ----------
    number : int
        One or more.
    total : int
        Their sum.
    rises, falls : bool
        Whether the first, the last are small.
    """
    inside = [
        min(place if rises else number, number - 1 - place if falls else number)
        for place in range(number)
    ]
    weights = [2 * distance + number for distance in inside]
    whole = sum(weights)
    quotas = [total * weight // whole for weight in weights]  # none gets less than its quota
    sizes = quotas if min(quotas) else [1] * number

    def claim(place: int) -> tuple[Fraction, int, int]:
        return Fraction(sizes[place] + 1, weights[place]), -inside[place], place

    claims = [claim(place) for place in range(number)]
    heapify(claims)
    for _ in range(total - sum(sizes)):
        place = claims[0][-1]
        sizes[place] += 1
        heapreplace(claims, claim(place))
    return "-".join(map(str, sizes))
