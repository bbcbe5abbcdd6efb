"""What counters do at every length of message: totals that differ, and waits without end.

A counter's total is a sum of iterations, each the bytes of a chunk times a rate, rounded up. Such a
sum changes only where some product passes a whole number, so the lengths behind these points decide
for all others, exactly.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from math import ceil

import numpy as np

from colsynth.verify.plans.resolved import BARRIER, GIVES, PACKET, TAKES, Part, Resolved
from colsynth.verify.plans.shapes import BARRIERS

Key = tuple[bool, int, int]
"""Whether it is a barrier, its or the counter's number, and who comes to the barrier."""
_MOST_POINTS = 1 << 20
"""Lengths at which a sum may change, beyond which it is not compared."""
_MOST_EVENTS = 2_000_000
"""Signals, waits and barriers of a launch, beyond which it is not executed."""
_BEFORE, _INSIDE, _AFTER, _NO_LOOP = range(4)
"""Where an operation stands: before, inside or behind its threadblock's only pipeline."""


class Unknown(Exception):
    """There are too many lengths to look at."""


def counted(part: Part) -> Iterator[tuple[int, int]]:
    """Yield the counters that an operation moves, and by how much."""
    kind = part.action.kind
    side = 1 if kind in GIVES else -1 if kind in TAKES else 0
    if side:
        for end in part.action.ends:
            yield end, side


def goes_forward(program: Resolved) -> bool:
    """Whether threadblocks wait only for what others do no later in their own course.

    Where each has one pipeline at most, and all go round equally often, a wait is then for the same
    iteration or an earlier one, whatever the length. So one iteration shows all hangs.
    """
    rates = {part.rate for part in program.operations() if part.loop >= 0}
    if not rates:
        return True
    if len(rates) > 1 or any(part.loop > 0 for part in program.operations()):
        return False
    phases: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    meetings: dict[tuple[int, int], set[int]] = defaultdict(set)
    for number, block in enumerate(program.parts):
        for part, phase in zip(block, _phases(block), strict=True):
            if part.action.kind == BARRIER:
                meetings[program.blocks[number][0], part.action.op.barrier_id or 0].add(phase)
            if part.action.kind == PACKET and phase != _INSIDE:
                return False
            for end, side in counted(part):
                phases[end][side, phase] += 1
    if any(len(found) > 1 for found in meetings.values()):
        return False
    return all(_forward(program.start[end], found) for end, found in phases.items())


def _phases(block: Sequence[Part]) -> list[int]:
    """Return where each operation stands: before, inside or behind the pipeline."""
    if all(part.loop < 0 for part in block):
        return [_NO_LOOP] * len(block)
    places, phase = [], _BEFORE
    for part in block:
        phase = _INSIDE if part.loop >= 0 else _BEFORE if phase == _BEFORE else _AFTER
        places.append(phase)
    return places


def _forward(start: int, found: Counter[tuple[int, int]]) -> bool:
    """Whether all that is taken from a counter was given in the same iteration or before."""
    where = {phase == _NO_LOOP for _, phase in found}
    if len(where) > 1:
        return False
    early = start + found[1, _BEFORE] >= found[-1, _BEFORE]
    return where == {True} or (early and found[1, _INSIDE] >= found[-1, _INSIDE])


def unbalanced(program: Resolved, align: int, least: int, most: int) -> tuple[int, str, int] | None:
    """Return bytes of a chunk, what is wrong there, and a threadblock; None where nothing is.

    Raises
    ------
    Unknown
        Nothing was found, but not all lengths could be looked at.
    """
    forms: dict[Key, Counter[Fraction]] = defaultdict(Counter)
    users: dict[Key, int] = {}
    unknown = False
    for number, block in enumerate(program.parts):
        for part in block:
            for end, side in counted(part):
                users.setdefault((False, end, 0), number)
                forms[False, end, 0][part.rate] += side
            if part.action.kind == BARRIER:
                rank, place = program.blocks[number][0], part.action.op.barrier_id or 0
                forms[True, rank * BARRIERS + place, number][part.rate] += 1
    for key, form in _compared(forms):
        try:
            chunk = _differs(form, align, least, most)
        except Unknown:
            unknown = True
            continue
        if chunk is not None:
            return chunk, _what(program, key, form, chunk), users.get(key, key[2])
    if unknown:
        raise Unknown
    return None


def _compared(
    forms: dict[Key, Counter[Fraction]],
) -> Iterator[tuple[Key, Counter[Fraction]]]:
    """Yield sums that must be 0: of a counter, and of two threadblocks that meet at barriers."""
    first: dict[int, Counter[Fraction]] = {}
    for key, form in forms.items():
        if not key[0]:
            yield key, form
            continue
        other = first.setdefault(key[1], form)
        yield key, Counter({rate: form[rate] - other[rate] for rate in {*form, *other}})


