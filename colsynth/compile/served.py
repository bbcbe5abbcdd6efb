"""Which messages a file serves: those at which the library by itself is not predicted faster.

A file that is fast at one size may be slow at others, and whoever loads it for a job has calls of
all sizes. So its byte range ends where the library's own algorithms are faster, and the library
serves those calls. From the size that the file is for, sizes are compared in steps of four, up and
down. Each stands for all up to the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from colsynth.bounds.runtime import RuntimeBound
from colsynth.model import Program
from colsynth.runtimes.selection import LARGE, called_size, taken_sizes, usual_size
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.library import Library
from colsynth.units import format_size

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
    """Return the sizes below that of the file that are compared, descending."""
    problem, found = case.problem, []
    most = case.sizes[-1] // _STEP
    while most >= _LEAST:
        found.append(usual_size(most, problem.collective, problem.topology.size))
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


def compared(case: Case) -> tuple[int, ...]:
    """Return the sizes at which a file is compared with the library, as far as there is need.

    The one that the file is for comes behind the smaller ones: it takes longest, and there is no
    need where the file is near the floor.
    """
    return *_smaller(case), case.sizes[-1], *_larger(case)


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
    this size serves it all the same, but no neighbours at which it loses too. Other files are not
    limited then: they may win elsewhere.

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
    found, lost = Served(), False
    if not duel.is_safe(size, floor):
        lead = duel.lead(size)
        if lead is None:
            return found
        if lost := lead < -log(SLOWER):
            found = Served(notes=(duel.lost(size, lead),))
            if not (asked and taken_sizes(program.header, case.profile).takes(size)):
                return found
    if below:
        found = duel.down(found, (size, *_smaller(case)), lost=lost)
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
        held = self._held(sizes)
        if lost and not held:
            return replace(found, min_bytes=self._called(sizes[0]))
        if not self._is_left(sizes, held):
            return found
        note = self._left(f"below {format_size(sizes[held])}", sizes[held + 1])
        return replace(found, min_bytes=self._called(sizes[held]), notes=(*found.notes, note))

    def up(self, found: Served, sizes: Sequence[int], *, lost: bool) -> Served:
        """Return a range that ends before the first of some ascending sizes that is not served.

        Where the first is `lost`, so are those up to the next one.
        """
        held = self._held(sizes)
        if lost and not held:
            return replace(found, max_bytes=self._called(sizes[0]))
        if not self._is_left(sizes, held):
            return found
        end = sizes[held + 1]
        note = self._left(f"from {format_size(end)} on", end)
        return replace(found, max_bytes=self._called(end) - 1, notes=(*found.notes, note))

    def _called(self, size: int) -> int:
        """Return the bytes of a call of this size; ranges that begin or end at it hold those.

        A size so small that its call is empty stands for itself.
        """
        problem = self.case.problem
        return called_size(size, problem.collective, problem.topology.size) or size

    def _held(self, sizes: Sequence[int]) -> int:
        """Return the place of the last size that is served, if the first one is."""
        held, lead = 0, 0.0
        for place, size in enumerate(sizes[1:], 1):
            more = self.lead(size)
            if more is None or more < -log(SLOWER):
                break
            lead += more
            if lead >= 0:
                held, lead = place, 0.0
        return held

    def _is_left(self, sizes: Sequence[int], held: int) -> bool:
        """Whether there is a size behind the last that is served, and the library can serve it."""
        return held + 1 < len(sizes) and self.library.fastest(sizes[held + 1]) is not None

    def lead(self, size: int) -> float | None:
        """Return the logarithm of the library's time over that of the program.

        None where the library's algorithms are not modelled, or do not fit the machine.
        """
        fastest = self.library.fastest(size)
        return None if fastest is None else log(fastest[0] / self._seconds(size))

    def _seconds(self, size: int) -> float:
        """Return the predicted time of the program."""
        from colsynth.simulate import simulate

        known, case = self.times.get(size), self.case
        if known is not None:
            return known
        topology = case.problem.topology
        (point,) = simulate(self.program, topology, case.profile, (size,), case.model)
        return float(point.seconds)

    def lost(self, size: int, lead: float) -> str:
        """Return a note that the library is faster at the size that the file is for."""
        told = f"the library's own {self._name(size)} is predicted to be"
        return f"{told} {exp(-lead):.2f} times as fast at {format_size(size)}"

    def _left(self, where: str, size: int) -> str:
        """Return a note that messages are left to the library, `size` among them."""
        told = f"{where} the library's own {self._name(size)} is predicted to be faster and serves"
        return f"{told} the call; 'colsynth tune' makes files for all sizes"

    def _name(self, size: int) -> str:
        fastest = self.library.fastest(size)
        return "algorithm" if fastest is None else fastest[1]
