"""The environment variables that make a job use schedule files.

A runtime that is handed a bad set of files rarely says so: it drops a file on one rank
and hangs, or reads a README and forgets all schedules (contract 1.1, 1.2). So every file
the runtime would find is read first, and a set that cannot work is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Header, Severity
from colsynth.runtimes.files import read_file
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.schedules import read
from colsynth.text import listed

BUNDLE = "COLSYNTH_BUNDLE"
"""Where `colsynth.torch` finds bundles and files, separated by colons."""
_ALL_PROTOCOLS = "LL,LL128,Simple"


@dataclass(frozen=True)
class _Schedule:
    path: Path
    header: Header


def variables(paths: Sequence[Path], profile: Profile) -> tuple[tuple[str, str], ...]:
    """Return the variables and their values.

    ``NCCL_ALGO_FILE`` is the convention of sites whose launchers distribute schedule
    files; the others are what the runtime itself reads.

    Raises
    ------
    InputError
        CS502 when a file cannot be read, CS503 when the runtime would choke on one,
        CS504 when the set as a whole cannot work.
    """
    found = _distinct(paths)
    schedules = [_schedule(path, profile) for path in found]
    listed = ":".join(str(path) for path in found)
    if profile.rounds:
        _refuse_clashes(schedules, profile)
        for path in found:
            require_listable(path, profile)
        return ((BUNDLE, listed),)
    if profile.plans:
        return _of_plans(found, schedules, profile)
    values = [("NCCL_ALGO_FILE", listed)]
    if profile.directory:
        directory = _directory(found, profile)
        values.append(("MSCCL_ALGO_DIR", str(directory)))
        _check_directory(directory, set(found), profile)
    else:
        _check_list(found, profile)
        values.append(("MSCCL_XML_FILES", listed))
    values.extend(profile.exports)
    if not profile.directory and any(s.header.protocol == "LL128" for s in schedules):
        values.append(("NCCL_PROTO", _ALL_PROTOCOLS))
    return tuple(values)


def range_notes(paths: Sequence[Path], profile: Profile) -> tuple[str, ...]:
    """Return notes on byte ranges that overlap (F02) or leave a gap (F03) for the same calls.

    Where overlapping ones might be taken in another order on each host, `variables` refuses them.
    """
    if profile.rounds or profile.plans:
        return ()
    found = _distinct(paths)
    schedules = [
        _schedule(path, profile) for path in (sorted(found) if profile.directory else found)
    ]
    order = "by path" if profile.directory else "listed"
    overlaps = (
        f"F02: {one.path.name} and {other.path.name} serve the same calls; {profile.name} takes"
        f" {one.path.name} for them, the first {order}"
        for one, other in _clashes(schedules)
    )
    gaps = (f"F03: {text}; {profile.name} serves them itself" for text in _gaps(schedules))
    return (*overlaps, *gaps)


def _distinct(paths: Sequence[Path]) -> list[Path]:
    """Return every file once, by its first name, as the runtime will name it."""
    named = {path.resolve(): path.absolute() for path in reversed(paths)}
    return list(reversed(named.values()))


def _gaps(schedules: Sequence[_Schedule]) -> Iterator[str]:
    """Yield texts for sizes between those of files for the same calls."""
    reached: dict[tuple[str, int, str], int | None] = {}
    for header in sorted((s.header for s in schedules), key=lambda header: header.min_bytes):
        for mode, serves in (("in", header.in_place), ("out-of", header.out_of_place)):
            if not serves:
                continue
            call = header.collective.value, header.ranks, mode
            last = reached.get(call, header.min_bytes - 1)
            if last is not None and header.min_bytes > last + 1:
                what = f"{mode}-place {call[0]} on {call[1]} ranks"
                yield f"no file serves {what} from {last + 1} to {header.min_bytes - 1} bytes"
            ends = (last, header.max_bytes)
            reached[call] = None if None in ends else max(end for end in ends if end is not None)


def exports(values: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return one ``export NAME=value`` line per variable, quoted for a shell."""
    return tuple(f"export {name}={shlex.quote(value)}" for name, value in values)


def _of_plans(
    paths: list[Path], schedules: list[_Schedule], profile: Profile
) -> tuple[tuple[str, str], ...]:
    """Return the variables for plans: a directory of 0.8, later a list for the script."""
    _refuse_clashes(schedules, profile)
    if profile.directory:
        directory = _directory(paths, profile)
        _check_directory(directory, set(paths), profile)
        return (("MSCCLPP_EXECUTION_PLAN_DIR", str(directory)), *profile.exports)
    from colsynth.runtimes.plans.register import VARIABLE

    for path in paths:
        require_listable(path, profile)
    return ((VARIABLE, ":".join(map(str, paths))), *profile.exports)


