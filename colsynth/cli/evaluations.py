"""Options of commands that simulate many programs at many sizes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from colsynth.cli import complete
from colsynth.cli._help import SEARCH
from colsynth.cli._options import SeedOption

SizesOption = Annotated[
    str,
    typer.Option(
        "--sizes",
        metavar="LIST",
        help="Message sizes, e.g. 1KiB,1MiB, or a range that doubles, e.g. 1KiB..4GiB.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        help="Number of worker processes, e.g. 4.",
        rich_help_panel=SEARCH,
        show_default="all cores",
    ),
]
DEFAULT_SIZES = "1KiB..4GiB"


@dataclass(frozen=True)
class EvaluationOptions:
    """Which programs to make, and with how many processes."""

    algorithms: Annotated[
        str | None,
        typer.Option(
            "--algorithms",
            metavar="NAMES",
            autocompletion=complete.several(complete.algorithms),
            help="Algorithms to try, e.g. forest,ring.",
            rich_help_panel=SEARCH,
            show_default="all",
        ),
    ] = None
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="Maximum number of programs that are compiled and simulated.",
            rich_help_panel=SEARCH,
            show_default="128 per collective",
        ),
    ] = None
    jobs: JobsOption = None
    seed: SeedOption = 0

    def names(self) -> tuple[str, ...] | None:
        """Return the algorithms asked for; None for all."""
        return None if self.algorithms is None else split(self.algorithms)


def split(text: str) -> tuple[str, ...]:
    """Return the names of a list separated by commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def cores(jobs: int | None) -> int:
    """Return the number of processes asked for (else CS210), or the cores there are to use."""
    from colsynth.jobs.workers import require_jobs

    if jobs is not None:
        require_jobs(jobs)
        return jobs
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1
