"""The ``colsynth`` program: finds the command, runs it, turns errors into exit codes.

A command's module is imported only when the command is used, so ``--help`` needs
neither numpy nor numba. To add a command: write its file, and add its line to
`_COMMANDS`.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from colsynth import __version__
from colsynth.cli._common import SuggestingGroup, UsageError
from colsynth.cli._help import Command
from colsynth.cli.complete import InstallOption, ShowOption, prepare_completion, with_shell
from colsynth.cli.failure import report, system_error, usage_error
from colsynth.cli.interrupts import INTERRUPTED, Interrupted, arrived, exit_code, interrupted
from colsynth.cli.notices import notices
from colsynth.cli.streams import hush_warnings, prepare_streams, settle_streams
from colsynth.errors import EXIT_DONE

BROKEN_PIPE = 141
"""Exit code after the reader of stdout has gone, as shells have it."""

_ClickError: Any = UsageError.__base__


@dataclass(frozen=True, slots=True)
class _Command:
    """A command's place, as ``"module:attribute"``, and its line in the list."""

    place: str
    help: str


_COMMANDS = {
    "compile": _Command(
        "colsynth.cli.compile:compile_", "Compile a schedule, verify it, and write its file."
    ),
    "synthesize": _Command(
        "colsynth.cli.synthesize:synthesize",
        "Find a timed schedule for any collective, group and size.",
    ),
    "verify": _Command("colsynth.cli.verify:verify", "Check schedule files against a runtime."),
    "compare": _Command(
        "colsynth.cli.compare:compare", "Compare predicted bandwidths of all algorithms by size."
    ),
    "tune": _Command(
        "colsynth.cli.tune:tune", "Tune by message size; write a bundle of files for a job."
    ),
    "simulate": _Command(
        "colsynth.cli.simulate:simulate", "Predict how long a schedule file takes."
    ),
    "show": _Command("colsynth.cli.show:show", "Draw links, trees and steps of a schedule file."),
    "run": _Command(
        "colsynth.cli.run:run", "Execute schedule files with real data; check every element."
    ),
    "calibrate": _Command(
        "colsynth.cli.calibrate:calibrate", "Fit the simulator to logs of your machine."
    ),
    "ranks": _Command(
        "colsynth.cli.ranks:ranks", "Number ranks for a launcher; find a faster order of hosts."
    ),
    "bound": _Command(
        "colsynth.cli.bound:bound_", "Print the proven optimum and the cut that proves it."
    ),
    "survey": _Command(
        "colsynth.cli.survey:survey", "Compile for every single failure; print what each costs."
    ),
    "report": _Command(
        "colsynth.cli.report:report", "Write a page that shows a schedule, its times and limits."
    ),
    "topology": _Command(
        "colsynth.cli.topology:app", "List, show, import, export and check topologies."
    ),
    "sketch": _Command("colsynth.cli.sketch:app", "Propose sketches of timed schedules."),
    "env": _Command("colsynth.cli.env:env", "Print the shell exports that make a job use files."),
    "export": _Command(
        "colsynth.cli.export:export", "Write execution traces for a simulator such as ASTRA-sim."
    ),
    "passes": _Command("colsynth.cli.passes:passes", "List the passes with their options."),
    "runtimes": _Command("colsynth.cli.runtimes:runtimes", "List the runtimes and their limits."),
    "warm": _Command("colsynth.cli.warm:warm", "Compile all kernels now, once per installation."),
    "explain": _Command(
        "colsynth.cli.explain:explain", "Explain the code of a diagnostic or rule, or list all."
    ),
    "guide": _Command("colsynth.cli.guide:guide", "Show a page of the guide."),
}


class _LazyGroup(SuggestingGroup):
    """A group that loads a command's module only when the command is used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a completion option without a value means the current shell."""
        return list(super().parse_args(ctx, args if ctx.resilient_parsing else with_shell(args)))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return an entry of the list of commands, with name and help alone."""
        entry = _COMMANDS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, loaded."""
        name, stub, rest = super().resolve_command(ctx, args)
        return name, None if stub is None else _load(name), rest


def _load(name: str) -> Any:
    module, _, attribute = _COMMANDS[name].place.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_command(found)
        group.name = name
        return group
    single = typer.Typer(add_completion=False)
    single.command(name, cls=Command)(found)
    return typer.main.get_command(single)


app = typer.Typer(
    cls=_LazyGroup,
    help="Compile a cluster's topology into verified, provably fast collective schedules.",
    no_args_is_help=True,
    add_completion=False,  # our own options name the shell
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        typer.echo(f"colsynth {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    show_completion: ShowOption = None,
    install_completion: InstallOption = None,
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
        0 done, 1 a negative finding, 2 wrong input or usage, 3 a defect of colsynth,
        130 after Ctrl-C, 141 when the reader of stdout has gone.
    """
    as_json = "--json" in arguments
    prepare_completion()
    try:
        with notices():
            result = typer.main.get_command(app).main(
                args=arguments, prog_name="colsynth", standalone_mode=False
            )
        print(end="", flush=True)  # report write errors here, not at exit
    except SystemExit as leaving:  # click and rich exit with 1 when stdout's reader has gone
        return BROKEN_PIPE if leaving.code == 1 else int(leaving.code or EXIT_DONE)
    except (Interrupted, KeyboardInterrupt, typer.Abort) as stop:
        interrupted(stop)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - ours, or else a defect of ours
        return _failed(error, as_json)
    if result == INTERRUPTED:  # typer swallowed the interrupt
        interrupted()
    return result if isinstance(result, int) else EXIT_DONE


def _failed(error: Exception, as_json: bool) -> int:
    """Report an error; after Ctrl-C, report the interrupt alone."""
    if arrived():
        interrupted()
        return INTERRUPTED
    if isinstance(error, _ClickError):
        return _usage(error, as_json)
    if isinstance(error, OSError):
        return _refused(error, as_json)
    return report(error, as_json)


def _usage(error: Any, as_json: bool) -> int:
    """Report wrong arguments that click found; without any arguments, show the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "colsynth"
    return report(usage_error(error.format_message(), command), as_json)


def _refused(error: OSError, as_json: bool) -> int:
    """Report an error of the operating system, unless the reader of stdout has gone."""
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    return report(system_error(error), as_json)


def main() -> NoReturn:
    """Run the command line of this process."""
    prepare_streams()
    hush_warnings()
    code = run(sys.argv[1:])
    settle_streams()
    sys.exit(exit_code(code))
