"""The library by itself: how fast its own algorithms are where no file serves a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from math import inf

from colsynth.errors import ColsynthError, VerificationError
from colsynth.jobs.beside import Beside
from colsynth.model import Collective, Program
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.profile import Profile
from colsynth.search.case import Case, usable_protocols
from colsynth.search.wish import Wish
from colsynth.search.workshop import Workshop

Fastest = tuple[float, str]
"""Seconds, and the algorithm that takes them."""


def library_case(case: Case) -> Case:
    """Return the case as the library sees it, which may be another runtime (`Profile.library`)."""
    other = case.profile.library
    return case if other is None else replace(case, runtime=other, model=None)


def library_algorithms(runtime: Profile, collective: Collective) -> tuple[str, ...]:
    """Return the algorithms of a runtime's library; none where they are not modelled."""
    library = runtime if runtime.library is None else profile(runtime.library)
    return library.built_in.get(collective, ())


class Library:
    """The library's algorithms, each with all protocols; the fastest counts at each size.

    They are the baselines of the same names as they stand. A program is made once for all
    protocols, since a library sends the same way with each.

    Parameters
    ----------
    case : Case
        Of the file that is compared. Its sizes do not matter.
    """

    def __init__(self, case: Case) -> None:
        self._case = replace(library_case(case), min_bytes=None, max_bytes=None, limited=True)
        self._known: dict[int, Fastest | None] = {}
        self._ahead: Beside[tuple[int, Fastest | None]] | None = None

    def ahead(self, sizes: Sequence[int]) -> Iterator[tuple[int, Fastest | None]]:
        """Yield sizes with the least time at each: the work of a copy of this process."""
        for size in sizes:
            yield size, self.fastest(size)

    def follow(self, beside: Beside[tuple[int, Fastest | None]]) -> None:
        """Take the results of `ahead` from a copy of this process."""
        self._ahead = beside

    def fastest(self, size: int) -> Fastest | None:
        """Return the least time at a message size; None where no algorithm fits the machine."""
        while size not in self._known and self._ahead is not None:
            found = self._ahead.result()
            if found is None:
                self._ahead = None
            else:
                self._known[found[0]] = found[1]
        if size not in self._known:
            self._known[size] = min(self._times(size), default=None)
        return self._known[size]

    def _times(self, size: int) -> Iterator[Fastest]:
        """Yield times, each less than those before."""
        from colsynth.simulate import prepare

        case, least = self._case, inf
        topology, model = case.problem.topology, case.model
        tried = [p for p in self._protocols if (limit := case.limit(p)) is None or size <= limit]
        for name, program in self._programs:
            for protocol in tried:
                other = program.headed(replace(program.header, protocol=protocol))
                try:
                    ready = prepare(other, topology, case.profile, model)
                    points = ready.points((size,)) if ready.least(size) <= least else ()
                except VerificationError:  # ours hangs so, which the library does not
                    continue
                for point in points:
                    if point.seconds < least:
                        least = float(point.seconds)
                        yield least, name

    @cached_property
    def _protocols(self) -> tuple[str, ...]:
        return usable_protocols(replace(self._case, sizes=(1,)))

    @cached_property
    def _programs(self) -> tuple[tuple[str, Program], ...]:
        """The programs of the algorithms that fit the machine."""
        found: list[tuple[str, Program]] = []
        workshop, wish = Workshop(self._case), Wish(rounds=self._case.profile.rounds)
        case = self._case
        names = library_algorithms(case.profile, case.problem.collective)
        for name in names if self._protocols else ():
            plan = replace(wish.start(name), protocol=self._protocols[0])
            with suppress(ColsynthError):
                found.append((name, workshop.make(plan)[1]))
        return tuple(found)
