"""The journal: results kept in a file, so that interrupted work can continue."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from colsynth.reading import JOURNAL, parse_json, read_whole
from colsynth.writing import append, write_files


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the file."""

    key: str
    value: Any


class Journal:
    """Plain values by key; one line of JSON each.

    Parameters
    ----------
    path : Path or None
        Results are appended as they come; None writes no file. A truncated or damaged line is
        ignored, and its work is done again.

    Raises
    ------
    InputError
        CS125 when the file is too large, CS215 when it cannot be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        for line in self._lines():
            with suppress(ValueError):
                entry = parse_json(line, _Line)
                self.known[entry.key] = entry.value

    def _lines(self) -> Iterator[bytes]:
        if self.path is not None and self.path.exists():
            yield from BytesIO(read_whole(self.path, JOURNAL, "CS215"))

    def recall(self, key: str) -> Any:
        """Return the value of a key; None if there is none yet."""
        return self.known.get(key)

    def keep(self, key: str, value: Any) -> None:
        """Append a value that JSON can hold."""
        if self.path is not None:
            # Not flushed to the disk: work that a crash of the machine loses is done again.
            append(self.path, line_of(key, value))
        self.known[key] = value

    def restart(self) -> None:
        """Delete all values, in the file too."""
        self.known.clear()
        if self.path is not None and self.path.exists():
            os.truncate(self.path, 0)

    def settle(self) -> None:
        """Rewrite the file, sorted by key, so that equal values give equal bytes."""
        if self.path is None:
            return
        lines = (json.dumps({"key": key, "value": self.known[key]}) for key in sorted(self.known))
        write_files({self.path: "".join(f"{line}\n" for line in lines).encode()})


def line_of(key: str, value: Any) -> bytes:
    """Return a line to append. It starts with a newline, in case the line before was truncated."""
    return f"\n{json.dumps({'key': key, 'value': value})}".encode()
