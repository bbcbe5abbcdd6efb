"""Robust least squares of the constants, in logarithms, and what the data can tell of each.

Residuals are logarithms of predicted over measured times, so every row counts by its relative
error. Constants are positive and fitted as logarithms, too. A weak prior, wide by a factor of e,
holds those in place that no row tells of. A constant is *told* if its 95 % interval is narrow
while all others are free; *tied* if it is narrow only once others stay at their defaults, of which
the data then knows a sum; else it keeps its default. No default is kept that the data rules out.

With few rows, intervals are wider: Student's t for the rows that the constants leave over. Where
they leave less than one, residuals say nothing of the noise, and that of the first fit is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from colsynth.cost import Model
from colsynth.errors import Diagnostic, InputError

Floats = NDArray[np.float64]

NARROW, ROUGH = 0.05, 0.8
"""Half of a 95 % interval of the logarithm up to which a constant is told, or fitted at all."""

_PRIOR = 1.0
"""Standard deviation of the prior, in the logarithm."""

_STEP = 0.01
"""Change of a logarithm for a difference quotient: events of the simulator are discrete."""

_LEAST_NOISE, _FIRST_NOISE = 0.003, 0.05
"""Relative noise of a row that is assumed at least; in the first fit, and where none is known."""

_SOFT = 2.0
"""Residuals beyond so many standard deviations count less (soft L1)."""

_NORMAL = 1.96
"""Standard deviations in half of a 95 % interval where the noise is known."""

_RELATED = 0.3
"""Correlation from which one constant may stand for another."""

_STARTS = (1.0, 0.6, 1.6, 0.3, 3.0)
"""Factors on the rates of threadblocks to start from: they may or may not be the bottleneck."""

_WORSE = 1.5
"""Residuals (root mean square) over those of a fit of all constants from which the defaults of some
do not agree with the data: what one constant of five, at a true default, exceeds with ten rows in
one of twenty cases (F test)."""

_POOR = 0.1
"""Noise from which a fit may have gone astray, so that it is tried from the other starts too."""


class Constant(NamedTuple):
    """A constant of the model; protocol is None for those that have one value."""

    name: str
    protocol: str | None

    def __str__(self) -> str:
        return self.name if self.protocol is None else f"{self.name} {self.protocol}"

    def of(self, model: Model) -> float:
        """Return its value in a model."""
        value = getattr(model, self.name)
        return float(value if self.protocol is None else value[self.protocol])

    def put(self, model: Model, value: float) -> Model:
        """Return a model with another value."""
        changed: Any = value
        if self.protocol is not None:
            changed = {**getattr(model, self.name), self.protocol: value}
        return replace(model, **{self.name: changed})


class Standing(StrEnum):
    """What the data says of a constant."""

    TOLD = "told"
    TIED = "tied"
    UNTOLD = "untold"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A constant after a fit.

    Parameters
    ----------
    constant : Constant
    default, value : float
        Equal for one that the data does not tell.
    low, high : float
        Ends of the 95 % interval; of an untold one, what the data would allow: its default is
        between them.
    standing : Standing
    tied_to : tuple of Constant
        Constants at their defaults that this one stands for in part.
    """

    constant: Constant
    default: float
    value: float
    low: float
    high: float
    standing: Standing
    tied_to: tuple[Constant, ...] = ()


class Judge(Protocol):
    """Compares a model with measurements."""

    def residuals(self, model: Model) -> Floats:
        """Return the logarithms of predicted over measured."""

    def change(self, model: Model, other: Model, constant: Constant) -> Floats:
        """Return the residuals of `other` less those of `model`: they differ in one constant."""


class _Solution(NamedTuple):
    logs: Floats
    noise: float
    information: Floats
    """Inverse of the covariance of the logarithms, with the prior."""

    def halves(self, kept: Sequence[int]) -> Floats:
        """Return half of the 95 % intervals where only some constants are free."""
        part = self.information[np.ix_(kept, kept)]
        return np.asarray(_NORMAL * np.sqrt(np.diag(np.linalg.inv(part))))

    def middles(self, kept: Sequence[int], defaults: Floats) -> Floats:
        """Return the logarithms where only some constants are free: others take up the rest."""
        rest = [i for i in range(len(self.logs)) if i not in kept]
        part = self.information[np.ix_(kept, kept)]
        pull = self.information[np.ix_(kept, rest)] @ (defaults - self.logs)[rest]
        return np.asarray(self.logs[list(kept)] - np.linalg.solve(part, pull))


