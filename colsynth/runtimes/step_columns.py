"""The steps of a schedule file, gathered in columns while it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from colsynth.model import StepTable
from colsynth.model.step_table import BUFFERS, COLUMNS, NONE, OPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

KEYS = ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")
"""Attributes of a step, in the order in which files usually give them."""
_NAMES = {"type": OPS, "srcbuf": BUFFERS, "dstbuf": BUFFERS}
_PIECES = (f'<step {KEYS[0]}="', *(f'" {key}="' for key in KEYS[1:]), '"/>')
_S, _DEPID, _DEPS, _HASDEP = map(KEYS.index, ("s", "depid", "deps", "hasdep"))


class SpeltStep(NamedTuple):
    """A step as a file spells it; without a dependency, `depid` and `deps` are -1."""

    op: str
    srcbuf: str
    srcoff: int
    dstbuf: str
    dstoff: int
    cnt: int
    depid: int
    deps: int
    hasdep: int


class StepColumns:
    """Reads steps that are spelt as usual by the thousand, and takes others one by one.

    Parameters
    ----------
    data : bytes
        The whole file.
    """

    def __init__(self, data: bytes) -> None:
        import numpy as np

        self._data = np.frombuffer(data, np.uint8)
        self._words = {word: code for code, word in enumerate(OPS)}
        self._buffers = {letter: code for code, letter in enumerate(BUFFERS)}
        room = data.count(b"<step ") + 1
        self._values = np.zeros((len(KEYS), room), np.int64)
        self._places = np.zeros((2, room), np.int64)
        self._length = 0
        names = [_NAMES.get(key, ()) for key in KEYS]
        last = np.cumsum([len(found) for found in names])
        choices = np.stack([last - [len(found) for found in names], last], axis=1)
        self._form = *joined(_PIECES), *joined([name for found in names for name in found])
        self._choices = choices

    def __len__(self) -> int:
        return self._length

    def scan(self, position: int, line: int) -> int:
        """Read steps from a character on, whose line is given; return the one behind the last."""
        from colsynth.kernels.records import scan

        found = scan(
            self._data, position, line, *self._form, self._choices,
            self._values, self._places, self._length,
        )  # fmt: skip
        position, _, self._length = map(int, found)
        return position

    def odd(self, first: int, begin: int) -> list[int]:
        """Return which steps from `begin` on say what a file should not.

        `first` is the first step of their threadblock.
        """
        import numpy as np

        values = self._values[:, begin : self._length]
        odd = values[_S] != np.arange(begin - first, self._length - first)
        odd |= (values[_HASDEP] != 0) & (values[_HASDEP] != 1)
        odd |= (values[_DEPID] < 0) & ((values[_DEPID] != -1) | (values[_DEPS] != -1))
        return (begin + np.flatnonzero(odd)).tolist()

    def place(self, row: int) -> int:
        """Return the first character of a step that was scanned."""
        return int(self._places[0, row])

    def add(self, step: SpeltStep, line: int) -> None:
        """Add a step."""
        import numpy as np

        if self._length == self._values.shape[1]:
            self._values = np.concatenate([self._values] * 2, axis=1)
            self._places = np.concatenate([self._places] * 2, axis=1)
        self._places[1, self._length] = line
        self._length += 1
        self.put(self._length - 1, step)

    def put(self, row: int, step: SpeltStep) -> None:
        """Replace a step."""
        op, srcbuf, srcoff, dstbuf, dstoff, *rest = step
        codes = self._words, self._buffers, self._buffers
        named = zip(codes, (op, srcbuf, dstbuf), strict=True)
        kind, source, target = (known.setdefault(name, len(known)) for known, name in named)
        self._values[:, row] = 0, kind, source, srcoff, target, dstoff, *rest

    def lines(self, first: int) -> Ints:
        """Return the lines of the steps from `first` on."""
        return self._places[1, first : self._length]

    def table(self) -> StepTable:
        """Return all steps."""
        import numpy as np

        values = self._values[:, : self._length]
        numbers = np.full((COLUMNS, self._length), NONE)
        numbers[: _DEPID - 1] = values[1:_DEPID]
        numbers[_DEPID - 1] = values[_HASDEP]
        waits = values[_DEPID] >= 0
        return StepTable(
            numbers,
            np.concatenate([[0], np.cumsum(waits)]),
            values[_DEPID, waits],
            values[_DEPS, waits],
            words=tuple(self._words),
            buffers=tuple(self._buffers),
        )


def joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], Ints]:
    """Return texts as `colsynth.kernels.records` takes them: bytes, and where each begins and ends.

    Each ends where the next one begins; they are ASCII.
    """
    import numpy as np

    ends = np.cumsum([0, *map(len, texts)])
    return np.frombuffer("".join(texts).encode("ascii"), np.uint8).copy(), ends
