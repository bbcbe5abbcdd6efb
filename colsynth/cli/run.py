"""``colsynth run``: execute schedule files with real data, one process per rank."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.cli._options import read_size
from colsynth.cli.progress import progress
from colsynth.cli.run_answer import show_run
from colsynth.cli.simulate import AnyRuntimeOption
from colsynth.cli.sizes import read_sizes
from colsynth.cli.streams import require_one_stdin
from colsynth.cli.verify import FilesOrStdinArgument, read_schedule
from colsynth.errors import EXIT_NEGATIVE, Diagnostic, InputError, did_you_mean, require_least
from colsynth.units import format_size, plural

if TYPE_CHECKING:
    from colsynth.execute.choose import Choice
    from colsynth.execute.job import Outcome

_MOST = 10_000
"""Calls, and threadblocks held back."""

BackendOption = Annotated[
    str,
    typer.Option(
        "-b",
        "--backend",
        metavar="mpi|gloo",
        autocompletion=complete.words("mpi", "gloo"),
        help="What carries the messages: MPI, or gloo of PyTorch.",
    ),
]
RanksOption = Annotated[
    int | None,
    typer.Option(
        "--ranks", metavar="N", help="Ranks that the files must have.", show_default="those named"
    ),
]
RunSizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="SIZES",
        help="Message sizes, e.g. 64MB or 1KiB..1MiB.",
        show_default="1 MiB, or what the file takes",
    ),
]
TypeOption = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="TYPE",
        autocompletion=complete.words("float32", "float64", "float16", "int32", "int64", "uint8"),
        help="Type of the elements, e.g. float32.",
    ),
]
InPlaceOption = Annotated[
    bool | None,
    typer.Option(
        "--in-place/--out-of-place", help="Call mode to execute.", show_default="all it serves"
    ),
]
CheckOption = Annotated[
    bool,
    typer.Option(
        "--check/--no-check",
        help="Compare results with the definition; without, calls are only timed.",
    ),
]
CallsOption = Annotated[
    int,
    typer.Option("--calls", metavar="N", help="Number of calls with new data that are checked."),
]
HoldOption = Annotated[
    int,
    typer.Option(
        "--hold",
        metavar="N",
        help="Threadblocks of each rank that wait in checked calls until nothing else can go on; "
        "shows missing waits.",
    ),
]
RepeatOption = Annotated[
    int, typer.Option("--repeat", metavar="N", help="Number of calls that are timed; 0 for none.")
]
TileOption = Annotated[
    str | None,
    typer.Option(
        "--tile",
        metavar="SIZE",
        help="Bytes of a chunk that threadblocks of XML files move at once; a small one makes "
        "small messages run as large ones do.",
        show_default="that of the runtime",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", help="Time limit for each size and mode."),
]
ShuffleOption = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the order of threadblocks.")
]


def run(
    files: FilesOrStdinArgument,
    backend: BackendOption = "mpi",
    runtime: AnyRuntimeOption = None,
    ranks: RanksOption = None,
    size: RunSizeOption = None,
    dtype: TypeOption = "float32",
    in_place: InPlaceOption = None,
    check: CheckOption = True,
    calls: CallsOption = 4,
    hold: HoldOption = 2,
    repeat: RepeatOption = 5,
    tile: TileOption = None,
    timeout: TimeoutOption = 60.0,
    seed: ShuffleOption = 1,
    json: JsonOption = False,
) -> None:
    """Execute schedule files with real data by concurrent processes, and check every element."""
    from colsynth.execute.choose import choose
    from colsynth.execute.definition import TYPES
    from colsynth.execute.job import Job
    from colsynth.execute.memory import require_memory
    from colsynth.execute.start import is_rank, require_backend

    require_backend(backend)
    require_one_stdin(*files)
    _require_calls(check, calls, hold, repeat, timeout)
    if dtype not in TYPES:
        advice = did_you_mean(dtype, TYPES)
        raise InputError(Diagnostic("CS663", f"--type cannot be {dtype!r}", help=advice))
    contents = [read_schedule(path) for path in files]
    choices = [choose(data, name, runtime) for name, data in contents]
    _require_ranks(contents, choices, ranks)
    span = _span(tile, dtype)
    with tempfile.TemporaryDirectory(prefix="colsynth-files-") as folder:
        entries = []
        for number, ((name, data), choice) in enumerate(zip(contents, choices, strict=True)):
            path = Path(folder) / str(number)
            path.write_bytes(data)
            if choice.refused is None:
                entries.append(_entry(name, path, choice, size, dtype, in_place))
                require_memory(choice, name, max(entries[-1].sizes), alone=is_rank(backend))
        job = Job(tuple(entries), dtype, calls if check else 0, hold, repeat, span, timeout, seed)
        outcomes = _executed(job, backend) if entries else []
    if outcomes is None:
        return  # this is a rank other than the first
    by_file: list[list[Outcome]] = [[] for _ in contents]
    executed = [n for n, choice in enumerate(choices) if choice.refused is None]
    for outcome in outcomes:
        by_file[executed[outcome.file]].append(outcome)
    names = [name for name, _ in contents]
    good = all(c.refused is None for c in choices) and all(o.right for o in outcomes)
    if json:
        found = zip(names, choices, by_file, strict=True)
        emit_json({"backend": backend, "ok": good, "files": [_object(*each) for each in found]})
    else:
        console = answer_console()
        for each in zip(names, choices, by_file, strict=True):
            show_run(console, backend, TYPES[dtype], *each)
    if not good:
        raise typer.Exit(EXIT_NEGATIVE)


def _require_calls(check: bool, calls: int, hold: int, repeat: int, timeout: float) -> None:
    """Refuse numbers that are out of range (CS210), and a run without any call (CS217)."""
    require_least("--calls", calls, 1, _MOST)
    require_least("--hold", hold, 0, _MOST)
    require_least("--repeat", repeat, 0, _MOST)
    if not 0 < timeout < math.inf:
        phrase = f"--timeout {timeout:g}: expected a number of seconds above 0"
        raise InputError(Diagnostic("CS210", phrase))
    if not check and not repeat:
        phrase = "--no-check and --repeat 0 leave no call to execute"
        raise InputError(Diagnostic("CS217", phrase, help="leave one of them out"))


def _span(tile: str | None, dtype: str) -> int | None:
    """Return the bytes of a tile; refuse what is no single size of an element or more (CS212)."""
    import numpy as np

    span, width = read_size("--tile", tile), np.dtype(dtype).itemsize
    if span is not None and span < width:
        note = f"a tile holds an element or more, and one of {dtype} has {plural(width, 'byte')}"
        raise InputError(Diagnostic("CS212", f"--tile cannot be {tile!r}", notes=(note,)))
    return span


def _require_ranks(
    contents: Sequence[tuple[str, bytes]], choices: Sequence[Choice], ranks: int | None
) -> None:
    """Refuse files of another number of ranks than was said (CS664)."""
    for (name, _), choice in zip(contents, choices, strict=True):
        if ranks is not None and choice.refused is None and choice.header.ranks != ranks:
            phrase = f"{name} is for {plural(choice.header.ranks, 'rank')}, not for {ranks}"
            raise InputError(Diagnostic("CS664", phrase, help="leave --ranks out"))


def _entry(
    name: str, path: Path, choice: Choice, size: str | None, dtype: str, in_place: bool | None
) -> Any:
    """Return a file as ranks execute it; refuse sizes (CS665) and modes (CS666) it has not."""
    import numpy as np

    from colsynth.execute.job import FileJob

    width = np.dtype(dtype).itemsize
    taken = choice.taken(width)
    sizes = (choice.usual_size(width),) if size is None else read_sizes("--size", size)
    for one in sizes:
        if one % taken.multiple:
            phrase = f"the chunks of {name} do not divide {format_size(one)}"
            raise InputError(Diagnostic("CS665", phrase, help=f"it is for {taken}"))
    modes = choice.modes()
    if in_place is not None:
        modes = tuple(mode for mode in modes if mode is in_place)
    if not modes:
        phrase = f"{name} serves no {'in' if in_place else 'out-of'}-place calls"
        raise InputError(Diagnostic("CS666", phrase, help="leave the mode out"))
    ranks = choice.header.ranks
    return FileJob(name, str(path), choice.profile.name, ranks, sizes, modes)


def _executed(job: Any, backend: str) -> list[Outcome] | None:
    """Return all outcomes; None in ranks that a launcher started beside the first."""
    from colsynth.execute.start import execute, is_rank

    count = sum(len(file.sizes) * len(file.in_place) for file in job.files)
    if is_rank(backend):
        from colsynth.execute.rank import join

        return join(job, backend)
    with progress("no result was kept") as show:
        show(f"run {Path(job.files[0].name).name}", 0, count)
        done = 0

        def told(outcome: Outcome) -> None:
            nonlocal done
            done += 1
            show(f"run {Path(job.files[outcome.file].name).name}", done, count)

        return execute(job, backend, told)


def _object(name: str, choice: Choice, outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the results of a file for ``--json``."""
    import msgspec

    header = choice.reading.header
    points = []
    for outcome in outcomes:
        point = msgspec.to_builtins(outcome)
        del point["file"]
        size = point.pop("size")
        points.append({"ok": outcome.right, "size_bytes": size, **point})
    return {
        "file": name,
        "runtime": choice.profile.name,
        "ranks": None if header is None else header.ranks,
        "collective": None if header is None or choice.reading.custom else header.collective.value,
        "refused": choice.refused,
        "objections": choice.faults,
        "points": points,
    }
