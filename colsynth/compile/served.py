"""Which messages a file serves: those at which the library by itself is not predicted faster.

A file that is fast at one size may be slow at others, and whoever loads it for a job has calls of
all sizes. So its byte range ends where the library's own algorithms are faster, and the library
serves those calls. From the size that the file is for, sizes are compared in steps of four, up and
down. Each stands for all up to the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from colsynth.bounds.runtime import RuntimeBound
from colsynth.model import Program
from colsynth.runtimes.selection import LARGE, size_of_call, taken_sizes, usual_size
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.library import Fastest, Library
from colsynth.units import format_size

if TYPE_CHECKING:
    from colsynth.simulate import Prepared

SLOWER = 1.1
"""A file that takes so many times as long as the library at a size does not serve it.

Less may be an error of the model. Then the file serves the size if it wins more at those beyond.
"""

_LEAST = 1024
"""Bytes of the smallest message that is compared; smaller ones take as long."""

_STEP = 4
"""Ratio of sizes that are compared."""


@dataclass(frozen=True, slots=True)
class Served:
    """The messages that a file serves.

    Parameters
    ----------
    min_bytes, max_bytes : int or None
        Inclusive; None where the file serves all on that side.
    notes : tuple of str
        What is left to the library.
    """

    min_bytes: int | None = None
    max_bytes: int | None = None
    notes: tuple[str, ...] = ()

    def limit(self, target: Target) -> Target:
        """Return a target that serves no other messages."""
        least, most = self._within(target.min_bytes, target.max_bytes)
        return replace(target, min_bytes=least, max_bytes=most)

    def limited(self, program: Program) -> Program:
        """Return a program that serves no other messages."""
        least, most = self._within(program.header.min_bytes, program.header.max_bytes)
        return program.headed(replace(program.header, min_bytes=least, max_bytes=most))

    def _within(self, least: int, most: int | None) -> tuple[int, int | None]:
        ends = [end for end in (self.max_bytes, most) if end is not None]
        return max(least, self.min_bytes or 0), min(ends, default=None)


def _smaller(case: Case) -> tuple[int, ...]:
    """Return the usual sizes below that of the file that are compared, descending."""
    collective, ranks, size = case.problem.collective, case.problem.topology.size, case.sizes[-1]
    found, most = [], usual_size(size, collective, ranks)
    most = most if most < size else size // _STEP
    while most >= _LEAST:
        found.append(usual_size(most, collective, ranks))
        most //= _STEP
    return tuple(found)


def _larger(case: Case) -> tuple[int, ...]:
    """Return the sizes above that of the file that are compared, ascending."""
    found = []
    least = case.sizes[-1] * _STEP
    while least <= LARGE:
        found.append(least)
        least *= _STEP
    return tuple(found)


def served(
    program: Program,
    case: Case,
    library: Library,
    times: Mapping[int, float | None],
    floor: RuntimeBound,
    *,
    asked: bool = False,
    below: bool = True,
    above: bool = True,
) -> Served:
    """Return the messages that a program serves rather than the library does.

    Where the library is faster at the very size that the file is for, a file that was asked for
    this size serves it all the same, but no neighbours at which it loses too. Other files serve the
    smaller messages at which they win then. A file that wins nowhere serves all, to be measured.

    Parameters
    ----------
    program : Program
    case : Case
        Its last size is the one that the file is for.
    library : Library
        Of the case.
    times : mapping
        Seconds of the program by size, as far as they are known.
    floor : RuntimeBound
        The least time of any file at the size that this one is for.
    asked : bool
        Whether the user named the size.
    below, above : bool
        Whether to look for the smallest message, and for the largest.
    """
    duel, size = _Duel(program, case, library, times), case.sizes[-1]
    sizes = size, *_smaller(case)
    found, lost = Served(), False
    if not library.fits:
        return found
    if not duel.is_safe(size, floor) and (fastest := duel.faster(size)):
        lost, found = True, Served(notes=(duel.lost(size, fastest),))
        if not asked:
            return duel.smaller(found, sizes, below=below) if above else found
        if not taken_sizes(program.header, case.profile).takes(size):
            return found
    if below:
        found = duel.down(found, sizes, lost=lost)
    if above:
        found = duel.up(found, (size, *_larger(case)), lost=lost)
    return found


@dataclass(frozen=True)
class _Duel:
    """A program against the library.

    Parameters
    ----------
    program : Program
    case : Case
    library : Library
    times : mapping
        As for `served`.
    """

    program: Program
    case: Case
    library: Library
    times: Mapping[int, float | None]

    def is_safe(self, size: int, floor: RuntimeBound) -> bool:
        """Whether no algorithm of the library can be so much faster that the file is left out.

        The floor is that of the file's runtime, which may not be the library.
        """
        known = self.times.get(size)
        return bool(known and known <= SLOWER * floor.seconds and self.case.profile.library is None)

    def down(self, found: Served, sizes: Sequence[int], *, lost: bool) -> Served:
        """Return a range that begins at the last of some descending sizes that is served.

        Where the first is `lost`, so are those up to the next one.
        """
        held, name = self._held(sizes)
        if lost and not held:
            return replace(found, min_bytes=self._called(sizes[0]))
        if name is None:
            return found
        note = _left(f"below {format_size(sizes[held])}", name)
        return replace(found, min_bytes=self._called(sizes[held]), notes=(*found.notes, note))

    def up(self, found: Served, sizes: Sequence[int], *, lost: bool) -> Served:
        """Return a range that ends before the first of some ascending sizes that is not served.

        Where the first is `lost`, so are those up to the next one.
        """
        held, name = self._held(sizes)
        if lost and not held:
            return replace(found, max_bytes=self._called(sizes[0]))
        if name is None:
            return found
        end = sizes[held + 1]
        note = _left(f"from {format_size(end)} on", name)
        return replace(found, max_bytes=self._called(end) - 1, notes=(*found.notes, note))

    def smaller(self, found: Served, sizes: Sequence[int], *, below: bool) -> Served:
        """Return the range around the largest size at which the library is not faster.

        Sizes descend, and the first is lost. Where all are, the file is not limited.
        """
        law = taken_sizes(self.program.header, self.case.profile)
        for place, size in enumerate(sizes):
            if law.takes(size) and self.library.fastest(size, below=self._seconds(size)) is None:
                ends = self.up(found, sizes[place::-1], lost=False)
                return self.down(ends, sizes[place:], lost=False) if below else ends
        where = "at all smaller sizes that the file serves, too"
        note = f"the library is predicted to be faster {where}: use this file only to measure it"
        return replace(found, notes=(*found.notes, note))

    def _called(self, size: int) -> int:
        """Return the bytes of a call of this size; ranges that begin or end at it hold those."""
        return size_of_call(size, self.case.problem)

    def _held(self, sizes: Sequence[int]) -> tuple[int, str | None]:
        """Return the place of the last size that is served, if the first one is.

        Behind it, the library's algorithm that is faster at the next one; None where there is none.
        """
        held, behind = 0, 1.0
        next_one: str | None = None
        for place, size in enumerate(sizes[1:], 1):
            ours = self._seconds(size)
            fastest = self.library.fastest(size, below=ours * behind)
            if fastest is None:  # here is won what was lost since the last size held
                held, behind, next_one = place, 1.0, None
                continue
            seconds, name = fastest
            next_one = next_one or name
            if ours > SLOWER * seconds:
                break
            behind *= ours / seconds
        return held, next_one

    def faster(self, size: int) -> Fastest | None:
        """Return the library's time, if the program is too slow beside it to serve a size."""
        return self.library.fastest(size, below=self._seconds(size) / SLOWER)

    def _seconds(self, size: int) -> float:
        """Return the predicted time of the program."""
        known = self.times.get(size)
        if known is None:
            (point,) = self._ready.points((size,))
            known = float(point.seconds)
        return known

    @cached_property
    def _ready(self) -> Prepared:
        from colsynth.simulate import prepare

        case = self.case
        return prepare(self.program, case.problem.topology, case.profile, case.model)

    def lost(self, size: int, fastest: Fastest) -> str:
        """Return a note that the library is faster at the size that the file is for."""
        seconds, name = fastest
        told = f"the library's own {name} is predicted to be"
        return f"{told} {self._seconds(size) / seconds:.2f} times as fast at {format_size(size)}"


def _left(where: str, name: str) -> str:
    """Return a note that messages are left to an algorithm of the library."""
    told = f"{where} the library's own {name} is predicted to be faster and serves"
    return f"{told} the call; 'colsynth tune' makes files for all sizes"
