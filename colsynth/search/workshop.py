"""The workshop: makes and simulates programs; what plans have in common is made once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from colsynth.errors import ColsynthError
from colsynth.gc_pause import gc_paused
from colsynth.model import (
    ChunkProgram,
    Forest,
    Problem,
    Program,
    RoundProgram,
    ThreadblockProgram,
    TimedSchedule,
)
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes.selection import TakenSizes, taken_sizes
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.measured import Limit, Measured, shape_of
from colsynth.search.plan import Plan

if TYPE_CHECKING:
    from colsynth.simulate import Prepared

_KEPT = 600_000
"""Largest number of transfers and steps in kept values, but the pinned ones: about 200 MB."""

Asked = tuple[Plan, Limit]
"""A plan that is to be measured, and the times that are asked for."""
Value = Any
_Message = tuple[str, int | None] | None
"""Protocol and size of the message that a program is for; None for passes that see neither."""
_Pass = tuple[_Message, Any]
"""A pass behind what it may see of the message."""
_Step = tuple[_Message, int, Any]
"""A pass on a value: what the pass may see of the message; number of the value; pass."""


class Workshop:
    """Makes and simulates the programs of one case.

    Values between passes are kept for later plans that lead to them; the least recently used
    are dropped first, but neither forests nor what is pinned. Plans often lead to equal values by
    different options: these count as one, so what follows is done once. A worker process receives
    an empty workshop.

    Parameters
    ----------
    case : Case
    clock : Clock, optional
        Adds up the seconds of passes and of the simulator.
    held : iterable of Plan
        Plans whose programs are needed later, if they are made: all of these are kept apart.
    """

    def __init__(self, case: Case, clock: Clock | None = None, held: Iterable[Plan] = ()) -> None:
        self.case = case
        self.held = frozenset(held)
        self.programs_held: dict[Plan, Program] = {}
        self.clock = clock or Clock()
        self._numbers: dict[_Step, int] = {}
        self._kept = OrderedDict[int, tuple[int, Value]]({0: (0, case.problem)})
        self._weight = 0
        self._pinned = 0
        self._targets: dict[tuple[str, int | None], Target] = {}
        self._results: dict[tuple[str, int, int], Measured] = {}

    def __reduce__(self) -> tuple[type[Workshop], tuple[Case]]:
        return Workshop, (self.case,)

    def make(self, plan: Plan) -> tuple[Value, Program]:
        """Return the schedule and the program of a plan; raise what its passes raise."""
        (_, schedule), (_, program) = self._made(plan)
        return schedule, program

    def schedule(self, plan: Plan) -> Value:
        """Return the schedule of a plan; raise what its passes raise."""
        steps = _steps(plan)
        return self._after(plan, steps[: _begun(steps)])[1]

    def pin(self, plan: Plan) -> None:
        """Keep the program of a plan until that of another one is pinned."""
        self._pinned = self._numbers_of(plan)[-1]

    def made_of(self, plan: Plan) -> tuple[Value, ...]:
        """Return what each pass of a plan gave: only schedule and program, where they are kept.

        Programs of chunks are as soon made again as sent to another process.
        """
        steps, numbers = _steps(plan), self._numbers_of(plan)
        wanted = {_begun(steps), len(steps)}

        def sent(at: int, number: int) -> Value | None:
            _, value = self._kept.get(number, (0, None))
            return value if at in wanted and not isinstance(value, ChunkProgram) else None

        return tuple(sent(at, number) for at, number in enumerate(numbers[1:], 1))

    def adopt(self, measured: Measured, values: Sequence[Value]) -> None:
        """Keep a result and what `made_of` returned for its plan in a copy of this process."""
        number, numbers = 0, [0]
        for (message, item), value in zip(_steps(measured.plan), values, strict=False):
            step = message, number, item
            if value is None:
                number = self._numbers.setdefault(step, len(self._numbers) + 1)
            else:
                number, _ = self._keep(step, value)
            numbers.append(number)
        begun = _begun(_steps(measured.plan))
        if len(numbers) > len(measured.plan.pipeline.passes):
            self._hold(measured.plan, values[-1])
            self._results[measured.plan.protocol, numbers[begun], number] = measured

    def _made(self, plan: Plan) -> tuple[tuple[int, Value], tuple[int, Program]]:
        """Return the schedule and the program of a plan, each behind its number."""
        steps = _steps(plan)
        found = self._after(plan, steps[: _begun(steps)]), self._after(plan, steps)
        self._hold(plan, found[1][1])
        return found

    def _hold(self, plan: Plan, program: Program | None) -> None:
        """Keep a program, if there is one and that of its plan is to be held."""
        if plan in self.held and program is not None:
            self.programs_held[plan] = program

    def _after(self, plan: Plan, steps: Sequence[_Pass]) -> tuple[int, Value]:
        """Return what the first passes of a plan give, behind its number."""
        numbers = self._numbers_of(plan)[: len(steps) + 1]
        place = max(place for place, number in enumerate(numbers) if number in self._kept)
        number, value = self._recall(numbers[place])
        for at, (message, item) in enumerate(steps[place:], place + 1):
            made = Pipeline((item,), at).run(value, self._target(plan), self.clock)
            number, value = self._keep((message, number, item), made)
        return number, value

    def _numbers_of(self, plan: Plan) -> list[int]:
        """Return the numbers of the problem and of a plan's values, as far as they were made."""
        numbers = [0]
        for message, item in _steps(plan):
            number = self._numbers.get((message, numbers[-1], item))
            if number is None:
                break
            numbers.append(number)
        return numbers

    def _recall(self, number: int) -> tuple[int, Value]:
        self._kept.move_to_end(number)
        return number, self._kept[number][1]

    def _target(self, plan: Plan) -> Target:
        message = plan.protocol, plan.size
        if message not in self._targets:
            self._targets[message] = self.case.target(*message)
        return self._targets[message]

    def _keep(self, step: _Step, value: Value) -> tuple[int, Value]:
        """Keep what a pass gave; return its number, and the value that is kept."""
        weight = _weight_of(value)
        same = self._same(weight, value) or self._numbers.get(step)
        number = self._numbers[step] = same or len(self._numbers) + 1
        if number in self._kept:
            return number, self._kept[number][1]
        self._kept[number] = weight, value
        self._weight += weight
        for other, (lost, _) in list(self._kept.items()):
            if self._weight > _KEPT and lost and other not in (number, self._pinned):
                del self._kept[other]
                self._weight -= lost
        return number, value

    def _same(self, weight: int, value: Value) -> int | None:
        """Return the number of an equal value; timed schedules hold arrays and stay apart."""
        if not isinstance(value, Forest | ChunkProgram | ThreadblockProgram):
            return None
        for number, (known, other) in self._kept.items():
            if known == weight and type(other) is type(value) and other == value:
                return number
        return None

    def measure(self, asked: Sequence[Asked]) -> list[Measured]:
        """Return the results of plans, in order, up to the first that gives a program.

        A defect of colsynth in one plan counts as a refusal of that plan, so that the others
        are still tried.

        Parameters
        ----------
        asked : sequence of (Plan, Limit)
            A program that certainly takes longer than its limit has no times.
        """
        found = []
        for plan, limit in asked:
            with gc_paused():  # each pass would be followed by a collection, 2 % in all
                found.append(self._measured(plan, limit))
            if found[-1].refusal is None:
                break
        return found

    def _measured(self, plan: Plan, limit: Limit) -> Measured:
        from colsynth.simulate import prepare

        case = self.case
        nothing, tried = (None,) * len(case.sizes), case.tried(plan.protocol)
        if not any(tried):
            return Measured(plan, nothing, f"{plan.protocol} is for smaller messages")
        least: tuple[float, ...] = ()
        try:
            (first, schedule), (last, program) = self._made(plan)
            same = plan.protocol, first, last
            found = self._results.get(same)
            if found is None or not limit.holds(found):
                with self.clock.measure("simulate"):
                    ready = prepare(program, case.problem.topology, case.profile, case.model)
                    found = found or self._untimed(plan, schedule, program, ready)
                    least = found.least
                    rows = zip(case.sizes, tried, limit.lacks(found), strict=True)
                    points = ready.points([size for size, may, lacks in rows if may and lacks])
                new = {point.size_bytes: float(point.seconds) for point in points}
                seconds = zip(case.sizes, found.seconds, strict=True)
                found = replace(found, seconds=tuple(new.get(size, old) for size, old in seconds))
                self._results[same] = found
        except ColsynthError as fault:
            told = fault.diagnostic
            return Measured(plan, nothing, f"{told.code}: {told.phrase}", least=least)
        return replace(found, plan=plan)

    def _untimed(self, plan: Plan, schedule: Value, program: Program, ready: Prepared) -> Measured:
        """Return the result of a plan that gives a program, without times."""
        case, shape = self.case, shape_of(schedule, program)
        law = taken_sizes(program.header, case.profile)
        pairs = zip(case.sizes, case.tried(plan.protocol), strict=True)
        return Measured(
            plan,
            (None,) * len(case.sizes),
            usable=tuple(is_usable(size, law) for size in case.sizes),
            exact=tuple(law.takes(size) for size in case.sizes),
            shape=shape,
            crowded=shape.threadblocks > case.profile.usable_threadblocks,
            least=tuple(ready.least(size) if may else 0.0 for size, may in pairs),
        )


