"""The schedules that a job has: verified when they are read, found by what a call asks for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from colsynth import reading
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective, RoundProgram
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.environment import BUNDLE
from colsynth.runtimes.rounds import parse_rounds
from colsynth.verify import verify_bytes

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Scheduled:
    """A verified program and the name of its file."""

    name: str
    program: RoundProgram

    def serves(self, size: int, elements: int) -> bool:
        """Whether a call uses the file: by bytes and divisibility.

        The mode does not count, since some ranks may call in place and others not.

        Parameters
        ----------
        size, elements : int
            Of the whole message, as nccl-tests counts it.
        """
        header = self.program.header
        inside = header.min_bytes <= size and (header.max_bytes is None or size <= header.max_bytes)
        return inside and elements > 0 and elements % header.chunks == 0


@dataclass(frozen=True)
class Shelf:
    """All schedules for groups of one size, by collective and root.

    Parameters
    ----------
    files : dict
        Lists of `Scheduled` by (collective, root), in the order of `COLSYNTH_BUNDLE`.
    digest : str
        Checksum of all files, equal where the schedules are.
    """

    files: dict[tuple[Collective, int | None], list[Scheduled]]
    digest: str

    def find(
        self, collective: Collective, root: int | None, size: int, elements: int
    ) -> Scheduled | None:
        """Return the first file that serves a call; None leaves it to the library."""
        files = self.files.get((collective, root), ())
        return next((file for file in files if file.serves(size, elements)), None)


def read_shelf(places: str | None, ranks: int) -> Shelf:
    """Return the schedules for a number of ranks.

    Parameters
    ----------
    places : str or None
        Bundles and schedule files, separated as in ``PATH``; None: those of ``COLSYNTH_BUNDLE``.
    ranks : int
        Schedules for other numbers of ranks are left out.

    Raises
    ------
    InputError
        CS506: nothing is named, or a file is missing, damaged or wrong.
    """
    text = os.environ.get(BUNDLE) if places is None else places
    if not text:
        advice = f"export {BUNDLE}=DIR, a bundle of 'colsynth tune -r torch -o DIR'"
        raise InputError(Diagnostic("CS506", f"{BUNDLE} is not set", help=advice))
    found: dict[tuple[Collective, int | None], list[Scheduled]] = {}
    digest = hashlib.sha256()
    for place in text.split(os.pathsep):
        for name, data in _files(Path(place)):
            program = _checked(name, data)
            digest.update(data)
            header = program.header
            if header.ranks == ranks:
                found.setdefault((header.collective, header.root), []).append(
                    Scheduled(name, program)
                )
    return Shelf(found, digest.hexdigest())


def _files(place: Path) -> Iterator[tuple[str, bytes]]:
    """Yield names and bytes of the files of a bundle, with their checksums tested; or of a file."""
    if not (place / _MANIFEST).is_file():
        yield str(place), reading.read_whole(place, reading.SCHEDULE, "CS506")
        return
    text = reading.read_whole(place / _MANIFEST, reading.MANIFEST, "CS506")
    try:
        manifest = reading.parse_json(text, dict[str, Any])
        entries = [(entry["path"], entry["sha256"]) for entry in manifest["files"]]
    except (ValueError, LookupError, TypeError) as fault:
        raise _unfit(str(place / _MANIFEST), "it is no manifest of a bundle") from fault
    for name, checksum in entries:
        data = reading.read_whole(place / name, reading.SCHEDULE, "CS506")
        if hashlib.sha256(data).hexdigest() != checksum:
            raise _unfit(str(place / name), "its checksum is not that of the manifest")
        yield str(place / name), data


def _checked(name: str, data: bytes) -> RoundProgram:
    """Return the program of a file that passes verification."""
    report = verify_bytes(data, profile("torch"), subject=name)
    if not report.ok:
        first = report.errors[0]
        raise _unfit(name, f"{first.rule}: {first.message}")
    return parse_rounds(data)


def _unfit(name: str, reason: str) -> InputError:
    advice = "make it again with 'colsynth tune -r torch', and copy it whole to every host"
    phrase = f"{name} cannot be used"
    return InputError(Diagnostic("CS506", phrase, notes=(reason,), help=advice))
