"""``colsynth env``: the shell exports that make a job use schedule files."""

from __future__ import annotations

from colsynth.cli._common import JsonOption, emit_json
from colsynth.cli._options import RuntimeOption
from colsynth.cli.verify import FilesArgument


def env(files: FilesArgument, runtime: RuntimeOption, json: JsonOption = False) -> None:
    """Print the shell exports that make a job use the files; pass them to eval."""
    from colsynth.runtimes import environment, profile, variables

    target = profile(runtime)
    if json:
        emit_json(dict(variables(files, target)))
        return
    for line in environment(files, target):
        print(line)
