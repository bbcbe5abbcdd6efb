"""The tables of nccl-tests and rccl-tests, of all versions, between whatever else was printed.

Columns are found by the header line that names ``time`` and ``algbw``; where it was cut off, by
the number of fields behind the type. Bandwidths are never read: their definition has changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from colsynth.logs.log import TESTS, Device, Pinned, Row, Started, number_of

_TYPE = re.compile(r"u?int\d+|half|float|double|bfloat16|f8e\dm\d|fp8_e\dm\d|u?char|int|float\d+")
_WITHIN = re.compile(rf"\s[0-9]{{1,18}}\s+[0-9]{{1,18}}\s+(?:{_TYPE.pattern})\s")
"""The beginning of a row behind something else, such as a line of NCCL that was not ended."""
_FAILURE = re.compile(r"\bTest (?:NCCL|CUDA) failure\b.*")
_DEVICE = re.compile(
    r"\bRank\s+(\d{1,9})\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d{1,9})\s+\[[^]]*\]\s*(.*)"
)
_TEST = re.compile(r"\b([a-z_]+)_perf(?:_mpi)?\b")
_GPUS = re.compile(r"\bnThread\s+(\d{1,9})\s+nGpus\s+(\d{1,9})\b")
_SET = re.compile(r"NCCL_(ALGO|PROTO)(?: set by environment to |=)[\"']?([^\s\"']+)")
_CHANNELS = re.compile(r"\b(\d{1,9}) coll channels")
_PER_PEER = re.compile(r"\b(\d{1,9}) p2p channels per peer")
_CHANNEL = re.compile(r"NCCL INFO Channel \d+/(\d{1,9}) :(?!.*->)")
"""Not the line of a connection, ``Channel 00/0 : 7[7] -> 0[0]``, which numbers something else."""
_LAUNCHER = re.compile(r"\b(?:mpirun|mpiexec|orterun|srun)\b")
_PROCESSES = re.compile(r"\s(?:-np?|--np?|--ntasks)[ =]*(\d{1,9})(?=\s)")
_THREADS = re.compile(r"\s(?:-t|--nthreads|-g|--ngpus)[ =]*(\d{1,9})(?=\s|$)")
_NUMBER = re.compile(r"[0-9]{1,18}")
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_LABELS = (
    r"(?:\[[\w.:@,-]+\])+<\w+>:?",
    rf"\[?{_STAMP}\]?(?=\s)",
    r"(?:\[[\w./:-]+\]|\([\w.-]+\)|[\w.-]+:|[\w.-]+ +\|)(?=\s)",
)
_LABEL = re.compile(rf"^(?:\s*(?:{'|'.join(_LABELS)}))+")
"""What is put before every line: ``[1,0]<stdout>:`` by mpirun of Open MPI, ``[0]`` by that of
MPICH, ``0:`` by srun, ``node1:`` by pdsh, ``[pod/worker/main]`` by kubectl, ``worker-1 |`` by
docker, ``(node1)`` and times by others."""

_WRONG_BEFORE = 0.01
"""Old versions print the largest error of a sum instead of a count; roundoff is far below."""


class Measured(NamedTuple):
    """One half of a table's row, or of a JSON result.

    Parameters
    ----------
    row : Row
    wrong, sums : bool
        Whether the result is wrong; whether the row names a redop.
    table : int
        Line where the table begins; 0 in JSON.
    told : Pinned
        What was said of the run before the row.
    """

    row: Row
    wrong: bool
    sums: bool
    table: int = 0
    told: Pinned = Pinned()


@dataclass
class Found:
    """What a reader has seen so far."""

    measured: list[Measured] = field(default_factory=list)
    devices: dict[int, Device] = field(default_factory=dict)
    timeless: list[int] = field(default_factory=list)
    """Lines with a time that is no number above zero."""
    cut: list[int] = field(default_factory=list)
    """Lines with a row that is not complete."""
    failure: str = ""
    """What the run failed with, if it did."""
    twice: int = 0
    least_ranks: int = 1
    started: Started | None = None
    lines: dict[str, int] = field(default_factory=dict)
    """Where test, algorithm, protocol and channels were said."""
    overruled: dict[str, tuple[str | int, int]] = field(default_factory=dict)
    """What the log said of these before, and where, if it changed."""
    tables: int = 0
    table: int = 0
    """Line where the last table begins."""
    collective: str | None = None
    algorithm: str | None = None
    protocol: str | None = None
    channels: int | None = None
    per_peer: int | None = None

    def pinned(self) -> Pinned:
        """Return what was said of the run."""
        count = self.per_peer if self.collective == "sendrecv" else self.channels
        return Pinned(self.collective, self.algorithm, self.protocol, count)

    def say(self, name: str, value: str | int | None, line: int) -> None:
        """Take note of a test, an algorithm, a protocol or channels; the last counts."""
        before = getattr(self, name)
        if None not in (before, value) and before != value:
            self.overruled[name] = before, self.lines[name]
        setattr(self, name, value)
        self.lines[name] = line


def read_text(text: str) -> Found:
    """Return what the text of a run says."""
    found = Found()
    columns: tuple[str, ...] = ()
    lines = text.splitlines()
    for number, raw in enumerate(lines, 1):
        note_settings(found, raw, number)  # what looks like a label may name the test
        line = _bare(raw)
        words = line.replace("#wrong", "wrong").replace("#", " ").split()
        if "time" in words and "algbw" in words:
            columns = tuple(words)
            found.tables, found.table = found.tables + 1, number
        elif device := _DEVICE.search(line):
            rank = int(device[1])
            found.twice += rank in found.devices
            found.devices[rank] = Device(device[2], int(device[3]), device[4].strip(), number)
        elif failure := _FAILURE.search(line):
            found.failure = found.failure or f"{failure[0].strip()} (line {number})"
        elif _is_row(words):
            _begin_table(found, int(words[0]), number)
            found.measured += _halves(found, words, columns, number)
        elif columns and (_WITHIN.search(line) or (number == len(lines) and _begins_row(words))):
            found.cut.append(number)
    return found


def bare_lines(text: str) -> list[str]:
    """Return the lines of a text without what launchers put before each."""
    return [_bare(line) for line in text.splitlines()]


def _bare(line: str) -> str:
    return _LABEL.sub("", line)


def note_settings(found: Found, line: str, number: int = 0) -> None:
    """Take note of what a line says about test, ranks, algorithm, protocol and channels."""
    for test in _TEST.finditer(line):
        if test[1] in TESTS:
            found.say("collective", TESTS[test[1]], number)
            _note_ranks(found, line[: test.start()], line[test.end() :], number)
    for threads, gpus in _GPUS.findall(line):
        found.least_ranks = max(found.least_ranks, int(threads) * int(gpus))
    for what, value in _SET.findall(line):
        if what == "ALGO":
            found.say("algorithm", algorithm_of(value), number)
        else:
            found.say("protocol", protocol_of(value), number)
    for pattern in (_CHANNELS, _CHANNEL):
        if match := pattern.search(line):
            found.say("channels", int(match[1]), number)
    if match := _PER_PEER.search(line):
        found.per_peer, found.lines["channels"] = int(match[1]), number


def _note_ranks(found: Found, launcher: str, options: str, line: int) -> None:
    """Take note of the ranks that a command starts; of several programs nothing is known."""
    processes = _PROCESSES.findall(launcher)
    if _LAUNCHER.search(launcher) and len(processes) == 1:
        each = math.prod(map(int, _THREADS.findall(options)))
        found.started = Started(int(processes[0]) * each, line)


def algorithm_of(text: str) -> str | None:
    """Return the one algorithm that ``NCCL_ALGO`` allows; None for several."""
    value = text.strip().rstrip(".").lower()
    return value if re.fullmatch(r"[a-z-]+", value) else None


def protocol_of(text: str) -> str | None:
    """Return the one protocol that ``NCCL_PROTO`` allows; None for several."""
    value = text.strip().rstrip(".").lower()
    return {"simple": "Simple", "ll": "LL", "ll128": "LL128"}.get(value)


def _is_row(words: Sequence[str]) -> bool:
    return (
        len(words) > 2
        and all(_NUMBER.fullmatch(word) for word in words[:2])
        and _TYPE.fullmatch(words[2]) is not None
    )


def _begins_row(words: Sequence[str]) -> bool:
    """Whether the words of the last line may be a row that was cut off."""
    return bool(words) and all(map(str.isdigit, words[:2]))


def _begin_table(found: Found, size: int, line: int) -> None:
    """Take note of a table whose header was cut off: of sizes that do not ascend any more."""
    last = found.measured[-1] if found.measured else None
    if last is not None and last.table == found.table and size < last.row.size:
        found.table = line


def _halves(
    found: Found, words: list[str], columns: tuple[str, ...], line: int
) -> Iterator[Measured]:
    """Yield the measurements of a row, those of sums that are wrong too; take note of others."""
    size, rest = int(words[0]), words[3:]
    redop = rest.pop(0) if rest and rest[0][:1].isalpha() and rest[0] != "N/A" else "none"
    has_root = "root" in columns if columns else len(rest) in (9, 17)
    if has_root and rest:
        rest.pop(0)
    # A row without out-of-place results has half of the fields.
    named = [name for name in columns[3:] if name not in ("redop", "root")]
    width = max(len(named) // 2 if named else len(rest) // 2, 4)
    halves = [rest[begin : begin + width] for begin in range(0, min(len(rest), 2 * width), width)]
    for half in halves:
        time = number_of(half[0])
        if len(half) < 4:
            found.cut.append(line)
        elif time is not None:
            row, wrong = Row(size, time / 1e6, line), _is_wrong(half[3])
            yield Measured(row, wrong, redop != "none", found.table, found.pinned())
        elif half[0] != "N/A":
            found.timeless.append(line)
    if not halves:
        found.cut.append(line)


def _is_wrong(word: str) -> bool:
    """Whether a field counts wrong elements, or in old versions is an error beyond roundoff."""
    try:
        return not float(word) <= _WRONG_BEFORE
    except ValueError:
        return word != "N/A"
