"""Options of ``colsynth compile`` alone, in bundles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._help import INSIDE, SEARCH
from colsynth.cli._options import TreesOption, read_size
from colsynth.cli.output import Destination
from colsynth.cli.places import check_folder
from colsynth.cli.streams import tell
from colsynth.errors import Diagnostic, InputError, did_you_mean, require_least
from colsynth.writing import exists, unwritable

MainSizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="SIZE",
        help="Message size to optimize for, e.g. 64MB.",
        show_default="1GiB, and 64MiB and 1MiB a little",
    ),
]


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search."""

    algorithm: Annotated[
        str | None,
        typer.Option(
            "-a",
            "--algorithm",
            metavar="ALGORITHM",
            autocompletion=complete.any_algorithm,
            help="Algorithm: forest packs spanning trees; roots packs those of an allreduce with "
            "free roots; ten assigns each chunk a link and a time slot; exact has a solver do "
            "so; bfb takes shortest paths on direct-connect fabrics; relays shares a broadcast or "
            "reduce among GPUs that pass it on; the others follow fixed patterns, e.g. ring "
            "('colsynth passes' lists them). auto is short for -O3.",
            show_default="the fastest that the search tries",
        ),
    ] = None
    level: Annotated[
        int | None,
        typer.Option(
            "-O",
            metavar="0|1|2|3",
            help="How hard to search for a faster program: 0 compiles as the pipeline stands, "
            "1 tries quick variants, 2 tries more, 3 tries all algorithms and protocols.",
            rich_help_panel=SEARCH,
            show_default="1",
        ),
    ] = None
    trees: TreesOption = None
    max_height: Annotated[
        int | None,
        typer.Option(
            "--max-height",
            metavar="H",
            help="Most links between a root and a GPU, e.g. 4: buys fewer steps with bandwidth. "
            "For small direct-connect fabrics; 'bound --heights' prints what each height costs.",
            rich_help_panel=SEARCH,
            show_default="no limit",
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="Limit of the search: the number of programs that are made and simulated. For "
            "-a ten, the number of placed transfers after which no new try starts (0 for no "
            "limit).",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class CopiesOptions:
    """Numbers of parallel copies, which libraries vary too."""

    instances: Annotated[
        int | None,
        typer.Option(
            "--instances",
            metavar="N",
            help="Number of parallel copies of the program, e.g. 2.",
            show_default="the search chooses",
        ),
    ] = None
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels",
            metavar="N",
            help="Number of parallel rings (-a ring), or of pairs of trees (-a tree), e.g. 4.",
            show_default="the fastest",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.channels is not None:
            require_least("--channels", self.channels, 1)


@dataclass(frozen=True)
class MessagesOptions:
    """The message sizes that a file serves."""

    min_bytes: Annotated[
        str | None,
        typer.Option(
            "--min-bytes",
            metavar="SIZE",
            help="Smallest message that the file serves, e.g. 64KiB.",
            show_default="where the library is not faster",
        ),
    ] = None
    max_bytes: Annotated[
        str | None,
        typer.Option(
            "--max-bytes",
            metavar="SIZE",
            help="Largest message that the file serves, inclusive, e.g. 1GiB.",
            show_default="where the library is not faster, or all",
        ),
    ] = None

    def least(self) -> int | None:
        """Return --min-bytes; raise InputError CS212 if it is not a size."""
        return read_size("--min-bytes", self.min_bytes)

    def most(self) -> int | None:
        """Return --max-bytes; raise InputError CS212 if it is not a size."""
        return read_size("--max-bytes", self.max_bytes)


@dataclass(frozen=True)
class InsideOptions:
    """Options for looking into the compiler."""

    passes: Annotated[
        str | None,
        typer.Option(
            "--passes",
            metavar="PIPELINE",
            autocompletion=complete.several(complete.passes),
            help="Run this pipeline instead of the algorithm's, e.g. pack-trees,lower-forest,.... "
            "'colsynth passes' lists passes and pipelines.",
            rich_help_panel=INSIDE,
        ),
    ] = None
    dump_ir: Annotated[
        str | None,
        typer.Option(
            "--dump-ir",
            metavar="PASS",
            autocompletion=complete.passes,
            help="Print the value after a pass, e.g. pack-trees, or after 'all', on stderr.",
            rich_help_panel=INSIDE,
        ),
    ] = None
    dump_dir: Annotated[
        Path | None,
        typer.Option(
            "--dump-dir",
            metavar="DIR",
            help="Write the value after every pass to this directory, e.g. dumps/.",
            rich_help_panel=INSIDE,
        ),
    ] = None
    time_passes: Annotated[
        bool,
        typer.Option(
            "--time-passes",
            help="Print the seconds of every pass on stderr.",
            rich_help_panel=INSIDE,
        ),
    ] = False

    def check(self, known: tuple[str, ...], destination: Destination, force: bool) -> None:
        """Raise for an unknown pass or an unusable folder; `known` are the names of the passes.

        Raises
        ------
        InputError
            CS202: unknown pass. CS251: the folder is one of schedules. CS207: it holds dumps, and
            `force` is not set. Others from `check_folder`.
        """
        _check_dump_name(self.dump_ir, known)
        _check_dump_dir(self.dump_dir, destination)
        if self.dump_dir is not None:
            check_folder("--dump-dir", self.dump_dir)
            earlier = _earlier(self.dump_dir)
            if earlier and not force:
                advice = "--force replaces all dumps in it, or name another directory"
                raise exists(earlier[0], advice)

    def watch(self, force: bool) -> Dumps | None:
        """Return the observer of the values after passes; None without dump options.

        With `force`, its dumps replace those of an earlier run.
        """
        wanted = self.dump_ir is not None or self.dump_dir is not None
        return Dumps(self.dump_ir, self.dump_dir, force) if wanted else None


class Dumps:
    """Shows or writes intermediate values, as ``--dump-ir`` and ``--dump-dir`` ask."""

    def __init__(self, name: str | None, directory: Path | None, force: bool) -> None:
        self.name, self.directory, self._replaces = name, directory, force

    def __call__(self, mode: str, place: int, name: str, value: Any) -> None:
        """Take one value; see `colsynth.compile.run.Watch`."""
        from colsynth.pipeline import dump

        if self.directory is not None:
            if self._replaces:
                _remove(_earlier(self.directory))
                self._replaces = False
            dump.write(self.directory / mode, place, name, value)
        if self.name in (name, "all"):
            head = f"{place:02} {name}" + (f" ({mode})" if mode else "")
            tell(f"# {head}\n{dump.pretty(value)}", keep="\n")


def _check_dump_name(name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in (*known, "all"):
        phrase = f"the pipeline has no pass {name!r} to show the result of"
        raise InputError(Diagnostic("CS202", phrase, help=did_you_mean(name, (*known, "all"))))


def _earlier(folder: Path) -> list[Path]:
    """Return the dumps that an earlier run left in a folder."""
    from colsynth.compile.modes import Mode
    from colsynth.pipeline import dump

    modes = ("", Mode.IN_PLACE, Mode.OUT_OF_PLACE)
    return [path for mode in modes for path in dump.found_in(folder / mode)]


def _remove(paths: list[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as refusal:
            raise unwritable(path, refusal) from refusal


def _check_dump_dir(dumps: Path | None, destination: Destination) -> None:
    """Raise if the dumps would lie among schedules, or below a file (CS251)."""
    if dumps is None or destination.path is None:
        return
    folder, place = dumps.resolve(), destination.path.resolve()
    if folder == place or (not destination.is_directory and place in folder.parents):
        phrase = f"--dump-dir {dumps} and --output {destination.path} are in each other's way"
        note = "runtimes read every file of a directory of schedules, dumps too"
        notes = (note,) if destination.is_directory else ()
        advice = "give the dumps a directory of their own"
        raise InputError(Diagnostic("CS251", phrase, notes=notes, help=advice))
