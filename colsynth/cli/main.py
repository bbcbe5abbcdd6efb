"""The ``colsynth`` program: finds the command, runs it, turns errors into exit codes.

A command's module is imported only when the command is used, so ``--help`` needs
neither numpy nor numba. To add a command: write its file, and add its line to
`_COMMANDS`.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from colsynth import __version__
from colsynth.cli.failure import report, system_error, usage_error
from colsynth.errors import EXIT_DONE, EXIT_NEGATIVE, ColsynthError, did_you_mean

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_UsageError: Any = typer.BadParameter.__base__
_ClickError: Any = _UsageError.__base__


@dataclass(frozen=True, slots=True)
class _Command:
    """Where a command is, as ``"module:attribute"``, and its line in the list."""

    place: str
    help: str


_COMMANDS = {
    "compile": _Command(
        "colsynth.cli.compile:compile_", "Compile a schedule, verify it, and write its file."
    ),
    "verify": _Command("colsynth.cli.verify:verify", "Check schedule files against a runtime."),
    "bound": _Command(
        "colsynth.cli.bound:bound_", "Print the proven optimum and the cut that proves it."
    ),
    "topology": _Command("colsynth.cli.topology:app", "List, show, export and check topologies."),
    "env": _Command("colsynth.cli.env:env", "Print the shell exports that make a job use files."),
    "passes": _Command("colsynth.cli.passes:passes", "List the passes with their options."),
    "runtimes": _Command("colsynth.cli.runtimes:runtimes", "List the runtimes and their limits."),
    "explain": _Command("colsynth.cli.explain:explain", "Explain the code of a diagnostic."),
}


class _LazyGroup(TyperGroup):
    """A group that knows its commands by name and loads one when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what stands in the list of commands: name and help alone."""
        entry = _COMMANDS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, loaded."""
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            advice = did_you_mean(name, _COMMANDS)
            raise _UsageError(f"there is no command {name!r}; {advice}", ctx)
        _, stub, rest = super().resolve_command(ctx, args)
        return name, None if stub is None else _load(name), rest


def _load(name: str) -> Any:
    module, _, attribute = _COMMANDS[name].place.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_command(found)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name)(found)
    return typer.main.get_command(single)


app = typer.Typer(
    cls=_LazyGroup,
    help="Compile a cluster's topology into verified, provably fast collective schedules.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"colsynth {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hold the options of the program itself."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; never raises.

    Parameters
    ----------
    arguments : list of str
        Without the name of the program.

    Returns
    -------
    int
        0 done, 1 a negative finding, 2 wrong input or usage, 3 a defect of ours,
        130 after Ctrl-C.
    """
    as_json = "--json" in arguments
    try:
        result = typer.main.get_command(app).main(
            args=arguments, prog_name="colsynth", standalone_mode=False
        )
        print(end="", flush=True)  # what cannot be written is noticed here, not at exit
    except ColsynthError as error:
        return report(error, as_json)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except _ClickError as error:
        return _usage(error, as_json)
    except OSError as error:
        return _refused(error, as_json)
    except Exception as error:  # noqa: BLE001 - whatever is left is a defect of ours
        return report(error, as_json)
    return result if isinstance(result, int) else EXIT_DONE


def _usage(error: Any, as_json: bool) -> int:
    """Report what click found wrong with the arguments; no arguments at all ask for help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "colsynth"
    return report(usage_error(error.format_message(), command), as_json)


def _refused(error: OSError, as_json: bool) -> int:
    """Report what the system would not do; a reader that has gone away needs no report."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NEGATIVE
    return report(system_error(error), as_json)


def main() -> NoReturn:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))
