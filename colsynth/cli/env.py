"""``colsynth env``: the shell exports that make a job use schedule files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colsynth.cli._common import JsonOption, emit_json
from colsynth.cli._options import RuntimeOption
from colsynth.cli.progress import progress
from colsynth.cli.streams import tell
from colsynth.cli.verify import FilesArgument

if TYPE_CHECKING:
    from colsynth.runtimes.profile import Profile


def env(
    files: FilesArgument,
    runtime: RuntimeOption,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Print exports also for files that verify calls bad.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the shell exports that make a job use the files; pass them to eval."""
    from colsynth.runtimes import exports, profile, range_notes, read_file, variables
    from colsynth.runtimes.readers import require_schedule

    target = profile(runtime)
    contents = [(path, read_file(path)) for path in files]
    for path, data in contents:
        require_schedule(data, str(path))
    values = variables(files, target)
    if not anyway:
        _refuse_bad(contents, target)
    for note in range_notes(files, target):
        tell(f"note: {note}")
    if json:
        emit_json(dict(values))
        return
    for line in exports(values):
        print(line)


def _refuse_bad(contents: Sequence[tuple[Path, bytes]], target: Profile) -> None:
    """Refuse files with which a job would hang or get wrong results (CS609)."""
    from colsynth.api.files import refuse_bad
    from colsynth.verify import verify_bytes

    with progress("no exports were printed") as show:
        for number, (path, data) in enumerate(contents):
            show(f"verify {path.name}", number, len(contents))
            refuse_bad(verify_bytes(data, target, subject=str(path)))
