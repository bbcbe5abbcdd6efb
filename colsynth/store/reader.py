"""File -> TimedSchedule; whatever is wrong with the file is said in one sentence."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Kind, Problem, TimeBound, TimedPhase, TimedSchedule, Topology
from colsynth.reading import ARRAYS, METADATA, FileKind, parse_json
from colsynth.store.columns import COLUMNS, kinds_of, name_of, phase_of
from colsynth.store.metadata import (
    FORMAT,
    VERSION,
    WITHOUT_LAG,
    Metadata,
    Version,
    above_zero,
    read_problem,
    read_topology,
)
from colsynth.units import parse_fraction

Array = np.ndarray[Any, Any]

_BLOCK = 2**24
"""Bytes that are read at once."""

_HEADER = re.compile(
    r"\{'descr': '([<|][iu][1248])', 'fortran_order': False, 'shape': \(([0-9]{1,15}),\), \} *\n"
)
"""All that numpy writes about a flat array of whole numbers; nothing of it is evaluated."""

_MAGIC = b"\x93NUMPY\x01\x00"
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,
)
"""What reading ends in where a file is not what it should be."""


def read_npz(path: Path) -> TimedSchedule:
    """Return the schedule of a file that `write_npz` wrote.

    Raises
    ------
    InputError
        CS240 when the file cannot be read, is no schedule file, or is damaged. Whether the
        schedule is right is for `colsynth.verify.timed.check_timed` to say.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path)
    except OSError as fault:
        raise _wrong(path, "cannot read the schedule file", fault.strerror or str(fault)) from None
    except MemoryError:
        raise _wrong(path, "the schedule file does not fit into memory") from None
    except _BROKEN as fault:
        note = f"{type(fault).__name__}: {' '.join(str(fault).split())}"
        raise _wrong(path, "not a schedule file, or a damaged one", note) from None


def _read(archive: zipfile.ZipFile, path: Path) -> TimedSchedule:
    text = _array(archive, "metadata", ("|u1",), METADATA).tobytes()
    known = parse_json(text, Version)
    if known.format != FORMAT:
        raise ValueError(f"format {known.format!r}")
    if known.version not in (WITHOUT_LAG, VERSION):
        phrase = f"version {known.version!r} of schedule files is not known"
        raise _wrong(path, phrase, f"this colsynth reads versions {WITHOUT_LAG} and {VERSION}")
    data = parse_json(text, Metadata)
    ends = [_array(archive, f"link_{name}", ("<i4",)) for name in ("source", "target", "kind")]
    _require_range(ends[2], len(data.topology.kinds), "kinds of links")
    for column in ends[:2]:
        _require_range(column, len(data.topology.nodes), "ends of links")
    topology = read_topology(data.topology, [column.tolist() for column in ends])
    phases = [
        _phase(archive, number, direction, topology, data.chunks, known.version)
        for number, direction in enumerate(data.phases)
    ]
    problem = read_problem(data, topology)
    _check_problem(problem)
    return TimedSchedule(
        problem=problem,
        size=data.size,
        chunks_per_gpu=data.chunks_per_gpu,
        chunks=data.chunks,
        chunk_bytes=above_zero(data.chunk_bytes),
        tick=above_zero(data.tick),
        ticks=data.ticks,
        phases=tuple(phases),
        bound=TimeBound(parse_fraction(data.bound[0]), data.bound[1]),
        claim=data.claim,
    )


def _check_problem(problem: Problem) -> None:
    """Refuse nodes and ranks that are not there."""
    topology = problem.topology
    gpus = [node for node, known in enumerate(topology.nodes) if known.kind is Kind.GPU]
    if sorted(topology.ranks) != gpus:
        raise ValueError("ranks are not the GPUs")
    named = [rank for group in problem.groups for rank in group]
    named += [rank for x in problem.demands for rank in (*x.holders, *x.wanted)]
    named += [] if problem.root is None else [problem.root]
    if any(not 0 <= rank < topology.size for rank in named):
        raise ValueError("a rank is not there")


