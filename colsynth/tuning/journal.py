"""What was measured already, kept in a file, so that an interrupted search goes on."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from colsynth.tuning.candidates import Candidate
from colsynth.tuning.evaluate import Case, Measured

_Entry = tuple[tuple[float | None, ...], str | None, tuple[bool, ...]]
"""What `Measured` holds beside its candidate."""


class Journal:
    """Measurements by the hash of all they depend on; one line of JSON each.

    Parameters
    ----------
    path : Path or None
        Lines are appended as they come; None keeps nothing. A last line that was cut off
        is forgotten.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.known: dict[str, _Entry] = {}
        for line in self._lines():
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                rows = tuple(entry["seconds"]), entry["refusal"], tuple(entry["usable"])
                self.known[entry["key"]] = rows

    def _lines(self) -> list[str]:
        if self.path is None or not self.path.exists():
            return []
        return self.path.read_text("utf-8").splitlines()

    def recall(self, case: Case, candidate: Candidate) -> Measured | None:
        """Return the measurement of a candidate, None where there is none yet."""
        found = self.known.get(case.key(candidate))
        return None if found is None else Measured(candidate, *found)

    def keep(self, case: Case, measured: Measured) -> None:
        """Append a measurement."""
        key = case.key(measured.candidate)
        self.known[key] = (measured.seconds, measured.refusal, measured.usable)
        if self.path is None:
            return
        entry = {
            "key": key,
            "seconds": measured.seconds,
            "refusal": measured.refusal,
            "usable": measured.usable,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            # Begins a line of its own, so that a line that was cut off spoils no other.
            stream.write(f"\n{json.dumps(entry)}")
