"""Where a survey is kept: schedules, the journal of what is done, and the table.

::

    DIR/survey.json          the table, when all is done
    DIR/journal.jsonl        a line for every failure that is done
    DIR/schedules/007-NAME/  the files for one failure, and nothing else

Every failure has a folder of its own, since runtimes that search a directory read every file
of it (contract 1.2). A journal's line is written after its files and holds their checksums, so
what was cut off by a kill is not taken for done.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from colsynth.errors import Diagnostic, InputError
from colsynth.jobs.journal import Journal
from colsynth.survey.case import Found
from colsynth.survey.row import Row

TABLE, JOURNAL, SCHEDULES = "survey.json", "journal.jsonl", "schedules"

_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST = 60
"""Letters of a failure's name that its folder keeps."""

_OWNER = "of"
"""Key of the journal's line that says which survey it is of; the first by name."""


class Folder:
    """The rows of one survey, in memory and, where there is a path, on disk.

    Parameters
    ----------
    path : Path or None
        A folder of an earlier run of the same survey, an empty one, or a new one.
    identity : str
        Of the survey; see `Case.identity`.
    force : bool
        Whether a survey of something else gives way.

    Raises
    ------
    InputError
        CS207: something else stands there.
    """

    def __init__(self, path: Path | None, identity: str, force: bool = False) -> None:
        self.path = path
        if path is not None:
            _make_room(path, identity, force)
        self.journal = Journal(None if path is None else path / JOURNAL)
        if self.journal.recall(_OWNER) is None:
            self.journal.keep(_OWNER, identity)

    def recall(self, number: int, failure: str) -> Row | None:
        """Return the row of an earlier run, if its files still are what they were."""
        with suppress(KeyError, TypeError, ValueError):
            row = Row.of_entry(self.journal.recall(_key(number)))
            if row.failure == failure and all(self._holds(*file) for file in row.files):
                return row
        return None

    def keep(self, number: int, found: Found) -> Row:
        """Write the files of a failure, then its row; return the row with its files."""
        row = found.row
        if self.path is not None and found.files:
            place = f"{SCHEDULES}/{number:03}-{_safe(row.failure or 'healthy')}"
            shutil.rmtree(self.path / place, ignore_errors=True)
            (self.path / place).mkdir(parents=True)
            for name, data in found.files:
                (self.path / place / name).write_bytes(data)
            named = ((f"{place}/{name}", _sha256(data)) for name, data in found.files)
            row = replace(row, files=tuple(named))
        self.journal.keep(_key(number), row.entry())
        return row

    def publish(self, table: dict[str, Any]) -> None:
        """Write the table; the folder then is the same however often the work was ended."""
        if self.path is None:
            return
        draft = self.path / f".{TABLE}.tmp"
        draft.write_text(f"{json.dumps(table, indent=2)}\n", encoding="utf-8")
        draft.replace(self.path / TABLE)
        self.journal.settle()

    def _holds(self, path: str, digest: str) -> bool:
        if self.path is None:
            return False
        with suppress(OSError):
            return _sha256((self.path / path).read_bytes()) == digest
        return False


def _make_room(path: Path, identity: str, force: bool) -> None:
    """See that a folder is empty or of this survey; refuse what is neither (CS207)."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    owner = Journal(path / JOURNAL).recall(_OWNER) if path.is_dir() else None
    if owner == identity:
        return
    if owner is None:
        advice = "it is no survey of ours; name another place"
    else:
        advice = "it is a survey of something else; --force replaces it"
    if owner is None or not force:
        raise InputError(Diagnostic("CS207", f"{path} exists", help=advice))
    for name in (TABLE, SCHEDULES, JOURNAL):
        _remove(path / name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _key(number: int) -> str:
    return f"row {number:06}"


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", name)[:_LONGEST].strip("-.")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
