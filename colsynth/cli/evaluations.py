"""Options of commands that make many programs: which, at which sizes, and where."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, TypedDict

import typer

from colsynth.cli import complete
from colsynth.cli._help import SEARCH
from colsynth.cli._options import SeedOption
from colsynth.cli.progress import Show
from colsynth.errors import Diagnostic, InputError
from colsynth.jobs.cores import usable_cores

SizesOption = Annotated[
    str,
    typer.Option(
        "--sizes",
        metavar="LIST",
        help="Message sizes, e.g. 1KiB,1MiB, or a range that doubles, e.g. 1KiB..4GiB.",
    ),
]
DEFAULT_SIZES = "1KiB..4GiB"
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Number of worker processes, e.g. 4. compile uses two at most: 1 leaves out the one "
        "that shares the search.",
        rich_help_panel=SEARCH,
        show_default="all cores",
    ),
]


@dataclass(frozen=True)
class EvaluationOptions:
    """Which programs to make."""

    algorithms: Annotated[
        str | None,
        typer.Option(
            "--algorithms",
            metavar="NAMES",
            autocompletion=complete.several(complete.algorithms),
            help="Algorithms to try, e.g. forest,ring.",
            rich_help_panel=SEARCH,
            show_default="all that fit but exact",
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="Maximum number of programs that are compiled and simulated for each size.",
            rich_help_panel=SEARCH,
            show_default="128",
        ),
    ] = None
    seed: SeedOption = 0

    def names(self) -> tuple[str, ...] | None:
        """Return the algorithms asked for; None for all."""
        return None if self.algorithms is None else split(self.algorithms)


class Engine(TypedDict):
    """What evaluates, as keywords of `colsynth.api`."""

    jobs: int
    executor: Executor | None
    progress: Show


@dataclass(frozen=True)
class EngineOptions:
    """Where programs are made: in processes here, or on the workers of a scheduler."""

    jobs: JobsOption = None
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Address of a Dask scheduler whose workers are used instead, "
            "e.g. tcp://host:8786.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None

    @contextmanager
    def started(self, show: Show) -> Iterator[Engine]:
        """Yield what evaluates; with a scheduler, progress tells of its workers.

        Raises
        ------
        InputError
            CS217: both options were given; else as `colsynth.jobs.cluster.connected`.
        """
        if self.scheduler is None:
            yield Engine(jobs=jobs_or_cores(self.jobs), executor=None, progress=show)
            return
        from colsynth.jobs.cluster import connected

        if self.jobs is not None:
            phrase = "--jobs counts processes here, but --scheduler sends the work to others"
            raise InputError(Diagnostic("CS217", phrase, help="give one of them"))
        with connected(self.scheduler) as cluster:
            yield Engine(jobs=1, executor=cluster, progress=cluster.watched(show))


def split(text: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def jobs_or_cores(jobs: int | None) -> int:
    """Return a number of processes; None stands for the cores that this process may use."""
    return usable_cores() if jobs is None else jobs
