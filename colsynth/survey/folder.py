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
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from colsynth import reading
from colsynth.errors import InputError
from colsynth.jobs.journal import Journal, line_of
from colsynth.survey.row import Row
from colsynth.survey.survey_case import Found
from colsynth.writing import claimed, exists, put, write_files, write_folder

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
        Of the survey; see `SurveyCase.identity`.
    force : bool
        Whether a survey of something else gives way, once there is a row to put in its place.

    Raises
    ------
    InputError
        CS207: something else stands there.
    """

    def __init__(self, path: Path | None, identity: str, force: bool = False) -> None:
        self.path, self.identity = path, identity
        if path is not None:
            refuse_to_replace(path, identity, force)
        self.journal = Journal(None if path is None else path / JOURNAL)

    @property
    def is_ours(self) -> bool:
        """Whether rows of this survey are kept already."""
        return bool(self.journal.recall(_OWNER) == self.identity)

    def recall(self, number: int, failure: str) -> Row | None:
        """Return the row of an earlier run, if its files still are what they were."""
        if not self.is_ours:
            return None
        with suppress(ValueError):
            row = Row.of_entry(self.journal.recall(_key(number)))
            is_whole = row.bound > 0 or bool(failure)  # losses are shares of the healthy bound
            if row.failure == failure and is_whole and all(self._holds(*x) for x in row.files):
                return row
        return None

    def keep(self, number: int, found: Found) -> Row:
        """Write the files of a failure, then its row; return the row with its files.

        With the first row the folder becomes that of this survey. It is found by then that its
        options are right, so a mistake costs no earlier survey and leaves nothing in the way.
        """
        if not self.is_ours:
            self._begin()
        row = found.row
        if self.path is not None and found.files:
            place = f"{SCHEDULES}/{number:03}-{_safe(row.failure or 'healthy')}"
            write_folder(self.path / place, partial(_write, found.files), replace=True)
            named = ((f"{place}/{name}", _sha256(data)) for name, data in found.files)
            row = replace(row, files=tuple(named))
        self.journal.keep(_key(number), row.entry())
        return row

    def _begin(self) -> None:
        """Remove an earlier survey of something else; its journal last, which says whose it is."""
        if self.path is not None:
            for name in (TABLE, SCHEDULES):
                _remove(self.path / name)
        self.journal.restart()
        self.journal.keep(_OWNER, self.identity)

    def publish(self, table: dict[str, Any]) -> None:
        """Write the table; the folder then is the same however often the work was ended."""
        if self.path is None:
            return
        write_files({self.path / TABLE: f"{json.dumps(table, indent=2)}\n".encode()})
        self.journal.settle()

    def _holds(self, path: str, digest: str) -> bool:
        """Whether a schedule is what it was; what lies elsewhere is none of ours."""
        if self.path is None:
            return False
        file, ours = ((self.path / x).resolve() for x in (path, SCHEDULES))
        with suppress(InputError, OSError):
            return ours in file.parents and _sha256(_read(file, reading.SCHEDULE)) == digest
        return False


def claim(path: Path | None) -> AbstractContextManager[None]:
    """Return a block during which no other process works on the survey of a folder."""
    return claimed(None if path is None else path / JOURNAL)


def refuse_to_replace(path: Path, identity: str, force: bool) -> None:
    """Refuse a place that a survey could not take (CS207).

    A survey goes on in its own folder and takes an empty one. With `force` it takes that of
    another survey.
    """
    if not path.exists() or _is_empty(path):
        return
    owner = Journal(path / JOURNAL).recall(_OWNER) if path.is_dir() else None
    if owner is None:
        raise exists(path, "it is no survey of ours; name another place")
    if owner != identity and not force:
        what = "it is a survey of something else, or of another version of colsynth"
        raise exists(path, f"{what}; --force replaces it")


def _is_empty(path: Path) -> bool:
    """Whether a folder holds nothing, or no more than the cut-off first line of a journal."""
    if not path.is_dir() or any(entry.name != JOURNAL for entry in path.iterdir()):
        return False
    journal = path / JOURNAL
    first = line_of(_OWNER, "").rstrip(b'"}')
    return not journal.exists() or _is_cut_off(_read(journal, reading.JOURNAL), first)


def _read(path: Path, kind: reading.FileKind) -> bytes:
    """Return a file of ours; opening a pipe in its place would wait for ever."""
    return reading.read_whole(path, replace(kind, streams=False), "CS215")


def _is_cut_off(text: bytes, start: bytes) -> bool:
    """Whether a text begins as a line with this start and never ends it."""
    begun = text.startswith(start) or start.startswith(text)
    return begun and not text.endswith(b"}")


def _write(files: tuple[tuple[str, bytes], ...], folder: Path) -> None:
    for name, data in files:
        put(folder / name, data)


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