def fit(
    judge: Judge, base: Model, constants: Sequence[Constant]
) -> tuple[Model, tuple[Estimate, ...], float]:
    """Return the fitted model, every constant, and the relative noise of the rows.

    Parameters
    ----------
    judge : Judge
    base : Model
        Defaults, and the values of all other constants.
    constants : sequence of Constant
        What may be fitted.

    Raises
    ------
    InputError
        CS626: scipy is not installed.
    """
    free = [constant for constant in constants if constant.of(base) > 0]
    whole = _best(judge, base, free)
    kept, final = _settled(judge, base, free, whole)
    if final is None:
        rows = judge.residuals(base)
        return base, _estimates(base, free, whole, kept, whole), _noise(rows, len(rows))
    model = _model(base, [free[i] for i in kept], final.logs)
    return model, _estimates(base, free, whole, kept, final), final.noise


def _kept(whole: _Solution, defaults: Floats) -> list[int]:
    """Return which constants to fit: those that the data tells, or whose default it rules out."""
    kept = list(range(len(defaults)))
    firm = np.abs(whole.logs - defaults) > whole.halves(kept)
    while kept:
        halves = whole.halves(kept)
        off = np.abs(whole.middles(kept, defaults) - defaults[kept]) > halves
        loose = np.where(off | firm[kept], 0.0, halves)
        if loose.max() <= ROUGH:
            break
        kept.pop(int(np.argmax(loose)))
    return kept


def _settled(
    judge: Judge, base: Model, free: Sequence[Constant], whole: _Solution
) -> tuple[list[int], _Solution | None]:
    """Return which constants are fitted, and their fit: None where all are at their defaults.

    What `_kept` expects of the others' defaults holds close to the best fit alone. So the fit is
    compared with that of all constants; where it is worse, the least likely default goes, too.
    """
    defaults = np.log([constant.of(base) for constant in free])
    kept = _kept(whole, defaults)
    off = np.abs(whole.logs - defaults) / whole.halves(range(len(free)))
    most = _WORSE * max(whole.noise, _size(judge, _model(base, free, whole.logs)))
    while True:
        own = [free[i] for i in kept]
        found = _solve(judge, base, own, whole.logs[kept], whole.noise) if kept else None
        model = base if found is None else _model(base, own, found.logs)
        left = [i for i in range(len(free)) if i not in kept]
        if not left or _size(judge, model) <= most:
            return kept, found
        kept = sorted([*kept, max(left, key=lambda i: float(off[i]))])


def _size(judge: Judge, model: Model) -> float:
    """Return the root mean square of the residuals of a model."""
    return float(np.sqrt(np.mean(judge.residuals(model) ** 2)))


def _estimates(
    base: Model, free: list[Constant], whole: _Solution, kept: list[int], final: _Solution
) -> tuple[Estimate, ...]:
    covariance = np.linalg.inv(whole.information)
    deviations = np.sqrt(np.diag(covariance))
    related = np.abs(covariance) / np.outer(deviations, deviations)
    narrow = dict(zip(kept, final.halves(range(len(kept))), strict=True))
    # Where nothing is kept, `final` is `whole`.
    fitted = dict(zip(kept, final.logs[: len(kept)].tolist(), strict=True))
    estimates = []
    for place, constant in enumerate(free):
        default = constant.of(base)
        alone = float(_NORMAL * deviations[place])
        middle = fitted.get(place, float(whole.logs[place]))
        half = float(narrow.get(place, alone)) if alone > NARROW else alone
        others = tuple(
            other
            for number, other in enumerate(free)
            if number not in fitted and related[place, number] > _RELATED
        )
        standing = Standing.TOLD if alone <= NARROW else Standing.TIED
        if place not in fitted:
            standing = Standing.UNTOLD
        value = math.exp(middle) if place in fitted else default
        limit = 1.0 if constant.name.endswith("efficiency") else math.inf
        ends = math.exp(middle - half), min(math.exp(middle + half), limit)
        tied = others if standing is Standing.TIED else ()
        estimates.append(Estimate(constant, default, value, *ends, standing, tied))
    return tuple(estimates)


