"""Options for what to synthesize, and for the effort of the synthesizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from colsynth.cli import complete
from colsynth.cli._help import SEARCH
from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.units import parse_size

_COLLECTIVE = typer.Option(
    "-c",
    "--collective",
    metavar="COLLECTIVE",
    autocompletion=complete.collectives,
    help="Collective: allgather, reduce-scatter, allreduce, broadcast, reduce or alltoall; bound "
    "and synthesize also take scatter and gather.",
    show_default=False,
)
CollectiveOption = Annotated[str, _COLLECTIVE]
AnyCollectiveOption = Annotated[str | None, _COLLECTIVE]
RUNTIMES = "msccl, msccl-executor, rccl, mscclpp (or mscclpp@0.8, mscclpp@0.10) or torch"
"""What every option for a runtime takes."""

RuntimeOption = Annotated[
    str,
    typer.Option(
        "-r",
        "--runtime",
        metavar="RUNTIME",
        autocompletion=complete.runtimes,
        help=f"Runtime that loads the schedule: {RUNTIMES}.",
    ),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="PROTOCOL",
        autocompletion=complete.words("Simple", "LL", "LL128"),
        help="Protocol: Simple, LL or LL128.",
        show_default="Simple, LL128 where that hangs",
    ),
]
TreesOption = Annotated[
    str | None,
    typer.Option(
        "--trees",
        metavar="auto|optimal|K",
        autocompletion=complete.words("auto", "optimal"),
        help="Trees per GPU: a number; optimal, the fewest that reach the optimum; or auto, the "
        "fewest within 2 % of it, or within 10 % where they are predicted to be faster.",
        rich_help_panel=SEARCH,
        show_default="auto",
    ),
]
SizeOption = Annotated[
    str | None,
    typer.Option("--size", metavar="SIZE", help="Message size, e.g. 64MB.", show_default="1GB"),
]
SketchOption = Annotated[
    Path | None,
    typer.Option(
        "--sketch",
        metavar="FILE",
        help="Sketch of the schedule, in YAML or in TACCL's JSON: connections, relays, chunks, "
        "e.g. rails.yaml. For timed schedules.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="N",
        help="Number of placed transfers after which no new try starts; 0 for no limit.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of random choices; equal seeds give equal answers.",
        rich_help_panel=SEARCH,
    ),
]


@dataclass(frozen=True)
class TimedOptions:
    """Options of the synthesis of a timed schedule."""

    chunks_per_gpu: Annotated[
        int | None,
        typer.Option(
            "--chunks-per-gpu",
            metavar="N",
            help="Number of chunks that the data of every GPU is split into, e.g. 4. The search of "
            "compile may choose more.",
            rich_help_panel=SEARCH,
            show_default="1",
        ),
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="auto|oldest|rarest|earliest",
            autocompletion=complete.words("auto", "oldest", "rarest", "earliest"),
            help="Chunk that a link sends first; with auto, the tries alternate between the "
            "others.",
            rich_help_panel=SEARCH,
            show_default="auto",
        ),
    ] = None
    gap: Annotated[
        str | None,
        typer.Option(
            "--gap",
            metavar="auto|none|latency",
            autocompletion=complete.words("auto", "none", "latency"),
            help="Time that links stay occupied after each chunk; auto is the latency where chunks "
            "are large, else none.",
            rich_help_panel=SEARCH,
            show_default="auto; compile: latency",
        ),
    ] = None
    tries: Annotated[
        int | None,
        typer.Option(
            "--tries",
            metavar="N",
            help="Number of schedules to make, e.g. 8; the best is kept. Stops at the first that "
            "meets the bound.",
            rich_help_panel=SEARCH,
            show_default=False,
        ),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            metavar="N",
            help="Largest number of steps of an exact schedule (-a exact), in each phase of an "
            "allreduce, e.g. 3. The command fails if no such schedule is found.",
            rich_help_panel=SEARCH,
            show_default="the fewest possible and one more",
        ),
    ] = None
    work: Annotated[
        int | None,
        typer.Option(
            "--work",
            metavar="N",
            help="Limit of the solver of -a exact, for all questions together, in its own units "
            "of about a second.",
            rich_help_panel=SEARCH,
            show_default="10",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.steps is not None:
            require_least("--steps", self.steps, 1)


def read_size(option: str, text: str | None) -> int | None:
    """Return a size in bytes; raise InputError CS212 if the text is not a size."""
    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as fault:
        phrase = f"{option} cannot be {text!r}"
        raise InputError(Diagnostic("CS212", phrase, notes=(str(fault),))) from None
