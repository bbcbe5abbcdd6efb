"""The YAML file that ``--model`` takes: fitted constants, their intervals, and the logs."""

from __future__ import annotations

from collections.abc import Iterator

from colsynth import __version__
from colsynth.calibrate.calibrate import Calibration
from colsynth.calibrate.doubts import brief
from colsynth.calibrate.fit import Estimate, Standing
from colsynth.text import printable


def model_file(found: Calibration) -> str:
    """Return the fitted constants as YAML; equal logs give equal bytes."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Calibration) -> Iterator[str]:
    worst = max(abs(row.residual) for row in found.rows)
    yield f"# Written by colsynth calibrate {__version__}."
    yield f"# {len(found.rows)} rows, noise {found.noise:.1%}, worst residual {worst:.1%}."
    for doubt in found.doubts:
        yield f"# warning {doubt.code}: {printable(brief(doubt))}."
    yield "about:"
    yield f"  runtime: {found.runtime}"
    yield f"  topology: {_quoted(found.topology)}"
    yield "  logs:"
    for trial in found.trials:
        yield f"    - {{file: {_quoted(trial.log.name)}, sha256: {_quoted(trial.log.digest)}}}"
    told = [item for item in found.estimates if item.standing is not Standing.UNTOLD]
    for name in dict.fromkeys(item.constant.name for item in told):
        same = [item for item in told if item.constant.name == name]
        if same[0].constant.protocol is None:
            yield f"{name}: {same[0].value:.5g}  # {_comment(found, same[0])}"
            continue
        yield f"{name}:"
        for item in same:
            yield f"  {item.constant.protocol}: {item.value:.5g}  # {_comment(found, item)}"
    for item in found.untold:
        yield f"# {item.constant}: {item.default:g}, the default; the logs do not tell"
    yield f"# defaults, since no log depends on them: {', '.join(found.untouched)}"


def _comment(found: Calibration, item: Estimate) -> str:
    logs = ", ".join(found.fitted_to(item.constant))
    text = f"{item.low:.4g} to {item.high:.4g} (95 %), from {printable(logs)}"
    tied = ", ".join(map(str, item.tied_to))
    return text + (f"; with {tied} at the default" if tied else "")


def _quoted(text: str) -> str:
    """Return text as YAML and JSON both read it."""
    import json

    return json.dumps(text)
