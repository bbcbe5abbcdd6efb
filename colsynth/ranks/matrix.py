"""Latency and bandwidth between hosts, measured or of a topology."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.logs import Log
from colsynth.reading import FileKind, as_utf8, parse_json, read_whole
from colsynth.text import listed

MATRIX = FileKind("matrix", 256 * 2**20)
"""Numbers of 4,000 hosts."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAST, _MOST = 1e-9, 1e12
"""Numbers of a matrix, in us or GB/s: sums and ratios of them stay finite."""

_UNITS = {"us": ("latency", 1e-6), "GB/s": ("bandwidth", 1e9)}
_KEYS = {"latency_us": ("latency", 1e-6), "bandwidth_gb_per_s": ("bandwidth", 1e9)}


@dataclass(frozen=True)
class _Document:
    """The JSON file of a matrix."""

    hosts: list[str]
    latency_us: list[list[float | None]] | None = None
    bandwidth_gb_per_s: list[list[float | None]] | None = None


@dataclass(frozen=True)
class Network:
    """What it costs to send from one host to another.

    Parameters
    ----------
    latency : float64 (H, H)
        Seconds.
    links : int64 (H, H, L)
        Numbers of the links on the way, -1 for no more.
    share : float64 (H, H, L)
        Share of the bytes between two hosts that takes each of these links.
    capacity : float64 (K,)
        Bytes per second of each link; inf where nothing is known of it.
    """

    latency: Floats
    links: Ints
    share: Floats
    capacity: Floats

    @property
    def size(self) -> int:
        """Number of hosts."""
        return len(self.latency)

    @property
    def knows_latency(self) -> bool:
        """Whether anything is known of latencies."""
        return bool(self.latency.any())

    @property
    def knows_bandwidth(self) -> bool:
        """Whether anything is known of bandwidths."""
        return bool(np.isfinite(self.capacity).any())


def network_of(latency: Floats | None, bandwidth: Floats | None) -> Network:
    """Return a network in which each pair of hosts has a way of its own."""
    size = len(latency if latency is not None else bandwidth)  # type: ignore[arg-type]
    links = np.arange(size * size).reshape(size, size, 1)
    none = np.zeros((size, size))
    rates = np.full((size, size), math.inf) if bandwidth is None else bandwidth
    return Network(
        none if latency is None else latency, links, np.ones(links.shape), rates.reshape(-1)
    )


def read_matrices(paths: Sequence[Path], hosts: Sequence[str]) -> Network:
    """Return the network of one or two files: latencies, bandwidths, or both in one JSON file.

    A CSV file begins with its unit, ``us`` or ``GB/s``, and the names of the hosts; every further
    line has a host and what sending from it to each of the others takes. JSON has ``hosts`` and
    ``latency_us``, ``bandwidth_gb_per_s`` or both.

    Raises
    ------
    InputError
        CS634: a file is no such matrix, lacks a host, or has what another one has already.
    """
    found: dict[str, Floats] = {}
    for path in paths:
        data = as_utf8(read_whole(path, MATRIX, "CS634"))
        try:
            reader = _of_json if data.lstrip()[:1] == b"{" else _of_csv
            named, parts = reader(data, str(path))
        except (ValueError, csv.Error) as fault:
            raise _wrong(Span(str(path)), str(fault)) from None
        missing = [host for host in hosts if host not in named]
        if missing:
            raise _wrong(Span(str(path)), f"it lacks {listed(missing)}")
        order = [named.index(host) for host in hosts]
        if again := sorted(found.keys() & parts.keys()):
            raise _wrong(Span(str(path)), f"another file has the {listed(again)} already")
        found |= {what: part[np.ix_(order, order)] for what, part in parts.items()}
    return network_of(found.get("latency"), found.get("bandwidth"))


def _of_json(data: bytes, name: str) -> tuple[list[str], dict[str, Floats]]:
    """Return the hosts of a JSON file, and what it has of them."""
    document = parse_json(data, _Document)
    named = document.hosts
    read = {key: getattr(document, key) for key in _KEYS}
    rows = {
        _KEYS[key][0]: _square([(Span(name), row) for row in part], named) * _KEYS[key][1]
        for key, part in read.items()
        if part is not None
    }
    if not rows:
        raise ValueError(f"it has neither {' nor '.join(_KEYS)}")
    return named, rows