def _schedule(path: Path, profile: Profile) -> _Schedule:
    """Read a file; refuse one that the runtime's parser would not take."""
    reading = read(read_file(path), profile, file=str(path))
    errors = [f for f in reading.findings if f.severity is Severity.ERROR]
    if errors or reading.header is None:
        lines = ["" if f.line is None else f"line {f.line}: " for f in errors[:4]]
        told = zip(lines, errors, strict=False)
        notes = tuple(f"{line}{f.rule}: {f.message}" for line, f in told)
        raise InputError(
            Diagnostic(
                "CS503",
                f"{profile.name} would not load {path.name}",
                span=Span(str(path), errors[0].line if errors else None),
                notes=notes,
                help=f"colsynth verify {shlex.quote(str(path))} -r {profile.name} says more",
            )
        )
    return _Schedule(path, reading.header)


def _check_list(paths: list[Path], profile: Profile) -> None:
    """Check what a list of paths in a variable can say (F04)."""
    if profile.max_files is not None and len(paths) > profile.max_files:
        text = f"{len(paths)} files; {profile.name} loads {profile.max_files} and drops the rest"
        raise InputError(Diagnostic("CS504", text, help="list fewer files"))
    for path in paths:
        require_listable(path, profile)


def require_listable(path: Path, profile: Profile) -> None:
    """Refuse a path that the runtime's list of files cannot hold, there or above (CS504)."""
    if not profile.directory and ":" in str(path.absolute()):
        text = f"{profile.name} splits its list at ':', which is part of {path}"
        raise InputError(Diagnostic("CS504", text, help="choose another place or name"))


def _directory(paths: list[Path], profile: Profile) -> Path:
    """Return the one directory that holds all files."""
    parents = sorted({path.parent for path in paths})
    if len(parents) != 1:
        raise InputError(
            Diagnostic(
                "CS504",
                f"{profile.name} reads one directory, the files lie in {len(parents)}",
                notes=tuple(map(str, parents)),
                help="put all files of a job into a directory of their own",
            )
        )
    return parents[0]


def _check_directory(directory: Path, listed: set[Path], profile: Profile) -> None:
    """Check every file the runtime would find there (F01, and F02 where it is an error)."""
    entries = sorted(e for e in directory.iterdir() if e.is_symlink() or e.is_file())
    try:
        schedules = [_schedule(entry, profile) for entry in entries if not entry.is_dir()]
    except InputError as fault:
        raise _spoiled(directory, profile, fault) from fault
    _refuse_hidden([e.name for e in entries if e not in listed], directory, profile)
    if profile.plans or not profile.fuses:
        _refuse_clashes(schedules, profile)


def _refuse_clashes(schedules: list[_Schedule], profile: Profile) -> None:
    """Refuse two files that serve the same calls (CS504)."""
    for one, other in _clashes(schedules):
        text = f"{one.path.name} and {other.path.name} serve the same calls"
        notes = (_DIRECTORY_ORDER,) if profile.directory else ()
        raise InputError(Diagnostic("CS504", text, notes=notes, help=_SEPARATE))


def _clashes(schedules: list[_Schedule]) -> Iterator[tuple[_Schedule, _Schedule]]:
    """Yield pairs of files that serve the same calls."""
    pairs = combinations(schedules, 2)
    return ((one, other) for one, other in pairs if _clash(one.header, other.header))


def _refuse_hidden(names: list[str], directory: Path, profile: Profile) -> None:
    """Refuse hidden files beside those that were listed (CS504).

    One may be what a killed process left of a schedule, and a runtime that goes by names reads it
    first.
    """
    hidden = [name for name in names if name.startswith(".")]
    if hidden:
        text = f"{profile.name} would also read hidden files in {directory}: {listed(hidden)}"
        advice = "remove them; killed programs leave such files"
        raise InputError(Diagnostic("CS504", text, help=advice))


_DIRECTORY_ORDER = "files are taken in directory order, which may differ between hosts"
_SEPARATE = "give each file a byte range of its own, or a directory of its own"


def _spoiled(directory: Path, profile: Profile, fault: InputError) -> InputError:
    inner = fault.diagnostic
    note = f"{profile.name} reads every file of {directory}; a bad one spoils the others"
    return InputError(
        Diagnostic(
            inner.code,
            inner.phrase,
            span=inner.span,
            notes=(*inner.notes, note),
            help="keep schedule files in a directory that holds nothing else",
        )
    )


def _clash(one: Header, other: Header) -> bool:
    """Whether a call exists that both files would serve."""
    same = one.collective is other.collective and one.ranks == other.ranks
    modes = (one.in_place and other.in_place) or (one.out_of_place and other.out_of_place)
    ends = [header.max_bytes for header in (one, other) if header.max_bytes is not None]
    return same and modes and max(one.min_bytes, other.min_bytes) <= min(ends, default=1 << 63)
