"""The case of a search: the problem, the runtime and the message sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from colsynth.cost.pair_routes import most_nics
from colsynth.errors import Diagnostic, InputError, LimitError
from colsynth.jobs.evaluation import fingerprint
from colsynth.model import Problem
from colsynth.pipeline.added import sources
from colsynth.pipeline.target import aim
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import usual_size
from colsynth.runtimes.target import Target
from colsynth.search.levels import CLOSE, PROTOCOLS
from colsynth.search.plan import Plan
from colsynth.units import format_most, format_size


@dataclass(frozen=True)
class Case:
    """A problem, a runtime, and the messages that count.

    Parameters
    ----------
    problem : Problem
    runtime : str
    sizes : tuple of int
        Bytes of the message, ascending, as nccl-tests counts them; one or more.
    in_place, out_of_place : bool
        Call modes that the simulated program serves.
    min_bytes, max_bytes : int or None
        Smallest and largest message that the file serves, inclusive.
    model : Model, optional
        The constants that decisions follow; None: those of the runtime.
    seed : int
    limited : bool
        Whether to try each protocol only up to its largest message (`PROTOCOLS`).
    """

    problem: Problem
    runtime: str
    sizes: tuple[int, ...]
    in_place: bool = True
    out_of_place: bool = True
    min_bytes: int | None = None
    max_bytes: int | None = None
    model: Any = None
    seed: int = 0
    limited: bool = False

    @property
    def profile(self) -> Profile:
        """The runtime."""
        return profile(self.runtime)

    @property
    def close(self) -> float:
        """The factor of the best within which a fixed pattern is varied (`CLOSE`)."""
        return CLOSE * most_nics(self.problem.topology)

    @property
    def size(self) -> int | None:
        """The size, if there is only one."""
        return self.sizes[0] if len(self.sizes) == 1 else None

    def is_usual(self, size: int) -> bool:
        """Whether files that are for several sizes serve this one (`usual_size`)."""
        return size == usual_size(size, self.problem.collective, self.problem.topology.size)

    def target(self, protocol: str, size: int | None = None) -> Target:
        """Return the target that passes get; raises what `aim` raises.

        Parameters
        ----------
        protocol : str
        size : int or None
            Bytes of the message that the program is for (`Plan.size`).
        """
        limits = self.max_bytes, self.limit(protocol)
        most = min((limit for limit in limits if limit is not None), default=None)
        found = aim(self.problem, self.profile, protocol, self.min_bytes, most, seed=self.seed)
        found = replace(found, in_place=self.in_place, out_of_place=self.out_of_place)
        needed = None
        if self.max_bytes is None and most is not None:  # of ours, not asked for
            needed = max((size for size in self.sizes if size <= most), default=None)
        return replace(found, needed=needed, size=size, model=self.model)

    def limit(self, protocol: str) -> int | None:
        """Return the largest message, in bytes, that a protocol is tried at; None: no limit."""
        return PROTOCOLS.get(protocol) if self.limited else None

    def tried(self, protocol: str) -> tuple[bool, ...]:
        """Return for every size whether plans with this protocol are simulated at it."""
        limit = self.limit(protocol)
        return tuple(limit is None or size <= limit for size in self.sizes)

    def key(self, plan: Plan) -> str:
        """Return a hash of everything that the result of a plan depends on, the code too."""
        from colsynth.cost import model_of

        full = replace(self, model=model_of(self))
        code = fingerprint(), sources(item.name for item in plan.pipeline.passes)
        text = "\n".join(map(repr, (*code, self.profile, full, plan)))
        return hashlib.sha256(text.encode()).hexdigest()


def usable_sizes(runtime: str, sizes: Iterable[int]) -> tuple[int, ...]:
    """Return the sizes that files of a runtime can serve, ascending, each once.

    Raises
    ------
    InputError
        CS212 where there are none.
    """
    found = profile(runtime)
    least, most = max(found.least_min_bytes, 1), found.default_max_bytes
    fit = (size for size in sizes if least <= size and (most is None or size <= most))
    usable = tuple(sorted(set(fit)))
    if not usable:
        phrase = f"{runtime} serves none of the sizes"
        end = "" if most is None else f", {format_most(most)}"
        notes = (f"files serve messages from {format_size(least)}{end}",)
        raise InputError(Diagnostic("CS212", phrase, notes=notes))
    return usable


def usable_protocols(case: Case) -> tuple[str, ...]:
    """Return the protocols that the runtime can use for the collective at some size of the case."""
    found = []
    for protocol in PROTOCOLS:
        limit = case.limit(protocol)
        if protocol not in case.profile.fifo_calls:
            continue
        if limit is not None and case.sizes[0] > limit:
            continue
        with suppress(LimitError):
            case.target(protocol)
            found.append(protocol)
    return tuple(found)
