"""Where the buffers, channels, semaphores and queues of a plan's ranks lie on one GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colsynth.execute.plans import PlanProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from colsynth.execute.definition import Call
    from colsynth.runtimes.plans.form import Plan
    from colsynth.runtimes.profile import Profile

_KINDS = ("memory", "port")


class Layout:
    """Where everything lies that ranks have.

    Parameters
    ----------
    plan : Plan
    profile : Profile
    calls : sequence of Call
        Of every rank.
    copies : int
        Calls for which the user has buffers of their own.
    """

    def __init__(self, plan: Plan, profile: Profile, calls: Sequence[Call], copies: int) -> None:
        self.programs = [PlanProgram(plan, profile, call, _unsent) for call in calls]
        self.bases: list[list[int]] = []
        """First byte of input, output and scratch of every rank."""
        at = 0
        for call, program in zip(calls, self.programs, strict=True):
            first, second = (len(base) for base in program.bases[:2])
            self.bases.append([at, at if call.in_place else at + first])
            at += first if call.in_place else first + second
            if at % 16:
                raise ValueError(f"{at} bytes are no multiple of 16")
        self.user_bytes = at
        at *= copies
        for base, program in zip(self.bases, self.programs, strict=True):
            base.append(at)
            at += (2 if plan.use_double_scratch_buffer else 1) * program.where.half + 16
        self.bytes = at
        self.channels = _counted(
            {kind: [k for k, _ in program.partner].count(kind) for kind in _KINDS}
            for program in self.programs
        )
        self.semaphores = _counted({"": len(gpu.semaphores)} for gpu in plan.gpus)
        ported = [
            rank
            for rank, program in enumerate(self.programs)
            if any(kind == "port" for kind, _ in program.partner)
        ]
        self.queues = {rank: number for number, rank in enumerate(ported)}


def _counted(parts: Any) -> dict[Any, int]:
    """Return where the things of each rank and kind begin, and under None how many there are."""
    found: dict[Any, int] = {}
    at = 0
    for rank, counts in enumerate(parts):
        for kind, count in counts.items():
            found[rank, kind] = at
            at += count
    found[None] = at
    return found


def _unsent(*_: Any, **__: Any) -> None:
    raise AssertionError("nothing is executed here")
