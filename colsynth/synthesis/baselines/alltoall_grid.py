"""Grids for an alltoall in stages: along each coordinate every GPU has a few partners only.

What goes from GPU to GPU takes one coordinate after the other, first those inside a box. With
extents n1 x n2 x ... a GPU has sum(ni - 1) partners instead of all others, for as many transfers
of each chunk as coordinates differ. Source: hypercube and mesh algorithms for complete exchange
(Bokhari and Berryman, SHPCC 1992).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from colsynth.errors import Diagnostic, InputError
from colsynth.runtimes.profile import Profile
from colsynth.synthesis.baselines.build_pairwise import rounds
from colsynth.synthesis.forest.grid import Distances, Grid, grid_of

AUTO = "auto"


def check_grid(text: str) -> None:
    """Refuse what is no grid (CS210)."""
    if text != AUTO and isinstance(grid_of(text), Distances):
        phrase = f"grid {text}: an alltoall in stages needs extents, such as 8x9, or {AUTO}"
        raise InputError(Diagnostic("CS210", phrase))


def extents_of(text: str, place: int, boxes: int) -> Grid | None:
    """Return the extents of a grid of all GPUs; None where the numbers do not come out.

    Parameters
    ----------
    text : str
        Extents of a box, or of all GPUs; ``"all"``: a box has one coordinate.
    place, boxes : int
        GPUs of a box, and boxes.
    """
    found = tuple(grid_of(text)) or (place,)
    if prod(found) == place:
        found = *found, boxes
    return found if prod(found) == place * boxes else None


def fitting_grid(place: int, boxes: int, instances: int, profile: Profile) -> Grid:
    """Return the extents with the fewest coordinates for which threadblocks suffice.

    Where none suffice, they are those that need the fewest threadblocks.
    """
    steps = profile.relay_steps
    room = profile.usable_threadblocks - 1  # one copies

    def needed(grid: Grid) -> int:
        """Return the threadblocks of a GPU, where each sends or receives."""
        chunks = prod(grid) * instances
        return sum(2 * (extent - 1) * -(-chunks // extent // steps) for extent in grid)

    known = [(*a, *b) for a in _factorings(place) for b in _factorings(boxes)]
    return min(known, key=lambda g: (max(0, needed(g) - room), len(g), needed(g), g))


def _factorings(number: int, least: int = 2) -> Iterator[Grid]:
    """Yield all ways to write a number as a product of ascending factors."""
    yield (number,)
    for factor in range(least, int(number**0.5) + 1):
        if number % factor == 0:
            yield from ((factor, *rest) for rest in _factorings(number // factor, factor))


def stages(extents: Grid) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Yield for every coordinate its stride, the next one's, and who sends to whom, in rounds."""
    stride = 1
    for extent in extents:
        later = stride * extent
        pairs = [
            (block + a * stride + low, block + b * stride + low)
            for block in range(0, prod(extents), later)
            for a, b in rounds(extent)
            for low in range(stride)
        ]
        yield stride, later, pairs
        stride = later
