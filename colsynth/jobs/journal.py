"""What was found already, kept in a file, so that interrupted work goes on."""

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
        Lines are appended as they come; None keeps nothing. A line that was cut off or
        damaged is forgotten: what it said is worked out again.

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
        """Return the value of a key, None where there is none yet."""
        return self.known.get(key)

    def keep(self, key: str, value: Any) -> None:
        """Append a value that JSON can hold."""
        if self.path is not None:
            # Not flushed to the disk: what a crash of the machine costs is worked out again.
            append(self.path, line_of(key, value))
        self.known[key] = value

    def restart(self) -> None:
        """Forget everything, in the file too."""
        self.known.clear()
        if self.path is not None and self.path.exists():
            os.truncate(self.path, 0)

    def settle(self) -> None:
        """Write the file anew, by key: equal values are then equal bytes."""
        if self.path is None:
            return
        lines = (json.dumps({"key": key, "value": self.known[key]}) for key in sorted(self.known))
        write_files({self.path: "".join(f"{line}\n" for line in lines).encode()})


def line_of(key: str, value: Any) -> bytes:
    """Return what is appended; it begins a line, so that one that was cut off spoils no other."""
    return f"\n{json.dumps({'key': key, 'value': value})}".encode()
