"""What passes are told besides the value they work on.

Every pass is handed a `Context`; those that make programs for a runtime need a `Target`,
which is a context with a runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from colsynth.errors import whole_seed
from colsynth.model import Problem
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import (
    LARGE,
    divided_by_ranks,
    parts_of_chunks,
    power_of_two,
    shares_may_differ,
)


def _silent(_message: str, _done: int, _total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """What does not depend on the runtime.

    Parameters
    ----------
    seed : int
        Of every random choice.
    progress : callable
        Called with (what, done, total) by long work.

    Raises
    ------
    InputError
        CS210: the seed is no whole number from 0.
    """

    seed: int = 0
    progress: Callable[[str, int, int], None] = _silent

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole_seed(self.seed))


@dataclass(frozen=True)
class Target(Context):
    """Runtime, protocol, call modes and message sizes.

    Parameters
    ----------
    profile : Profile
    protocol : str
        ``"Simple"``, ``"LL"`` or ``"LL128"``.
    in_place, out_of_place : bool
        Which modes of the call the program must be right for; both may be set.
    min_bytes : int
        Inclusive.
    max_bytes : int or None
        Inclusive; None is as large as the runtime can count (`Profile.largest_message`).
    needed : int or None
        The largest message that a program must be able to serve, where that is less than
        `max_bytes`; None: that one.
    size : int or None
        Bytes of the message that the program is for; None: of several, usual ones.
    model : Model, optional
        The constants that decisions follow (`colsynth.cost`); None: those of the runtime.
    seed, progress
        As in `Context`, by keyword.
    """

    profile: Profile
    protocol: str = "Simple"
    in_place: bool = True
    out_of_place: bool = True
    min_bytes: int = 0
    max_bytes: int | None = None
    needed: int | None = None
    size: int | None = None
    model: Any = None

    def loose_parts(self, problem: Problem, shares: int, copies: int = 1) -> int:
        """Return into how many parts a message can be cut, in each copy, that equal shares do not.

        0 where they divide it, or where shares may not differ: each rank has its own, or there is
        one root.

        Parameters
        ----------
        problem : Problem
        shares, copies : int
            Chunks of all roots in a copy of the program while they are equal, and copies.
        """
        if not shares_may_differ(problem) or self.parts(problem, shares * copies):
            return 0
        return self.parts(problem, copies)

    def parts(self, problem: Problem, chunks: int) -> int:
        """Return into how many parts each of a file's chunks can be cut (`parts_of_chunks`).

        0 where powers of two are best: for usual sizes, and where no call uses even whole chunks.
        Usual sizes are powers of two. Where a message is not divided among the ranks and they do
        not divide one, the file is as for a large one: their shares have to differ.
        """
        size, ranks = self.size, problem.topology.size
        if size is None:
            if divided_by_ranks(problem.collective) or ranks == power_of_two(ranks):
                return 0
            size = LARGE
        return parts_of_chunks(size, chunks, problem.collective, ranks, self.profile)

    @property
    def sends_read_late(self) -> bool:
        """Whether what is sent may not be overwritten by who waits for the send.

        On RCCL the flag of an LL send does not say that its source was read (rule B07).
        """
        return not self.profile.fuses and self.protocol == "LL"
