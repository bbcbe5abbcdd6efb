"""Whole files, read up to a limit: the only place that says how large a file of each kind may be.

A path may name a pipe, a device that never ends, or a file that was chosen by mistake. So no
reader takes more than one byte beyond its limit, and each limit is far above what colsynth writes.
"""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from colsynth.errors import Diagnostic, InputError, Span

Form = TypeVar("Form")

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a reader expects.

    Parameters
    ----------
    name : str
        For messages, such as ``"schedule file"``.
    most : int
        Bytes of the largest file that is read.
    streams : bool
        Whether pipes and devices serve as well as files do.
    """

    name: str
    most: int
    streams: bool = True


SCHEDULE = FileKind("schedule file", 512 * _MIB)
"""An allgather of 1024 GPUs, the most that runtimes parse, takes some 150 MB."""

DESCRIPTION = FileKind("YAML file", 32 * _MIB)
"""A topology with a quarter of a million links, each in a line of its own."""

MACHINE = FileKind("file of a machine or a fabric", 16 * _MIB)
"""What ibnetdiscover prints on 10,000 hosts takes half of it."""

JOURNAL = FileKind("journal", 128 * _MIB, streams=False)
"""100,000 rows of a survey; a row takes about a kilobyte."""

METADATA = FileKind("metadata of a schedule", 256 * _MIB, streams=False)
"""The names of a million GPUs, and groups that list them all, take a tenth of it."""

ARRAYS = FileKind("array of a schedule", 2**36, streams=False)
"""Transfers of 40,000 GPUs among each other take 7 GB."""

MANIFEST = FileKind("manifest", 16 * _MIB, streams=False)
"""10,000 files of a bundle; a runtime loads 64 at most."""


def read_whole(path: Path, kind: FileKind, code: str, advice: str | None = None) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    path : Path
    kind : Kind
    code : str
        Of the diagnostic where the system refuses.
    advice : str, optional
        What to do then.

    Raises
    ------
    InputError
        With `code` when the system refuses; CS125 when the file is too large.
    """
    try:
        if not kind.streams and path.exists() and not path.is_file():
            raise OSError("it is no file")  # opening a pipe would wait for its other end
        with path.open("rb") as stream:
            return read_stream(stream, kind, str(path))
    except OSError as fault:
        phrase = f"cannot read the {kind.name}: {fault.strerror or fault}"
        raise InputError(Diagnostic(code, phrase, Span(str(path)), help=advice)) from fault


def read_stream(stream: BinaryIO, kind: FileKind, name: str) -> bytes:
    """Return the bytes of an open stream; `name` is what diagnostics call it.

    Raises
    ------
    InputError
        CS125 when it holds too many.
    """
    size = _size(stream)
    data = b"" if size > kind.most else stream.read(kind.most + 1)
    if size <= kind.most and len(data) <= kind.most:
        return data
    phrase = f"the {kind.name} is too large"
    found = f"it has {size} bytes" if size > kind.most else "it goes on beyond them"
    note = f"the limit is {kind.most} bytes ({kind.most // _MIB} MiB); {found}"
    advice = f"check that this is a {kind.name}"
    raise InputError(Diagnostic("CS125", phrase, Span(name), (note,), advice))


def as_utf8(data: bytes) -> bytes:
    """Return a text as UTF-8 without a mark in front; shells of Windows write UTF-16 and marks."""
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def _size(stream: BinaryIO) -> int:
    """Return the size of a file, 0 where it is a stream or not known."""
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def parse_json(data: bytes, form: type[Form]) -> Form:
    """Return what a JSON text says, in a form: a type of plain values, a Struct or a dataclass.

    Raises
    ------
    ValueError
        It is no JSON, nested beyond all measure, or of another form.
    """
    import msgspec

    try:
        return msgspec.json.decode(data, type=form)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def in_form(value: Any, form: type[Form]) -> Form:
    """Return plain values in a form, as `parse_json` does; raise ValueError where they are not."""
    import msgspec

    return msgspec.convert(value, form)
