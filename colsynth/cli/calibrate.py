"""``colsynth calibrate``: the constants of the simulator from logs of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli._options import RuntimeOption
from colsynth.cli.bundles import bundled
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.places import YAML, check_file
from colsynth.cli.progress import progress
from colsynth.cli.streams import tell, tell_warnings, warnings_field
from colsynth.errors import Diagnostic, InputError, did_you_mean, require_least
from colsynth.units import format_size
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.calibrate import Calibration, Estimate
    from colsynth.calibrate.doubts import Fitted
    from colsynth.logs import Log

LogOption = Annotated[
    list[str],
    typer.Option(
        "--log",
        metavar="FILE[,NAME=VALUE]",
        help="Log of nccl-tests, rccl-tests, nvbandwidth, ib_write_bw or ib_send_lat; what it "
        "does not say itself follows: collective, algorithm, protocol, channels, e.g. "
        "run7.txt,algorithm=ring,protocol=Simple. Repeatable.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="MODEL.yaml",
        help="File to write, for --model of other commands, e.g. model.yaml.",
        show_default=False,
    ),
]
RowsOption = Annotated[
    int, typer.Option("--rows", metavar="N", help="Rows of the table of residuals; 0 for all.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing model.")]
_WORDS = ("collective", "algorithm", "protocol", "channels")


@bundled
def calibrate(
    *,
    topology: TopologyArgument,
    runtime: RuntimeOption,
    logs: LogOption,
    output: OutputOption = None,
    machine: MachineOptions,
    rows: RowsOption = 20,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Fit the constants of the simulator to measurements, and write them as a model file."""
    from colsynth.calibrate import calibrate as fit
    from colsynth.calibrate import model_file
    from colsynth.runtimes import profile

    require_least("--rows", rows, 0)
    if output is not None:
        check_file("--output", output, YAML, force)
    library = profile(runtime)
    read = [read_option(text) for text in logs]
    damage = machine.read(topology)
    with progress("no constant was fitted") as show:
        found = fit(read, library, damage.topology, show)
    if output is not None:
        write_files({output: model_file(found).encode()}, replace=force)
    if json:
        place = {"model": None if output is None else str(output)}
        emit_json({**as_object(found), **place, **failures_field(damage)})
        return
    for trial in found.trials:
        for note in trial.notes:
            tell(f"note: {trial.log.name}: {note}")
    tell_warnings(found.doubts)
    _show(found, rows, output)


def read_option(text: str) -> Log:
    """Return the log of ``FILE[,NAME=VALUE...]``.

    Raises
    ------
    InputError
        CS627: a value that cannot be; what `read_log` raises.
    """
    from colsynth.logs import Pinned, read_log
    from colsynth.logs.log import TESTS
    from colsynth.logs.nccl_tests import algorithm_of, protocol_of

    name, *parts = text.split(",")
    given: dict[str, Any] = {}
    for part in parts:
        key, sign, value = (word.strip() for word in part.partition("="))
        if not sign or key not in _WORDS:
            advice = did_you_mean(key, _WORDS)
            raise InputError(Diagnostic("CS627", f"--log {text}: what is {part!r}?", help=advice))
        known: Any = {
            "collective": value if value in TESTS.values() else TESTS.get(value),
            "algorithm": algorithm_of(value),
            "protocol": protocol_of(value),
            "channels": int(value) if value.isdigit() and int(value) else None,
        }[key]
        if known is None:
            advice = {
                "collective": did_you_mean(value, TESTS.values()),
                "protocol": did_you_mean(value, ("Simple", "LL", "LL128")),
            }.get(key, "write for instance algorithm=ring or channels=16")
            phrase = f"--log {text}: {key} cannot be {value!r}"
            raise InputError(Diagnostic("CS627", phrase, help=advice))
        if key in given:
            phrase = f"--log {text}: {key} is given twice"
            raise InputError(Diagnostic("CS627", phrase, help=f"leave one {key}= out"))
        given[key] = known
    return read_log(Path(name), Pinned(**given))


