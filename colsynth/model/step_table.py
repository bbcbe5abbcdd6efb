"""The steps of a program as columns of numbers, and single steps where somebody asks for one.

A large program has a hundred thousand steps. Lowering makes their columns from its arrays, writers
spell columns, and readers, the verifier and the simulator take them as they are.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, overload

from colsynth.model.chunks import Origin, Slot
from colsynth.model.problem import Direction
from colsynth.model.step import MULTICASTS, Step, Wait

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

OPS = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop", *sorted(MULTICASTS))
"""Operations that every table has codes for: a code is a place in this tuple."""
BUFFERS = ("i", "o", "s")
NONE = -1
"""Code of the buffer of an operand that is not there, and of the origin of what has none."""

OP, SOURCE_BUFFER, SOURCE, TARGET_BUFFER, TARGET, COUNT, SIGNALS, PHASE = range(8)
COLUMNS = PHASE + len(Origin._fields)
"""Rows of `StepTable.numbers`; the last are those of the origin."""
_DIRECTIONS = tuple(Direction)
_NO_ORIGIN = (NONE,) * len(Origin._fields)

Folds = Mapping[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, eq=False)
class StepTable:
    """Steps, one column of `numbers` each.

    Parameters
    ----------
    numbers : int64 (COLUMNS, N)
        Code of the operation; code of the buffer (or `NONE`) and offset of the source; the same
        of the target; chunks; 1 where completion is published, else 0; fields of the origin.
    wait_first : int64 (N + 1,)
        Where the waits of each step begin.
    wait_block, wait_step : int64 (W,)
        Threadblock of the same GPU, and place in it, that each wait is for.
    folds : mapping
        `Step.folds` of the steps that have any.
    words, buffers : tuple of str
        What codes stand for: `OPS` and `BUFFERS`, then whatever else a file says.
    """

    numbers: Ints
    wait_first: Ints
    wait_block: Ints
    wait_step: Ints
    folds: Folds = field(default_factory=dict)
    words: tuple[str, ...] = OPS
    buffers: tuple[str, ...] = BUFFERS

    def __len__(self) -> int:
        return int(self.numbers.shape[1])

    @staticmethod
    def of(steps: Sequence[Step]) -> StepTable:
        """Return the columns of steps."""
        import numpy as np

        words = {word: code for code, word in enumerate(OPS)}
        buffers = {letter: code for code, letter in enumerate(BUFFERS)}
        rows = [
            (
                words.setdefault(step.op, len(words)),
                *_operand(step.source, buffers),
                *_operand(step.target, buffers),
                step.count,
                step.signals,
                *_numbers(step.origin),
            )
            for step in steps
        ]
        waits = [wait for step in steps for wait in step.waits]
        first = np.cumsum([0, *(len(step.waits) for step in steps)], dtype=np.int64)
        pairs = np.array(waits, dtype=np.int64).reshape(-1, 2)
        return StepTable(
            np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, COLUMNS).T),
            first,
            pairs[:, 0].copy(),
            pairs[:, 1].copy(),
            {row: step.folds for row, step in enumerate(steps) if step.folds},
            tuple(words),
            tuple(buffers),
        )

    @property
    def op(self) -> Ints:
        """Code of each operation."""
        return self._row(OP)

    @property
    def source(self) -> Ints:
        """Buffer and offset of each source, int64 (2, N)."""
        return self.numbers[SOURCE_BUFFER : SOURCE + 1]

    @property
    def target(self) -> Ints:
        """Buffer and offset of each target, int64 (2, N)."""
        return self.numbers[TARGET_BUFFER : TARGET + 1]

    @property
    def count(self) -> Ints:
        """Chunks of each step."""
        return self._row(COUNT)

    @property
    def signals(self) -> Ints:
        """1 for each step that publishes its completion, else 0."""
        return self._row(SIGNALS)

    def _row(self, row: int) -> Ints:
        found: Ints = self.numbers[row]
        return found

    @property
    def waits(self) -> Ints:
        """Number of waits of each step."""
        import numpy as np

        found: Ints = np.diff(self.wait_first)
        return found

    def has(self, word: str) -> bool:
        """Whether any step is of a type."""
        return word in self.words and bool((self.op == self.words.index(word)).any())

    def used(self) -> list[str]:
        """Return the types of all steps, without repetition."""
        import numpy as np

        return [self.words[code] for code in np.unique(self.op).tolist()]

    def among(self, words: Container[str]) -> NDArray[np.bool_]:
        """Return which steps are of some types."""
        import numpy as np

        return np.array([word in words for word in self.words], np.bool_)[self.op]

    def parts(self, lengths: Iterable[int]) -> Iterator[Rows]:
        """Yield the steps of threadblocks, given how many each has."""
        for first, last in pairwise(accumulate(lengths, initial=0)):
            yield Rows(self, first, last)

    def take(self, rows: Ints) -> StepTable:
        """Return the table of some steps."""
        import numpy as np

        many = self.waits[rows]
        first = np.concatenate([[0], np.cumsum(many)])
        shift = np.repeat(self.wait_first[rows] - first[:-1], many)
        kept = np.arange(first[-1]) + shift
        folds = {n: self.folds[row] for n, row in enumerate(rows.tolist()) if row in self.folds}
        lists = self.numbers[:, rows], first, self.wait_block[kept], self.wait_step[kept]
        return StepTable(*lists, folds if self.folds else {}, self.words, self.buffers)

    def same(self, other: StepTable) -> bool:
        """Whether another table has the same steps."""
        import numpy as np

        if (self.words, self.buffers, self.folds) != (other.words, other.buffers, other.folds):
            return self.steps(0, len(self)) == other.steps(0, len(other))
        names = ("numbers", "wait_first", "wait_block", "wait_step")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def steps(self, first: int, last: int) -> tuple[Step, ...]:
        """Return steps one by one."""
        ends = self.wait_first[first : last + 1].tolist()
        pairs = zip(
            self.wait_block[ends[0] : ends[-1]].tolist(),
            self.wait_step[ends[0] : ends[-1]].tolist(),
            strict=True,
        )
        waits = [Wait(*pair) for pair in pairs]
        rows = zip(*self.numbers[:, first:last].tolist(), strict=True)
        return tuple(
            Step(
                self.words[op],
                self._slot(source_buffer, source),
                self._slot(target_buffer, target),
                count,
                tuple(waits[a - ends[0] : b - ends[0]]),
                bool(signals),
                _origin(origin),
                self.folds.get(row, ()),
            )
            for row, (
                (op, source_buffer, source, target_buffer, target, count, signals, *origin),
                (a, b),
            ) in enumerate(zip(rows, pairwise(ends), strict=True), first)
        )

    def _slot(self, buffer: int, offset: int) -> Slot | None:
        return None if buffer == NONE else Slot(self.buffers[buffer], offset)


def _operand(slot: Slot | None, buffers: dict[str, int]) -> tuple[int, int]:
    if slot is None:
        return NONE, NONE
    return buffers.setdefault(slot.buffer, len(buffers)), slot.offset


def _numbers(origin: Origin | None) -> tuple[int, ...]:
    if origin is None:
        return _NO_ORIGIN
    phase, direction, *rest = origin
    return (phase, _DIRECTIONS.index(direction), *rest)


def _origin(numbers: list[int]) -> Origin | None:
    phase, direction, *rest = numbers
    return None if direction == NONE else Origin(phase, _DIRECTIONS[direction], *rest)


class Rows(Sequence[Step]):
    """Adjacent steps of a table, such as those of a threadblock.

    Parameters
    ----------
    table : StepTable
    first, last : int
        The first of them, and the one behind the last.
    """

    __slots__ = ("_made", "first", "last", "table")

    def __init__(self, table: StepTable, first: int, last: int) -> None:
        self.table, self.first, self.last = table, first, last
        self._made: tuple[Step, ...] | None = None

    def __reduce__(self) -> tuple[type[Rows], tuple[StepTable, int, int]]:
        return Rows, (self.table, self.first, self.last)

    def __len__(self) -> int:
        return self.last - self.first

    def _steps(self) -> tuple[Step, ...]:
        if self._made is None:
            self._made = self.table.steps(self.first, self.last)
        return self._made

    @overload
    def __getitem__(self, place: int) -> Step: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        return self._steps()[place]

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps())

    def __repr__(self) -> str:
        return repr(self._steps())

    def __hash__(self) -> int:
        return hash(self._steps())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return len(self) == len(other) and self._equals(other)
        return isinstance(other, tuple) and self._steps() == other

    def _equals(self, other: Rows) -> bool:
        mine, theirs = self.table, other.table
        if mine is theirs and self.first == other.first:
            return True
        if mine.folds or theirs.folds or mine.words != theirs.words:
            return self._steps() == other._steps()
        if mine.buffers != theirs.buffers:
            return self._steps() == other._steps()
        return all((a == b).all() for a, b in zip(self._key(), other._key(), strict=True))

    def _key(self) -> Iterator[Any]:
        table = self.table
        yield table.numbers[:, self.first : self.last]
        ends = table.wait_first[self.first : self.last + 1]
        yield ends - ends[0]
        for column in (table.wait_block, table.wait_step):
            yield column[ends[0] : ends[-1]]


def table_of(several: Sequence[Sequence[Step]]) -> StepTable:
    """Return the table of steps of threadblocks, one after the other."""
    import numpy as np

    rows = [steps for steps in several if isinstance(steps, Rows) and steps]
    if len(rows) < sum(1 for steps in several if steps) or not rows:
        return StepTable.of(list(chain.from_iterable(several)))
    table = rows[0].table
    if any(part.table is not table for part in rows):
        return StepTable.of(list(chain.from_iterable(several)))
    adjacent = all(one.last == other.first for one, other in pairwise(rows))
    if adjacent and rows[0].first == 0 and rows[-1].last == len(table):
        return table
    return table.take(np.concatenate([np.arange(part.first, part.last) for part in rows]))
