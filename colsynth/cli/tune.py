"""``colsynth tune``: the fewest files that are fastest at every message size."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._options import RuntimeOption
from colsynth.cli.bundles import bundled
from colsynth.cli.constants import ModelOption, given_model
from colsynth.cli.evaluations import (
    DEFAULT_SIZES,
    EngineOptions,
    EvaluationOptions,
    SizesOption,
    split,
)
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.members import OneGroupOptions, grouped
from colsynth.cli.output import refuse_to_overwrite
from colsynth.cli.places import check_folder
from colsynth.cli.progress import RESUMES, progress
from colsynth.cli.sizes import read_sizes
from colsynth.cli.streams import tell, tell_warnings
from colsynth.errors import Diagnostic, InputError, NegativeFinding
from colsynth.units import plural

if TYPE_CHECKING:
    from colsynth.cost import Model
    from colsynth.model import Topology
    from colsynth.tuning import Bundle

CollectivesOption = Annotated[
    str,
    typer.Option(
        "-c",
        "--collective",
        metavar="COLLECTIVES",
        autocompletion=complete.several(complete.collectives),
        help="One or several collectives, e.g. allreduce,allgather.",
        show_default=False,
    ),
]
BundleOption = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Directory of the bundle; the same command resumes an interrupted search for it.",
        show_default=False,
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing bundle.")]
LogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        metavar="FILE[,NAME=VALUE]",
        help="Decide by constants that are fitted to this log, as for 'colsynth calibrate'. "
        "Repeatable.",
        show_default=False,
    ),
]


@bundled
def tune(
    *,
    topology: TopologyArgument,
    collectives: CollectivesOption,
    runtime: RuntimeOption,
    output: BundleOption,
    sizes: SizesOption = DEFAULT_SIZES,
    machine: MachineOptions,
    members: OneGroupOptions,
    evaluations: EvaluationOptions,
    engine: EngineOptions,
    model: ModelOption = None,
    log: LogOption = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Tune algorithm and settings by message size; write files, env.sh and a manifest."""
    from colsynth import api
    from colsynth.runtimes import profile, require_listable
    from colsynth.tuning import forget, journal_of, refuse_to_replace

    wanted = read_sizes("--sizes", sizes)
    refuse_to_replace(output, force)
    check_folder("--output", output)
    refuse_to_overwrite((output.absolute(),), force)
    require_listable(output, profile(runtime))
    constants = given_model(runtime, model)
    damage = machine.read(topology)
    if log is not None:
        constants = _fitted(log, runtime, damage.topology, model)
    group, told = grouped(damage.topology, members.group)
    try:
        with progress(RESUMES) as show, engine.started(show) as started:
            bundle = api.tune(
                group,
                split(collectives),
                runtime,
                wanted,
                root=members.root,
                algorithms=evaluations.names(),
                budget=evaluations.budget,
                model=constants,
                seed=evaluations.seed,
                journal=journal_of(output),
                **started,
            )
    except NegativeFinding:  # the answer is no, and going on would not change it
        forget(output)
        raise
    api.write_bundle(bundle, output, force=force)
    if json:
        emit_json({**_as_object(bundle, output), **failures_field(damage), **told})
    else:
        _show(bundle, output)


def _fitted(logs: list[str], runtime: str, topology: Topology, model: Path | None) -> Model:
    """Return the constants that logs tell, and note them on stderr."""
    from colsynth.calibrate import calibrate
    from colsynth.cli.calibrate import read_option
    from colsynth.runtimes import profile

    if model is not None:
        phrase = "--log and --model both give the constants that decide"
        raise InputError(Diagnostic("CS217", phrase, help="leave one of them out"))
    read = [read_option(text) for text in logs]
    with progress("no constant was fitted") as show:
        found = calibrate(read, profile(runtime), topology, show)
    tell_warnings(found.doubts)
    told = [item for item in found.estimates if item not in found.untold]
    values = ", ".join(f"{item.constant} {item.value:.4g}" for item in told)
    tell(f"note: constants of the logs: {values or 'none, the logs tell nothing'}")
    return found.model


def _as_object(bundle: Bundle, output: Path) -> dict[str, Any]:
    from colsynth.tuning.describe import describe_bundle

    described = describe_bundle(bundle)
    for entry in described["files"]:
        entry["path"] = str(output / entry["path"])
    unserved = [{"collective": kind, "size_bytes": size} for kind, size in bundle.unserved]
    return {**described, "left_out": bundle.left_out, "unserved": unserved, "bundle": str(output)}


def _show(bundle: Bundle, output: Path) -> None:
    from colsynth.tuning.describe import describe_left

    console = answer_console()
    table = ruled_table("messages, bytes", "collective", "", "served by")
    for file in bundle.files:
        collective = file.artefact.program.header.collective.value
        mode = str(file.artefact.mode).replace("both", "both modes")
        table.add_row(_range(file.min_bytes, file.max_bytes), collective, mode, str(file.plan))
    for left in map(describe_left, bundle.left_to_library):
        span = _range(left["min_bytes"], left["max_bytes"])
        table.add_row(span, left["collective"], "", "the library itself")
    console.print(table)
    for collective, reasons in bundle.left_out.items():
        for name, reason in reasons.items():
            console.print(f"left out: {collective}: {name}: {reason}", soft_wrap=True)
    for collective, size in bundle.unserved:
        why = "the file for its range does not divide it, so the library serves it"
        console.print(f"not served: {collective} of {size} bytes: {why}", soft_wrap=True)
    if any(map(any, bundle.spent)):
        console.print("budget: it ended the search at some sizes; --budget N sets another")
    evaluated = plural(sum(bundle.evaluations), "evaluation")
    if bundle.files:
        console.print(f"{plural(len(bundle.files), 'file')} after {evaluated}, all verified")
    else:
        why = "; ".join(dict.fromkeys(left.reason for left in bundle.left_to_library))
        console.print(f"no file after {evaluated}: {why}", soft_wrap=True)
    console.print(f"use: . {shlex.quote(str(output / 'env.sh'))}", soft_wrap=True)


def _range(least: int, most: int | None) -> str:
    return f"{least} and more" if most is None else f"{least} to {most}"