def as_object(found: Calibration) -> dict[str, Any]:
    """Return a calibration for ``--json``."""
    from colsynth.cli.constants import UNITS

    return {
        "runtime": found.runtime,
        "topology": found.topology,
        "noise": round(found.noise, 6),
        "untouched": list(found.untouched),
        "constants": [
            {
                "name": item.constant.name,
                "protocol": item.constant.protocol,
                "standing": item.standing.value,
                "unit": UNITS.get(item.constant.name),
                "default": item.default,
                "value": item.value,
                "interval_95": [item.low, item.high],
                "tied_to": [str(other) for other in item.tied_to],
                "logs": list(found.fitted_to(item.constant)),
            }
            for item in found.estimates
        ],
        "logs": [
            {
                "file": trial.log.name,
                "sha256": trial.log.digest,
                "fitted_as": trial.label,
                "notes": list(trial.notes),
            }
            for trial in found.trials
        ],
        "rows": [_row(row) for row in found.rows],
        "warnings": warnings_field(found.doubts),
    }


def _row(row: Fitted) -> dict[str, Any]:
    """Return a row; a size has times, a figure of a link has bandwidths, and no row has both."""
    pair = (row.measured, row.predicted)
    times, rates = (pair, None) if row.size is not None else (None, pair)
    return {
        "log": row.log,
        "line": row.line or None,
        "size_bytes": row.size,
        "measured_us": None if times is None else times[0] * 1e6,
        "predicted_us": None if times is None else times[1] * 1e6,
        "measured_gb_per_s": None if rates is None else rates[0] / 1e9,
        "predicted_gb_per_s": None if rates is None else rates[1] / 1e9,
        "busbw_gb_per_s": None if row.busbw is None else row.busbw / 1e9,
        "residual": row.residual,
    }


def _show(found: Calibration, most: int, output: Path | None) -> None:
    console = answer_console()
    heads = ("constant", "default", "fitted", "95 % interval", "from")
    constants = ruled_table(*heads, show_edge=False)
    for item in found.estimates:
        constants.add_row(*_cells(found, item))
    console.print(constants)
    text = f"defaults, since no log depends on them: {', '.join(found.untouched)}"
    console.print(text, soft_wrap=True)
    shown = found.rows[: most or None]
    names = ("log", "size", "measured", "predicted", "busbw", "residual")
    table = ruled_table(*names, right=slice(1, None), show_edge=False)
    for row in shown:
        size = "-" if row.size is None else format_size(row.size)
        busbw = "-" if row.busbw is None else f"{row.busbw / 1e9:.4g} GB/s"
        figures = (_figure(row.measured, row.size), _figure(row.predicted, row.size))
        table.add_row(row.log, size, *figures, busbw, f"{row.residual:+.1%}")
    console.print()
    console.print(table)
    if len(found.rows) > len(shown):
        console.print(f"and {len(found.rows) - len(shown)} more, which fit better (--rows 0)")
    worst = abs(found.rows[0].residual)
    console.print(f"worst residual {worst:.1%} of {len(found.rows)} rows; noise {found.noise:.1%}")
    if output is not None:
        console.print(f"model      {output}", soft_wrap=True)


def _cells(found: Calibration, item: Estimate) -> tuple[str, ...]:
    from colsynth.cli.constants import UNITS

    unit = UNITS.get(item.constant.name, "")
    default = f"{item.default:.4g} {unit}".strip()
    interval = f"{item.low:.4g} to {item.high:.4g}"
    logs = ", ".join(found.fitted_to(item.constant))
    if item.standing == "untold":
        return str(item.constant), default, "default", interval, "the logs do not tell"
    rough = "roughly, " if item.standing == "tied" else ""
    tied = ", ".join(map(str, item.tied_to))
    tail = f"; with {tied} at the default" if tied else ""
    return str(item.constant), default, f"{item.value:.4g}", interval, f"{rough}{logs}{tail}"


def _figure(value: float, size: int | None) -> str:
    return f"{value / 1e9:.4g} GB/s" if size is None else f"{value * 1e6:.4g} us"
