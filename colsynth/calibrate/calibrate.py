"""From logs to a model: trials, the fit, and how far each row is from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from colsynth.calibrate.doubts import Fitted, brief, doubts_of
from colsynth.calibrate.fit import Estimate, Standing, fit
from colsynth.calibrate.solution import Constant
from colsynth.calibrate.trials import Floats, Trial, busbw, trials_of
from colsynth.cost import NAMES, Model, default_model
from colsynth.errors import Diagnostic, InputError
from colsynth.logs import Log
from colsynth.model import Topology
from colsynth.runtimes.profile import Profile

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Calibration:
    """What logs tell of a machine.

    Parameters
    ----------
    runtime, topology : str
    model : Model
    estimates : tuple of Estimate
    trials : tuple of Trial
        Also those without a row to fit.
    rows : tuple of Fitted
        The worst first.
    noise : float
        Relative noise of the rows.
    doubts : tuple of Diagnostic
        Warnings: contradictions of logs, and logs that the model does not reproduce.
    """

    runtime: str
    topology: str
    model: Model
    estimates: tuple[Estimate, ...]
    trials: tuple[Trial, ...]
    rows: tuple[Fitted, ...]
    noise: float
    doubts: tuple[Diagnostic, ...] = ()

    def fitted_to(self, constant: Constant) -> tuple[str, ...]:
        """Return the names of the logs that a constant was fitted to."""
        names = (trial.log.name for trial in self.trials if tuple(constant) in trial.constants)
        return tuple(dict.fromkeys(names))

    @property
    def untouched(self) -> tuple[str, ...]:
        """Constants that no row depends on: each by name, with protocols where some are fitted."""
        seen = {item.constant for item in self.estimates}
        names = []
        for name in NAMES:
            value = getattr(self.model, name)
            protocols = tuple(value) if isinstance(value, dict) else (None,)
            left = [p for p in protocols if Constant(name, p) not in seen]
            if left == list(protocols):
                names.append(name)
            else:
                names += [f"{name} {protocol}" for protocol in left]
        return tuple(names)

    @property
    def untold(self) -> tuple[Estimate, ...]:
        """Constants that keep their defaults."""
        return tuple(item for item in self.estimates if item.standing is Standing.UNTOLD)


def calibrate(
    logs: Sequence[Log], profile: Profile, topology: Topology, progress: Progress | None = None
) -> Calibration:
    """Return the constants that logs tell.

    Parameters
    ----------
    logs : sequence of Log
    profile : Profile
        The runtime whose constants are fitted.
    topology : Topology
        Of the machine; runs may have been on a part of it.
    progress : callable, optional

    Raises
    ------
    InputError
        CS623: a log is of another machine. CS624: no row of any log can be fitted. CS625: the
        runtime's files are not programs of threadblocks. CS626: scipy is not installed.
        CS627: copies of one log are said to be of different runs. CS628: no constants reproduce
        the logs.
    """
    if profile.rounds:
        phrase = f"{profile.name} has no programs of threadblocks whose constants could be fitted"
        advice = f"calibrate the library underneath: -r {profile.library}"
        raise InputError(Diagnostic("CS625", phrase, help=advice))
    trials = trials_of(logs, profile, topology)
    doubts = tuple(doubt for trial in trials for doubt in trial.log.doubts)
    used = _without_copies([trial for trial in trials if len(trial.measured)])
    if not used:
        notes = tuple(f"{x.log.name}: {note}" for x in trials for note in dict.fromkeys(x.notes))
        notes += tuple(map(brief, doubts))
        phrase = "no row of the logs can be fitted"
        advice = "measure with NCCL_ALGO=Ring NCCL_PROTO=Simple, or say so behind --log FILE"
        raise InputError(Diagnostic("CS624", phrase, notes=notes, help=advice))
    base = default_model(profile)
    names = dict.fromkeys(Constant(*pair) for trial in used for pair in trial.constants)
    order = sorted(names, key=lambda item: (item.protocol or "", item.name))
    model, estimates, noise = fit(_Trials(used, progress), base, order)
    by_log = {trial.log.path: _rows(trial, model) for trial in used}
    rows = sorted((row for own in by_log.values() for row in own), key=_badness)
    doubts += doubts_of(by_log, noise, tuple(map(brief, doubts)))
    return Calibration(
        profile.name, topology.name, model, estimates, trials, tuple(rows), noise, doubts
    )


class _Trials:
    """Compares a model with all trials; simulates only what a constant can change."""

    def __init__(self, trials: Sequence[Trial], progress: Progress | None) -> None:
        self.trials, self.progress, self.done = trials, progress, 0
        self._model: Model | None = None
        self._parts: list[Floats] = []

    def residuals(self, model: Model) -> Floats:
        """Return the logarithms of predicted over measured."""
        return np.concatenate(self._of(model))

    def change(self, model: Model, other: Model, constant: Constant) -> Floats:
        """Return the residuals of `other` less those of `model`."""
        return np.concatenate([
            self._logs(trial, other) - part
            if tuple(constant) in trial.constants
            else np.zeros(len(part))
            for trial, part in zip(self.trials, self._of(model), strict=True)
        ])  # fmt: skip

    def _of(self, model: Model) -> list[Floats]:
        if self._model != model:
            self._model, self._parts = model, [self._logs(trial, model) for trial in self.trials]
        return self._parts

    def _logs(self, trial: Trial, model: Model) -> Floats:
        self.done += 1
        if self.progress is not None:
            self.progress("fitting", self.done, 0)
        return np.asarray(np.log(trial.predicted(model) / trial.measured))


def _badness(row: Fitted) -> tuple[float, str, int]:
    return -abs(row.residual), row.log, row.size or 0


def _without_copies(trials: list[Trial]) -> list[Trial]:
    """Return trials without copy engines where kernels tell of the links: those are slower."""
    inside = any(("link_efficiency", None) in trial.constants for trial in trials if trial.program)
    return [trial for trial in trials if not (inside and trial.log.tool == "nvbandwidth")]


def _rows(trial: Trial, model: Model) -> list[Fitted]:
    pairs = zip(trial.measured.tolist(), trial.predicted(model).tolist(), strict=True)
    if trial.program is None:
        return [Fitted(trial.log.name, None, *pair, None) for pair in pairs]
    return [
        Fitted(trial.log.name, row.size, *pair, busbw(trial, row), row.line)
        for row, pair in zip(trial.log.rows, pairs, strict=True)
    ]
