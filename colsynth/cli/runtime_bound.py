"""What no file can beat on a runtime, for ``colsynth bound --runtime``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from colsynth.cli import complete
from colsynth.cli._common import answer_console, ruled_table
from colsynth.cli._options import RUNTIMES
from colsynth.cli.constants import given_model
from colsynth.cli.evaluations import DEFAULT_SIZES
from colsynth.cli.sizes import read_sizes
from colsynth.errors import Diagnostic, InputError
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.profile import Profile
from colsynth.units import format_size

if TYPE_CHECKING:
    from colsynth.bounds.runtime import RuntimeBound
    from colsynth.cost import Model

RuntimeOption = Annotated[
    str | None,
    typer.Option(
        "-r",
        "--runtime",
        metavar="RUNTIME",
        autocompletion=complete.runtimes,
        help=f"Print also what no file can beat on a runtime, by message size: {RUNTIMES}.",
        show_default=False,
    ),
]
RuntimeSizesOption = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        metavar="LIST",
        help="Message sizes for --runtime, e.g. 1KiB,1MiB, or a range that doubles.",
        show_default=DEFAULT_SIZES,
    ),
]


class Asked(NamedTuple):
    """The runtime, the sizes and the constants that a bound is asked for."""

    runtime: Profile
    sizes: tuple[int, ...]
    model: Model | None


def asked_of_runtime(runtime: str | None, sizes: str | None, model: Path | None) -> Asked | None:
    """Return what a bound of a runtime is asked for; None without a runtime.

    Raises
    ------
    InputError
        CS501 for an unknown runtime; CS212 for wrong sizes, or options without a runtime.
    """
    if runtime is not None:
        measured = read_sizes("--sizes", sizes or DEFAULT_SIZES)
        return Asked(profile(runtime), measured, given_model(runtime, model))
    option = "--sizes" if sizes is not None else "--model"
    if sizes is None and model is None:
        return None
    advice = "name it, e.g. -r msccl; the bound of links needs neither sizes nor constants"
    raise InputError(Diagnostic("CS212", f"{option} needs a runtime", help=advice))


def runtime_fields(least: Sequence[RuntimeBound]) -> dict[str, Any]:
    """Return the JSON fields of the bounds; empty without any."""
    rows = [
        {
            "size_bytes": bound.size,
            "protocol": bound.protocol,
            "least_us": _micro(bound.seconds),
            "most_gb_per_s": round(bound.algbw / 1e9, 6),
            "binds": bound.binds,
            "links_us": _micro(bound.links),
            "threadblocks_us": _micro(bound.threadblocks),
            "latency_us": _micro(bound.latency),
        }
        for bound in least
    ]
    return {"by_size": rows} if rows else {}


def show_runtime(runtime: str, least: Sequence[RuntimeBound]) -> None:
    """Print the bounds as a table."""
    console = answer_console()
    console.print(f"\nno file of {runtime} is predicted faster; least us for each limit:")
    heads = ("size", "algbw", "links", "threadblocks", "latency", "binds", "protocol")
    table = ruled_table(*heads, right=slice(5), show_edge=False)
    for bound in least:
        times = (bound.links, bound.threadblocks, bound.latency)
        table.add_row(
            format_size(bound.size),
            f"{bound.algbw / 1e9:.4g} GB/s",
            *(f"{seconds * 1e6:.1f}" for seconds in times),
            bound.binds,
            bound.protocol,
        )
    console.print(table)


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 6)
