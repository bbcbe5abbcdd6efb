"""A log of any kind, told apart by what it holds, with what should not be fitted left out."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.logs import documents
from colsynth.logs.contradictions import contradictions
from colsynth.logs.log import TESTS, Log, Pinned, Row, Wire
from colsynth.logs.nccl_tests import Found, bare_lines, read_text
from colsynth.logs.runs import require_one_run
from colsynth.reading import FileKind, as_utf8, parse_json, read_whole
from colsynth.text import listed
from colsynth.units import plural

LOG = FileKind("log", 256 * 2**20)
"""NCCL_DEBUG=INFO of a thousand ranks takes some 100 MB."""

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PERFTEST = re.compile(r"BW average\[(MB|MiB|Gb)/sec\]")
_PLAIN = re.compile(r"\d{1,15}(\.\d{1,15})?")
_MEBI = {"MB": 2**20, "MiB": 2**20, "Gb": 1e9 / 8}
"""Bytes of perftest's units; what it calls MB is 2**20 bytes."""

_WARM = 1.5
"""How much longer than the next sizes the first ones take before they count as warm-up."""

_PLATEAU = 0.95
"""Share of the best bandwidth from which a row of ib_write_bw counts."""

_SHOWN = 4
"""Lines that a note names."""


def read_log(path: Path, pinned: Pinned | None = None) -> Log:
    """Return the measurements of a file.

    Parameters
    ----------
    path : Path
    pinned : Pinned, optional
        What is known of the run beside its log; goes before what the log says.

    Raises
    ------
    InputError
        CS620: the file is no log of a known tool, or holds no measurement; CS621: it holds the
        tables of runs that differ, or of processes that did not know each other; CS622: it does
        not say which test it is of; CS125: it is too large.
    """
    data = read_whole(path, LOG, "CS620")
    digest = hashlib.sha256(data).hexdigest()
    data = as_utf8(data)
    text = _ESCAPE.sub("", data.decode("utf-8", "replace"))
    log = Log(path.name, digest, "nccl-tests", path=str(path))
    if text.lstrip()[:1] == "{":
        found = _of_json(data, path)
        if isinstance(found, tuple):
            return replace(log, tool="nvbandwidth", wires=_wires(found, path))
        return _collected(log, found, pinned or Pinned(), path)
    if "nvbandwidth" in text[:4096] or "memcpy CE GPU(row) <- GPU(column)" in text:
        wires = tuple(documents.read_copy_text(bare_lines(text)))
        return replace(log, tool="nvbandwidth", wires=_wires(wires, path))
    if _PERFTEST.search(text) or "t_typical[usec]" in text:
        return _of_perftest(log, text, path)
    return _collected(log, read_text(text), pinned or Pinned(), path)


def _of_json(data: bytes, path: Path) -> Found | tuple[Wire, ...]:
    try:
        document = parse_json(data, dict[str, Any])
        if documents.is_nvbandwidth(document):
            return tuple(documents.read_copies(document))
        if documents.is_nccl_tests(document):
            return documents.read_report(document)
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise _unknown(path, f"as JSON it is not complete: {fault}") from None
    raise _unknown(path, "the JSON is neither of nccl-tests -J nor of nvbandwidth -j")


def _of_perftest(log: Log, text: str, path: Path) -> Log:
    """Return bandwidth or latency of NICs, as perftest prints them."""
    unit = _PERFTEST.search(text)
    rows = [
        [float(word) for word in words]
        for line in bare_lines(text)
        if len(words := line.split()) >= 4 and all(map(_PLAIN.fullmatch, words))
    ]
    rows = [row for row in rows if min(row[3], row[min(4, len(row) - 1)]) > 0]
    if not rows:
        raise _unknown(path, "its table of perftest has no row")
    if unit is None:
        least = min(rows)  # the smallest message; t_typical is the fifth column
        wire = Wire("latency", least[min(4, len(least) - 1)] / 1e6)
        return replace(log, tool="ib_send_lat", wires=(wire,))
    rates = [row[3] * _MEBI[unit[1]] for row in rows]
    best = [Wire("network", rate) for rate in rates if rate >= _PLATEAU * max(rates)]
    left = len(rates) - len(best)
    notes = (f"{plural(left, 'row')} below {_PLATEAU:.0%} of the best rate left out",)
    return replace(log, tool="ib_write_bw", wires=tuple(best), notes=notes if left else ())