def _best(judge: Judge, base: Model, free: Sequence[Constant]) -> _Solution:
    """Return the best fit of all constants, from the best of some starts."""
    defaults = np.log([constant.of(base) for constant in free])
    rates = np.array([constant.name == "rate" for constant in free])
    starts = [defaults + np.where(rates, math.log(factor), 0.0) for factor in _STARTS]
    errors = [np.abs(judge.residuals(_model(base, free, start))).sum() for start in starts]
    first, *others = np.argsort(errors, kind="stable").tolist()
    found = _solve(judge, base, free, starts[first], _FIRST_NOISE)
    for place in others:
        if found.noise > _POOR:
            other = _solve(judge, base, free, starts[place], _FIRST_NOISE)
            found = min(found, other, key=lambda solution: solution.noise)
    return _solve(judge, base, free, found.logs, found.noise)


def _solve(
    judge: Judge, base: Model, free: Sequence[Constant], start: Floats, noise: float
) -> _Solution:
    least_squares = _scipy()
    defaults = np.log([constant.of(base) for constant in free])
    limits = np.array([_limits(constant, at) for constant, at in zip(free, defaults, strict=True)])

    def both(logs: Floats) -> Floats:
        rows = judge.residuals(_model(base, free, logs)) / noise
        return np.concatenate([rows, (logs - defaults) / _PRIOR])

    def slopes(logs: Floats) -> Floats:
        here = _model(base, free, logs)
        columns = []
        for constant, at, most in zip(free, logs.tolist(), limits[:, 1].tolist(), strict=True):
            step = _STEP if at + _STEP <= most else -_STEP
            other = constant.put(here, math.exp(at + step))
            columns.append(judge.change(here, other, constant) / step)
        return np.concatenate([np.stack(columns, axis=1) / noise, np.eye(len(free)) / _PRIOR])

    first = np.clip(start, limits[:, 0] + 1e-9, limits[:, 1] - 1e-9)
    done = least_squares(
        both, first, jac=slopes, bounds=limits.T, loss="soft_l1", f_scale=_SOFT,
        xtol=1e-3, ftol=1e-4, max_nfev=20,
    )  # fmt: skip
    rows = judge.residuals(_model(base, free, done.x))
    scaled = slopes(done.x)[: len(rows)]
    slope, prior = scaled * noise, np.eye(len(free)) / _PRIOR**2
    freedom = len(rows) - _told_by_rows(scaled, prior)
    spread = _noise(rows, freedom)
    wide = spread * (_student(freedom) / _NORMAL if freedom >= 1 else 1.0)
    return _Solution(done.x, spread, slope.T @ slope / wide**2 + prior)


def _told_by_rows(slope: Floats, prior: Floats) -> float:
    """Return how many constants the rows determine: those that the prior holds do not count."""
    told = slope.T @ slope
    return float(np.trace(np.linalg.solve(told + prior, told)))


def _noise(rows: Floats, freedom: float) -> float:
    """Return the standard deviation of residuals, in which those far out count as three.

    `freedom` is the number of rows that the constants leave over.
    """
    least = _LEAST_NOISE if freedom >= 1 else _FIRST_NOISE
    usual = max(float(np.median(np.abs(rows))) * 1.4826, least)
    clipped = np.clip(rows, -3 * usual, 3 * usual)
    return max(usual, math.sqrt(float(clipped @ clipped) / max(1.0, freedom)))


def _student(freedom: float) -> float:
    """Return the standard deviations in half of a 95 % interval where residuals tell the noise."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def _limits(constant: Constant, default: float) -> tuple[float, float]:
    """Return between what a logarithm may lie: shares end at one."""
    if constant.name.endswith("efficiency"):
        return math.log(0.02), 0.0
    return default - math.log(20), default + math.log(20)


def _model(base: Model, free: Sequence[Constant], logs: Floats) -> Model:
    model = base
    for constant, value in zip(free, np.exp(logs).tolist(), strict=True):
        model = constant.put(model, value)
    return model


def _scipy() -> Any:
    """Return scipy's solver."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        phrase = "calibrate needs scipy, which is not installed"
        advice = "pip install 'colsynth[calibrate]'"
        raise InputError(Diagnostic("CS626", phrase, help=advice)) from None
    return least_squares
