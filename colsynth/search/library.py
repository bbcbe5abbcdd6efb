"""The library by itself: how fast its own algorithms are where no file serves a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from colsynth.errors import ColsynthError, VerificationError
from colsynth.model import Collective, Program
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.profile import Profile
from colsynth.search.case import Case, usable_protocols
from colsynth.search.wish import Wish
from colsynth.search.workshop import Workshop

if TYPE_CHECKING:
    from colsynth.search.plan import Plan
    from colsynth.simulate import Prepared

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
        Of the file that is compared. If it has one size, programs are for that.
    """

    def __init__(self, case: Case) -> None:
        self._case = replace(library_case(case), min_bytes=None, max_bytes=None, limited=True)
        self._programs: dict[Plan, Program] = {}
        self._known: dict[int, tuple[float, Fastest | None]] = {}

    def make(self) -> Iterator[tuple[Plan, Program]]:
        """Yield the programs of the plans that fit the machine."""
        workshop = Workshop(self._case)
        for plan in self.plans:
            with suppress(ColsynthError):
                yield plan, self._programs.get(plan) or workshop.make(plan)[1]

    def take(self, programs: Iterable[tuple[Plan, Program]]) -> None:
        """Keep programs of plans that were made elsewhere."""
        self._programs.update(programs)

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the algorithms, all with one protocol."""
        case, fit = self._case, self._protocols
        wish = Wish(rounds=case.profile.rounds, size=case.size)
        names = library_algorithms(case.profile, case.problem.collective) if fit else ()
        return tuple(replace(wish.start(name), protocol=fit[0]) for name in names)

    def is_made_for(self, case: Case, protocol: str) -> bool:
        """Whether the plans are for the runtime of a case and a protocol."""
        return self._case.runtime == case.runtime and self._protocols[:1] == (protocol,)

    @cached_property
    def _protocols(self) -> tuple[str, ...]:
        return usable_protocols(replace(self._case, sizes=(1,)))

    @property
    def fits(self) -> bool:
        """Whether any algorithm fits the machine."""
        return bool(self._candidates)

    def fastest(self, size: int, below: float = inf) -> Fastest | None:
        """Return the least time at a message size; None where it is not below a limit.

        A program whose loads alone take longer is not simulated (`Prepared.least`).

        Parameters
        ----------
        size : int
            Bytes.
        below : float
            Seconds.
        """
        limit, found = self._known.get(size, (0.0, None))
        if found is None and below > limit:
            found = min(self._times(size, below), default=None)
            self._known[size] = below, found
        return found if found is not None and found[0] < below else None

    def _times(self, size: int, below: float) -> Iterator[Fastest]:
        """Yield times, each less than those before and all less than `below`."""
        for name, protocol, ready in self._candidates:
            limit = self._case.limit(protocol)
            if (limit is not None and size > limit) or ready.least(size) >= below:
                continue
            try:
                (point,) = ready.points((size,))
            except VerificationError:  # ours hangs so, which the library does not
                continue
            if point.seconds < below:
                below = float(point.seconds)
                yield below, name

    @cached_property
    def _candidates(self) -> tuple[tuple[str, str, Prepared], ...]:
        """The algorithms that fit the machine, with each protocol."""
        from colsynth.simulate import prepare

        case = self._case
        found: list[tuple[str, str, Prepared]] = []
        for plan, program in self.make():
            for protocol in self._protocols:
                other = program.headed(replace(program.header, protocol=protocol))
                with suppress(VerificationError):
                    ready = prepare(other, case.problem.topology, case.profile, case.model)
                    found.append((plan.algorithm, protocol, ready))
        return tuple(found)