def is_usable(size: int, law: TakenSizes) -> bool:
    """Return whether messages of the first usual size from `size` bytes on use a file.

    A simulated size stands for all sizes up to the next one, and usual sizes are round numbers.
    """
    return law.takes(law.usual(2 * size - 1))


def _steps(plan: Plan) -> list[_Pass]:
    """Return the passes of a plan, each behind what it may see of the message."""
    message, passes = (plan.protocol, plan.size), plan.pipeline.passes
    return [(None if getattr(item, "any_message", False) else message, item) for item in passes]


def _begun(steps: Sequence[_Pass]) -> int:
    """Return how many passes lead to the schedule of a program."""
    return max((place for place, step in enumerate(steps, 1) if _begins(step[1])), default=0)


def _begins(item: Any) -> bool:
    """Whether a pass gives what counts as the schedule of a program."""
    begun = item.takes is Problem and item.gives is not ThreadblockProgram
    return begun or issubclass(item.gives, Forest | TimedSchedule)


def _weight_of(value: Value) -> int:
    if isinstance(value, ChunkProgram):
        return len(value.transfers)
    if isinstance(value, TimedSchedule):
        return value.transfers
    if isinstance(value, RoundProgram):
        return value.messages
    if isinstance(value, ThreadblockProgram):
        return int(value.lengths.sum())
    return 0