def _phase(
    archive: zipfile.ZipFile,
    number: int,
    direction: Any,
    topology: Topology,
    chunks: int,
    version: int,
) -> TimedPhase:
    """Return a phase whose arrays fit each other, so that nobody reads beyond their ends."""
    columns = [column for column in COLUMNS if column != "lag" or version != WITHOUT_LAG]
    arrays = {
        column: _array(archive, name_of(number, column), kinds_of(column)) for column in columns
    }
    hops = len(arrays["source"])
    arrays.setdefault("lag", np.zeros(hops, np.int64))
    if not len(arrays["target"]) == len(arrays["lag"]) == hops:
        raise ValueError("hops lack their targets or lags")
    for first, inner in (("first_link", "links"), ("first", "chunk"), ("first_run", "run_start")):
        _require_rows(arrays[first], hops, len(arrays[inner]), inner)
    for one, other in (("begin", "links"), ("end", "links"), ("run_length", "run_start")):
        if len(arrays[one]) != len(arrays[other]):
            raise ValueError(f"{one} is not as long as {other}")
    _require_range(arrays["source"], topology.size, "sources")
    _require_range(arrays["target"], topology.size, "targets")
    _require_range(arrays["links"], len(topology.links), "links")
    _require_range(arrays["chunk"], chunks, "chunks")
    if np.any(np.diff(arrays["first_link"]) < 1):
        raise ValueError("a hop takes no link")
    lengths = arrays["run_length"]
    if np.any(lengths < 1) or np.any(lengths > len(arrays["chunk"])):
        raise ValueError("a run has no transfers, or too many")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if not np.array_equal(ends[arrays["first_run"]], arrays["first"]):
        raise ValueError("runs and transfers do not agree")
    return phase_of(direction, arrays)


def _array(
    archive: zipfile.ZipFile, name: str, kinds: tuple[str, ...], limit: FileKind = ARRAYS
) -> Array:
    """Return one flat array, of a type that is allowed, read in blocks."""
    entry = archive.getinfo(f"{name}.npy")
    if entry.compress_type not in _PLAIN:
        raise ValueError(f"array {name} is compressed in another way")
    with archive.open(entry) as member:
        kind, length = _header(member, name)
        if kind.str not in kinds:
            raise ValueError(f"array {name} has type {kind.str}")
        size = length * kind.itemsize
        if size > entry.file_size:
            raise ValueError(f"array {name} is shorter than it says")
        if size > limit.most:
            raise ValueError(f"array {name} has {size} bytes, the limit is {limit.most}")
        array: Array = np.empty(length, kind)
        room = array.view(np.uint8)
        while len(room):
            block = np.frombuffer(member.read(min(len(room), _BLOCK)), np.uint8)
            if not len(block):
                raise ValueError(f"array {name} is shorter than it says")
            room[: len(block)] = block
            room = room[len(block) :]
        if member.read(1):
            raise ValueError(f"array {name} is longer than it says")
    return array


def _header(member: IO[bytes], name: str) -> tuple[np.dtype[Any], int]:
    """Return the type and the length of a flat array in numpy's format, version 1.0."""
    start = member.read(len(_MAGIC) + 2)
    if not start.startswith(_MAGIC) or len(start) != len(_MAGIC) + 2:
        raise ValueError(f"array {name} is none of numpy, or of another version")
    text = member.read(int.from_bytes(start[-2:], "little"))
    found = _HEADER.fullmatch(text.decode("latin-1"))
    if found is None:
        raise ValueError(f"array {name} is no flat array of whole numbers")
    return np.dtype(found[1]), int(found[2])


def _require_rows(first: Array, rows: int, length: int, what: str) -> None:
    if len(first) != rows + 1 or first[0] != 0 or first[-1] != length or np.any(np.diff(first) < 0):
        raise ValueError(f"{what} are not those of the hops")


def _require_range(values: Array, limit: int, what: str) -> None:
    if len(values) and not 0 <= values.min() <= values.max() < limit:
        raise ValueError(f"{what} lie beyond {limit - 1}")


def _wrong(path: Path, phrase: str, *notes: str) -> InputError:
    advice = "colsynth synthesize ... --schedule FILE.npz writes one"
    return InputError(Diagnostic("CS240", phrase, Span(str(path)), notes, advice))