def _of_csv(data: bytes, name: str) -> tuple[list[str], dict[str, Floats]]:
    """Return the hosts of a CSV file, and what it has of them."""
    reader = csv.reader(io.StringIO(data.decode("utf-8")))
    lines = [(Span(name, reader.line_num), row) for row in reader if row]
    if not lines or lines[0][1][0].strip() not in _UNITS:
        raise ValueError(f"its first cell is not {' or '.join(_UNITS)}")
    unit, *named = (cell.strip() for cell in lines[0][1])
    for (span, row), host in zip(lines[1:], named, strict=False):
        if row[0].strip() != host:
            note = f"the row of {host} belongs here, as in the columns, not that of {row[0]!r}"
            raise _wrong(span, note)
    what, factor = _UNITS[unit]
    return named, {what: _square([(span, row[1:]) for span, row in lines[1:]], named) * factor}


def _square(rows: Sequence[tuple[Span, Sequence[Any]]], named: Sequence[str]) -> Floats:
    """Return a matrix with a free diagonal; refuse one that lacks rows or names a host twice."""
    twice = [host for host, times in Counter(named).items() if times > 1]
    if twice:
        raise ValueError(f"it names {listed(twice)} twice")
    if len(rows) != len(named):
        raise ValueError(f"{len(named)} hosts need {len(named)} rows; it has {len(rows)}")
    return np.array([_row(row, at, named, span) for at, (span, row) in enumerate(rows)])


def _row(cells: Sequence[Any], at: int, named: Sequence[str], span: Span) -> Floats:
    """Return the numbers of one host, or refuse the first cell that is none."""
    if len(cells) != len(named):
        note = f"the row of {named[at]} has {len(cells)} of {len(named)} numbers"
        raise _wrong(span, note)
    row = np.array([_number(cell) for cell in cells])
    row[at] = 1.0
    wrong = np.flatnonzero(~((row >= _LEAST) & (row <= _MOST)))
    if len(wrong):
        pair = f"from {named[at]} to {named[wrong[0]]}"
        note = f"{pair}: expected a number from {_LEAST:g} to {_MOST:g}, not {cells[wrong[0]]!r}"
        raise _wrong(span, note)
    return row


def _number(cell: Any) -> float:
    """Return what a cell says; NaN where it is no number."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def network_of_logs(logs: Sequence[Log], hosts: Sequence[str]) -> Network:
    """Return the network that sendrecv logs of pairs of hosts tell; both directions are equal.

    Raises
    ------
    InputError
        CS634: a log is of something else, or a pair of hosts has none.
    """
    size = len(hosts)
    latency, rate = np.full((size, size), np.nan), np.full((size, size), np.nan)
    for log in logs:
        ends = [device.host for device in log.devices]
        if log.pinned.collective != "sendrecv" or len(set(ends)) != 2 or len(ends) != 2:
            raise _wrong(Span(log.name), "it is no sendrecv between one GPU each of two hosts")
        if not set(ends) <= set(hosts):
            raise _wrong(Span(log.name), f"{listed(sorted(set(ends) - set(hosts)))} is not listed")
        a, b = hosts.index(ends[0]), hosts.index(ends[1])
        least, most = log.rows[0], log.rows[-1]
        latency[a, b] = latency[b, a] = least.seconds
        grown = max(most.seconds - least.seconds, 1e-9)
        rate[a, b] = rate[b, a] = max(most.size - least.size, 1) / grown
    np.fill_diagonal(latency, 1.0)
    np.fill_diagonal(rate, 1.0)
    missing = np.argwhere(np.isnan(latency))
    if len(missing):
        pair = " and ".join(hosts[i] for i in missing[0])
        raise _wrong(
            Span("--log"), f"there is no log of {pair}, nor of {len(missing) // 2 - 1} more"
        )
    return network_of(latency, rate)


def _wrong(span: Span, note: str) -> InputError:
    phrase = "no matrix between the hosts can be read"
    advice = "begin a CSV file with us,host1,host2 or GB/s,host1,host2"
    return InputError(Diagnostic("CS634", phrase, span, (note,), advice))