def _wires(found: tuple[Wire, ...], path: Path) -> tuple[Wire, ...]:
    if not found:
        note = "it has no figures of device_to_device_memcpy_read_ce"
        raise _unknown(path, note)
    return found


def _collected(log: Log, found: Found, given: Pinned, path: Path) -> Log:
    """Return the rows of nccl-tests that may be fitted, with what is known of the run."""
    notes = [f"the run failed: {found.failure}"] if found.failure else []
    if not found.measured and not found.tables:
        told = "it has no table of nccl-tests, rccl-tests, nvbandwidth or perftest"
        raise _unknown(path, told, *notes)
    require_one_run(found, path)
    wrong = sum(item.wrong for item in found.measured)
    right = [item.row for item in found.measured if not item.wrong and item.row.size > 0]
    if wrong:
        notes.append(f"{plural(wrong, 'row')} with wrong results left out")
    if found.timeless:
        times = plural(len(found.timeless), "time")
        notes.append(f"{times} of zero, below zero or no number left out{_lines(found.timeless)}")
    if found.cut:
        notes.append(
            f"{plural(len(found.cut), 'incomplete measurement')} left out{_lines(found.cut)}"
        )
    rows, early = _cooled(_medians(right))
    if early:
        notes.append(f"{plural(early, 'size')} at the start left out as warm-up")
    if not rows:
        state = "right result" if found.measured else "row that can be read"
        raise _unknown(path, f"its table has no {state}", *notes)
    ours = found.pinned()
    known = {name: getattr(given, name) or getattr(ours, name) for name in Pinned.__slots__}
    if known["collective"] is None:
        known["collective"] = _guessed(found, path)
    devices = tuple(found.devices[rank] for rank in sorted(found.devices))
    return replace(
        log,
        pinned=Pinned(**known),
        devices=devices,
        least_ranks=found.least_ranks,
        started=found.started,
        rows=rows,
        notes=(*notes, *_jumps(rows)),
        doubts=contradictions(found, ours, given, known["collective"], str(path)),
    )


def _lines(found: list[int]) -> str:
    """Return a remark with the first of some lines; empty where they are not known."""
    lines = [str(line) for line in dict.fromkeys(found) if line]
    return f" (line {listed(lines, _SHOWN)})" if lines else ""


def _medians(rows: list[Row]) -> tuple[Row, ...]:
    """Return one row for each size, ascending: in place, out of place, and repetitions."""
    times = defaultdict(list)
    for row in rows:
        times[row.size].append(row)
    return tuple(
        Row(size, median(row.seconds for row in found), found[0].line)
        for size, found in sorted(times.items())
    )


def _cooled(rows: tuple[Row, ...]) -> tuple[tuple[Row, ...], int]:
    """Return rows without those at the start that take longer than larger messages."""
    early = 0
    while len(rows) - early > 3:
        usual = median(row.seconds for row in rows[early + 1 : early + 4])
        if rows[early].seconds <= _WARM * usual:
            break
        early += 1
    return rows[early:], early


def _jumps(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """Return a note where time changes between two sizes as no single protocol would have it."""
    found = [
        after.size
        for before, after in pairwise(rows)
        if after.seconds < 0.85 * before.seconds
        or after.seconds > 1.3 * before.seconds * max(1.0, after.size / before.size)
    ]
    if not found:
        return ()
    sizes = ", ".join(map(str, found[:4]))
    return (f"time jumps at {sizes} bytes: another protocol, algorithm or number of channels",)


def _guessed(found: Found, path: Path) -> str:
    """Return the test by the name of the file; of several tests the one named longest."""
    plain = path.name.lower().replace("-", "_")
    for name in sorted(TESTS, key=len, reverse=True):
        if name in plain or name.replace("_", "") in plain:
            return TESTS[name]
    sums = any(item.sums for item in found.measured)
    kinds = "allreduce, reduce-scatter or sendrecv" if sums else "allgather or alltoall"
    phrase = "which test the log is of is not said"
    note = f"the table alone may be of {kinds}"
    advice = f"write --log {path.name},collective=allreduce"
    raise InputError(Diagnostic("CS622", phrase, Span(str(path)), (note,), advice))


def _unknown(path: Path, *notes: str) -> InputError:
    phrase = "no measurements can be read from the file"
    advice = "give what nccl-tests, rccl-tests, nvbandwidth, ib_write_bw or ib_send_lat print"
    return InputError(Diagnostic("CS620", phrase, Span(str(path)), notes, advice))
