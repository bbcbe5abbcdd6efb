"""The result of a plan: predicted times, or the reason why there is no program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite
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
        Predicted time at every size of the case; None where the plan was not simulated, as far
        slower than another one.
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
    least : float
        Seconds that the program certainly takes at the size of the search's `Limit`.
    """

    plan: Plan
    seconds: tuple[float | None, ...]
    refusal: str | None = None
    usable: tuple[bool, ...] = ()
    exact: tuple[bool, ...] = ()
    shape: Shape | None = None
    crowded: bool = False
    least: float = 0.0

    @property
    def served(self) -> tuple[float | None, ...]:
        """The times, None at sizes whose calls do not use the file."""
        pairs = zip(self.seconds, self.usable, strict=False)
        known = tuple(x if taken else None for x, taken in pairs)
        return known or self.seconds

    def entry(self) -> dict[str, Any]:
        """Return the result as plain values, which `of_entry` reads back."""
        return {
            "seconds": self.seconds,
            "refusal": self.refusal,
            "usable": self.usable,
            "exact": self.exact,
            "shape": None if self.shape is None else asdict(self.shape),
            "crowded": self.crowded,
        }

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
        made = [known and found.refusal is None for known in tried]
        if [x is not None for x in found.seconds] != made:
            raise ValueError("there is not a time for every size")
        if not all(x is None or (isfinite(x) and x > 0) for x in found.seconds):
            raise ValueError("a time is none")
        sizes = len(tried) if any(made) else 0
        if not len(found.usable) == len(found.exact) == sizes or bool(sizes) != bool(found.shape):
            raise ValueError("figures are missing")
        return cls(plan, **{name: getattr(found, name) for name in _Entry.__slots__})


@dataclass(frozen=True, slots=True)
class Limit:
    """The time beyond which a program is not simulated.

    Parameters
    ----------
    size : int
        Bytes of the message.
    seconds : float
    """

    size: int
    seconds: float = inf

    def holds(self, measured: Measured) -> bool:
        """Whether a result is all that is asked for within this limit.

        A program beyond it needs no times, and must not be refused because it hangs: it would not
        have been simulated.
        """
        if measured.least > self.seconds:
            return measured.refusal is None
        return any(measured.seconds) or measured.refusal is not None

    def judged(self, measured: Measured) -> Measured:
        """Return a result as it is where this limit was known, without times beyond it."""
        if measured.least <= self.seconds:
            return measured
        nothing = (None,) * len(measured.seconds)
        return replace(measured, seconds=nothing, usable=(), exact=())


@dataclass(frozen=True, slots=True)
class _Entry:
    """The plain values of a result."""

    seconds: tuple[float | None, ...]
    refusal: str | None
    usable: tuple[bool, ...]
    exact: tuple[bool, ...]
    shape: Shape | None
    crowded: bool


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
