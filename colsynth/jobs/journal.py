"""What was found already, kept in a file, so that interrupted work goes on."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any


class Journal:
    """Plain values by key; one line of JSON each.

    Parameters
    ----------
    path : Path or None
        Lines are appended as they come; None keeps nothing. A last line that was cut off
        is forgotten.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        for line in self._lines():
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                self.known[entry["key"]] = entry["value"]

    def _lines(self) -> list[str]:
        if self.path is None or not self.path.exists():
            return []
        return self.path.read_text("utf-8", errors="replace").splitlines()

    def recall(self, key: str) -> Any:
        """Return the value of a key, None where there is none yet."""
        return self.known.get(key)

    def keep(self, key: str, value: Any) -> None:
        """Append a value that JSON can hold."""
        self.known[key] = value
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            # Begins a line of its own, so that a line that was cut off spoils no other.
            stream.write(f"\n{json.dumps({'key': key, 'value': value})}")

    def settle(self) -> None:
        """Write the file anew, by key: equal values are then equal bytes."""
        if self.path is None:
            return
        lines = (json.dumps({"key": key, "value": self.known[key]}) for key in sorted(self.known))
        draft = self.path.with_name(f"{self.path.name}.tmp")
        draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        draft.replace(self.path)
