"""TimedSchedule -> file; the layout is described in :mod:`colsynth.store`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib.format import write_array

from colsynth.model import TimedSchedule
from colsynth.store.columns import columns_of, name_of
from colsynth.store.metadata import describe, link_columns
from colsynth.writing import write_files

Progress = Callable[[str, int, int], None]

_LEVEL = 1
"""Of compression: higher levels take many times as long for a few per cent."""


def write_npz(
    schedule: TimedSchedule,
    path: Path,
    progress: Progress | None = None,
    *,
    replace: bool = True,
) -> None:
    """Write a schedule as a whole or not at all; equal schedules give equal bytes.

    Parameters
    ----------
    schedule : TimedSchedule
    path : Path
    progress : callable, optional
        Told (what, bytes done, bytes in all).
    replace : bool
        Whether a file gives way.

    Raises
    ------
    InputError
        CS207 where a file shall not give way; CS208 when the system refuses.

    Notes
    -----
    Arrays are compressed in blocks; none is copied as a whole.
    """
    write_files({path: lambda stream: _write(schedule, stream, progress)}, replace=replace)


def _write(schedule: TimedSchedule, stream: BinaryIO, progress: Progress | None) -> None:
    members = dict(_members(schedule))
    told = _Told(progress, sum(array.nbytes for array in members.values()))
    # Members opened by name alone carry no time, so that equal schedules are equal bytes.
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, array in members.items():
            told.tell()
            with archive.open(f"{name}.npy", "w", force_zip64=True) as told.member:
                write_array(told, array, allow_pickle=False)


class _Told:
    """A member of the archive that tells how much has been written to all of them.

    Parameters
    ----------
    progress : callable or None
    total : int
        Bytes of all arrays.
    """

    member: IO[bytes]

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def write(self, data: bytes) -> int:
        """Write a block; headers of arrays are not counted."""
        written = self.member.write(data)
        self.done = min(self.done + written, self.total)
        self.tell()
        return written

    def tell(self) -> None:
        """Tell how far the writing is."""
        if self.progress is not None:
            self.progress("writing the schedule, bytes", self.done, self.total)


def _members(schedule: TimedSchedule) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield name and array of every member, in the order of the file."""
    text = json.dumps(describe(schedule), ensure_ascii=False, separators=(",", ":"))
    yield "metadata", np.frombuffer(text.encode(), np.uint8)
    for name, column in link_columns(schedule.problem.topology).items():
        yield name, np.array(column, "<i4")
    for number, phase in enumerate(schedule.phases):
        for column_name, array in columns_of(phase).items():
            yield name_of(number, column_name), np.ascontiguousarray(_little(array))


def _little(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array with the byte order of the format; itself on most machines."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