def _differs(form: Counter[Fraction], align: int, least: int, most: int) -> int | None:
    """Return the smallest chunk at which a sum is not 0."""
    rates = [(rate, weight) for rate, weight in form.items() if weight]
    if not rates:
        return None
    points, each = [np.array([least])], sum(rate for rate, _ in rates)
    unknown = each * most > _MOST_POINTS
    if unknown:
        most = int(_MOST_POINTS / each) // align * align
    for rate, _ in rates:
        if rate:
            whole = np.arange(int(least * rate), ceil(most * rate), dtype=np.int64)
            points.append((whole * rate.denominator // rate.numerator // align + 1) * align)
    chunks = np.unique(np.concatenate(points))
    chunks = chunks[(chunks >= least) & (chunks <= max(least, most))]
    total = np.zeros_like(chunks)
    for rate, weight in rates:
        turns = -(-chunks * rate.numerator // rate.denominator) if rate else 1
        total += weight * turns
    wrong = np.flatnonzero(total)
    if wrong.size:
        return int(chunks[wrong[0]])
    if unknown:
        raise Unknown
    return None


def _what(program: Resolved, key: Key, form: Counter[Fraction], chunk: int) -> str:
    turns = {rate: ceil(rate * chunk) if rate else 1 for rate in form}
    more = sum(weight * turns[rate] for rate, weight in form.items())
    if key[0]:
        often = "once" if abs(more) == 1 else f"{abs(more)} times"
        return f"one threadblock comes to barrier {key[1] % BARRIERS} {often} more than another"
    kind = program.kind(key[1])
    words = ("releases", "acquires") if kind == "semaphore" else ("signals", "waits")
    side = words if more > 0 else words[::-1]
    return f"{side[0]} outnumber {side[1]} by {abs(more)} on a {kind} in one launch"


def hangs(program: Resolved, chunk: int) -> tuple[int, Part] | None:
    """Return a threadblock that never ends, and where, as far as counters tell.

    Raises
    ------
    Unknown
        Execution would take too long.
    """
    repeated = [[_repeated(group, chunk) for group in _loops(block)] for block in program.parts]
    if sum(len(body) * turns for block in repeated for body, turns in block) > _MOST_EVENTS:
        raise Unknown
    run = _Run(program, repeated)
    return run.stuck()


def _loops(block: Sequence[Part]) -> Iterator[list[Part]]:
    for _, group in groupby(block, key=lambda part: part.loop):
        yield list(group)


def _repeated(group: list[Part], chunk: int) -> tuple[list[Part], int]:
    speaks = [part for part in group if part.action.kind == BARRIER or any(counted(part))]
    return speaks, ceil(group[0].rate * chunk) if group[0].loop >= 0 else 1


class _Run:
    """Executes counters of one launch; its order does not matter, since each has one taker."""

    def __init__(
        self, program: Resolved, blocks: Sequence[Sequence[tuple[list[Part], int]]]
    ) -> None:
        self.program = program
        self.values = list(program.start)
        self.waiting: dict[int, list[int]] = defaultdict(list)
        self.arrived: Counter[tuple[int, int]] = Counter()
        self.ready: deque[int] = deque(range(len(blocks)))
        self.at: list[Part | None] = [None] * len(blocks)
        self.codes = [self._code(number, block) for number, block in enumerate(blocks)]

    def stuck(self) -> tuple[int, Part] | None:
        while self.ready:
            number = self.ready.popleft()
            what = next(self.codes[number], None)
            if what is None:
                self.at[number] = None
            else:
                self.waiting[what].append(number)
        return next(((n, part) for n, part in enumerate(self.at) if part is not None), None)

    def _code(self, number: int, block: Sequence[tuple[list[Part], int]]) -> Iterator[int]:
        values = self.values
        for body, turns in block:
            moves = [(part, [*counted(part)]) for part in body]
            for _ in range(turns):
                for part, counters in moves:
                    self.at[number] = part
                    if not counters:
                        yield from self._meet(number, part)
                    for end, side in counters:
                        while side < 0 and values[end] < 1:
                            yield end
                        values[end] += side
                        if side > 0 and end in self.waiting:
                            self.ready.extend(self.waiting.pop(end))

    def _meet(self, number: int, part: Part) -> Iterator[int]:
        key = self.program.blocks[number][0], part.action.op.barrier_id or 0
        size = max(1, part.action.op.num_threadblocks or 1)
        self.arrived[key] += 1
        wanted = -(-self.arrived[key] // size) * size
        name = -1 - (key[0] * BARRIERS + key[1])  # beside the numbers of counters
        if self.arrived[key] == wanted:
            self.ready.extend(self.waiting.pop(name, ()))
        while self.arrived[key] < wanted:
            yield name
