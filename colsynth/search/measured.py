"""The result of a plan: predicted times, or the reason why there is no program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

from colsynth.model import Direction, Forest, Program, RoundProgram, ThreadblockProgram
from colsynth.reading import in_form
from colsynth.runtimes.choice import Shape
from colsynth.search.plan import Plan


@dataclass(frozen=True, slots=True)
class Measured:
    """The predicted times of a plan.

    Parameters
    ----------
    plan : Plan
    seconds : tuple of float or None
        Predicted time at every size of the case; None where the plan was not simulated, as slower
        than another one.
    refusal : str or None
        Why there is no program, such as ``"CS402: ..."``; then all `seconds` are None.
    usable : tuple of bool
        For every size, whether calls of usual sizes, from that size on, use the file.
    exact : tuple of bool
        For every size, whether calls of exactly that size use the file.
    shape : Shape or None
        Figures of the program; None without one.
    crowded : bool
        Whether some GPUs may not hold all its threadblocks at a time, so that it hangs there
        (`Profile.usable_threadblocks`, rule T08).
    least : tuple of float
        Seconds that the program certainly takes at every size; 0 where it is not simulated at all.
        Empty without a program.
    """

    plan: Plan
    seconds: tuple[float | None, ...]
    refusal: str | None = None
    usable: tuple[bool, ...] = ()
    exact: tuple[bool, ...] = ()
    shape: Shape | None = None
    crowded: bool = False
    least: tuple[float, ...] = ()

    @property
    def served(self) -> tuple[float | None, ...]:
        """The times, None at sizes whose calls do not use the file."""
        pairs = zip(self.seconds, self.exact, strict=False)
        known = tuple(x if taken else None for x, taken in pairs)
        return known or self.seconds

    @property
    def passed_over(self) -> tuple[bool, ...]:
        """For every size, whether usual sizes use the file, but calls of the size itself do not."""
        return tuple(x and not y for x, y in zip(self.usable, self.exact, strict=True))

    def entry(self) -> dict[str, Any]:
        """Return the result as plain values, which `of_entry` reads back."""
        return {
            "seconds": self.seconds,
            "refusal": self.refusal,
            "usable": self.usable,
            "exact": self.exact,
            "shape": None if self.shape is None else asdict(self.shape),
            "crowded": self.crowded,
            "least": self.least,
        }

    def beside(self, known: Measured | None) -> Measured:
        """Return the result with the times that another one of the plan has besides."""
        if known is None or self.refusal is not None:
            return self
        pairs = zip(self.seconds, known.seconds, strict=True)
        return replace(self, seconds=tuple(y if x is None else x for x, y in pairs))

    @classmethod
    def of_entry(cls, plan: Plan, tried: Sequence[bool], entry: Any) -> Measured:
        """Return a result from its plain values; raise ValueError where they are invalid.

        Parameters
        ----------
        plan : Plan
        tried : sequence of bool
            For every size of the case, whether the plan is simulated at it.
        entry : object
            Plain values as `entry` returns them.
        """
        found = in_form(entry, _Entry)
        sizes = len(tried) if any(tried) and found.refusal is None else 0
        pairs = zip(found.seconds, tried, strict=True)
        if any(x is not None and not (known and sizes) for x, known in pairs):
            raise ValueError("there is a time where nothing was simulated")
        if not all(x is None or (isfinite(x) and x > 0) for x in found.seconds):
            raise ValueError("a time is none")
        if not all(isfinite(x) and x >= 0 for x in found.least):
            raise ValueError("a least time is none")
        figures = found.usable, found.exact, found.least
        if any(len(row) != sizes for row in figures) or bool(sizes) != bool(found.shape):
            raise ValueError("figures are missing")
        return cls(plan, **{name: getattr(found, name) for name in _Entry.__slots__})


NOT_ASKED = -1.0
"""The limit at a size for which no time is asked."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The times beyond which a program is not simulated.

    Parameters
    ----------
    seconds : tuple of float
        At every size; empty for no limit at any.
    whole : int or None
        Place of the size beyond whose limit a program is not simulated at any size.
    """

    seconds: tuple[float, ...] = ()
    whole: int | None = None

    def excludes(self, least: Sequence[float]) -> bool:
        """Whether a program with these least times is not simulated at any size."""
        return self.whole is not None and least[self.whole] > self.seconds[self.whole]

    def allows(self, least: Sequence[float]) -> list[bool]:
        """Return for every size whether a program with these least times is simulated."""
        if self.excludes(least):
            return [False] * len(least)
        if not self.seconds:
            return [True] * len(least)
        return [time <= most for time, most in zip(least, self.seconds, strict=True)]

    def lacks(self, measured: Measured) -> list[bool]:
        """Return for every size whether a program is to be simulated that has this result."""
        pairs = zip(self.allows(measured.least), measured.seconds, strict=True)
        return [wanted and time is None for wanted, time in pairs]

    def without(self, known: Sequence[float | None], tried: Sequence[bool]) -> Limit:
        """Return a limit that asks neither for known times nor at sizes where nothing is tried."""
        rows = zip(self.seconds, known, tried, strict=True)
        seconds = tuple(x if time is None and may else NOT_ASKED for x, time, may in rows)
        asks = self.whole is not None and seconds[self.whole] != NOT_ASKED
        return Limit(seconds, self.whole if asks else None)

    def holds(self, measured: Measured) -> bool:
        """Whether a result is all that is asked for within this limit.

        A program beyond it needs no times, and must not be refused because it hangs: it would not
        have been simulated.
        """
        if measured.refusal is not None:
            return not (measured.least and self.excludes(measured.least))
        return not any(self.lacks(measured))

    def judged(self, measured: Measured) -> Measured:
        """Return a result as it is where this limit was known, without times beyond it."""
        if not measured.least:
            return measured
        pairs = zip(self.allows(measured.least), measured.seconds, strict=True)
        return replace(measured, seconds=tuple(x if wanted else None for wanted, x in pairs))


@dataclass(frozen=True, slots=True)
class _Entry:
    """The plain values of a result."""

    seconds: tuple[float | None, ...]
    refusal: str | None
    usable: tuple[bool, ...]
    exact: tuple[bool, ...]
    shape: Shape | None
    crowded: bool
    least: tuple[float, ...]


def shape_of(schedule: object, program: Program) -> Shape:
    """Return the figures of a program, and of the forest that it was made from."""
    found = _of_rounds(program) if isinstance(program, RoundProgram) else _of_steps(program)
    found |= {"chunks": program.header.chunks, "ranks": program.header.ranks}
    if isinstance(schedule, Forest):
        found |= {
            "trees": schedule.chunks,
            "trees_per_gpu": schedule.trees_per_root,
            "height": schedule.max_height,
            "weight": max(tree.weight for phase in schedule.phases for tree in phase.trees),
            "rises": schedule.phases[0].direction is Direction.IN,
            "falls": schedule.phases[-1].direction is Direction.OUT,
        }
    return Shape(**found)


def _of_rounds(program: RoundProgram) -> dict[str, Any]:
    """Return the figures of rounds; a step is one end of a message, or a local step."""
    return {
        "steps": 2 * program.messages + sum(len(found.local) for found in program.rounds),
        "gpu_steps": program.most_operations,
        "block_steps": len(program.rounds),
        "threadblocks": 1,
        "count": max((m.count for found in program.rounds for m in found.messages), default=0),
    }


def _of_steps(program: ThreadblockProgram) -> dict[str, Any]:
    per_gpu = [sum(len(block.steps) for block in gpu.threadblocks) for gpu in program.gpus]
    return {
        "steps": sum(per_gpu),
        "gpu_steps": max(per_gpu),
        "block_steps": program.max_steps,
        "threadblocks": program.max_threadblocks,
        "count": int(program.steps.count.max(initial=0)),
    }
