"""``colsynth export``: a schedule for a simulator of others."""

from __future__ import annotations

import json as json_text
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, emit_json
from colsynth.cli._options import read_size
from colsynth.cli.places import check_folder
from colsynth.cli.simulate import AnyRuntimeOption
from colsynth.cli.streams import is_stdin
from colsynth.errors import Diagnostic, InputError, Span, VerificationError, require_least
from colsynth.units import format_size
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.model import Collective, TimedSchedule
    from colsynth.runtimes.selection import TakenSizes

_WORDS = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reduce-scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
"""What ASTRA-sim calls the collectives that it can take a schedule for."""

_USUAL = 64 * 2**20
"""Bytes of the message of a schedule file where no size is given, if chunks divide it."""

SizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="SIZE",
        help="Message size, e.g. 64MB.",
        show_default="the size of a timed schedule; of a file, that nearest to 64MiB that uses it",
    ),
]


def export(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Schedule file, e.g. allreduce.xml; - for stdin; or timed schedule, FILE.npz.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="chakra",
            autocompletion=complete.words("chakra"),
            help="Format: chakra, the execution traces that ASTRA-sim reads.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for a file per rank, e.g. et/."),
    ],
    size: SizeOption = None,
    runtime: AnyRuntimeOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    json: JsonOption = False,
) -> None:
    """Write execution traces of a schedule for a simulator such as ASTRA-sim."""
    if to != "chakra":
        raise InputError(Diagnostic("CS671", f"--to cannot be {to!r}", help="write --to chakra"))
    asked = read_size("--size", size)
    if asked is not None:
        require_least("--size", asked, 1)
    check_folder("--output", output)
    collective, traces, law, bytes_ = _traces(file, runtime, asked)
    prefix = output / ("schedule" if is_stdin(file) else file.stem)
    files = {Path(f"{prefix}.{rank}.et"): data for rank, data in enumerate(traces)}
    write_files(files, replace=force)
    word = _WORDS.get(collective.value)
    setting = {} if word is None else {f"{word}-implementation-custom": [str(prefix)]}
    selected = law is None or law.takes(bytes_)
    if json:
        names = [str(path) for path in files]
        answer = {"files": names, "size_bytes": bytes_, "selected": selected, "system": setting}
        emit_json(answer)
        return
    last = len(traces) - 1
    print(f"{prefix}.0.et to {prefix}.{last}.et: {collective.value} of {format_size(bytes_)}")
    if setting:
        print("in ASTRA-sim's system JSON, with the path as its working directory sees it:")
        print(f"  {json_text.dumps(setting)[1:-1]}")
    else:
        print(f"ASTRA-sim takes no custom {collective.value}; the traces can be played alone")
    if not selected:
        print(f"note: the runtime does not use the file for this size, but for messages in {law}")


def _traces(
    file: Path, runtime: str | None, size: int | None
) -> tuple[Collective, list[bytes], TakenSizes | None, int]:
    """Return the collective, the trace of each rank, which messages use the file, and the size.

    A timed schedule is no file of a runtime.
    """
    from colsynth.export.chakra import of_program, of_timed

    if file.suffix == ".npz":
        if runtime is not None:
            phrase = "--runtime does not go with a timed schedule"
            raise InputError(Diagnostic("CS217", phrase, help="leave it out"))
        schedule = _checked(file)
        bytes_ = size or schedule.size
        return schedule.problem.collective, of_timed(schedule, bytes_), None, bytes_
    from colsynth.api.files import refuse_bad
    from colsynth.cli.verify import read_schedule
    from colsynth.runtimes import profile, taken_sizes
    from colsynth.runtimes.selection import nearest_size
    from colsynth.simulate import find_runtime, read_source

    name, data = read_schedule(file)
    source = (
        find_runtime(data, name) if runtime is None else read_source(data, profile(runtime), name)
    )
    refuse_bad(source.report, anyway=False)
    source.require_executable()
    header = source.program.header
    law = taken_sizes(header, source.profile)
    bytes_ = size or nearest_size([law], _USUAL) or law.multiple
    if bytes_ % header.chunks:
        phrase = f"{header.chunks} chunks do not divide {format_size(bytes_)}"
        advice = f"use a multiple of {law.multiple} bytes"
        raise InputError(Diagnostic("CS672", phrase, help=advice))
    return header.collective, of_program(source.threadblocks, bytes_), law, bytes_


def _checked(file: Path) -> TimedSchedule:
    """Return the timed schedule of a file, or refuse it where it is wrong."""
    from colsynth.store import read_npz
    from colsynth.verify import check_timed

    schedule = read_npz(file)
    try:
        check_timed(schedule)
    except VerificationError as fault:
        advice = "write it again with `colsynth synthesize --schedule`"
        told = replace(fault.diagnostic, span=Span(str(file)), help=advice)
        raise VerificationError(told) from None
    return schedule
