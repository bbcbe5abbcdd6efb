"""The solver of a fit: constants whose predictions come closest to what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from colsynth.cost import Model
from colsynth.errors import Diagnostic, InputError

Floats = NDArray[np.float64]

NARROW = 0.05
"""Half of a 95 % interval of the logarithm up to which a constant is told."""

NORMAL = 1.96
"""Standard deviations in half of a 95 % interval where the noise is known."""

WORSE = 1.5
"""Residuals (root mean square) over those of a fit of all constants from which the defaults of some
do not agree with the data: what one constant of five, at a true default, exceeds with ten rows in
one of twenty cases (F test)."""

_PRIOR = 1.0
"""Standard deviation of the prior, in the logarithm."""

_STEP = 0.01
"""Change of a logarithm for a difference quotient: events of the simulator are discrete."""

_LEAST_NOISE, _FIRST_NOISE = 0.003, 0.05
"""Relative noise of a row that is assumed at least; in the first fit, and where none is known."""

_SOFT = 2.0
"""Residuals beyond so many standard deviations count less (soft L1)."""

_STARTS = (1.0, 0.6, 1.6, 0.3, 3.0)
"""Factors on the rates of threadblocks to start from: they may or may not be the bottleneck."""

_KNOWN = 0.2
"""Half of a 95 % interval of the logarithm up to which rows may tell one speed for another."""

_FASTER, _SLOWER = 3.0, 0.6
"""Factors on the rates of threadblocks from which links, or they themselves, are the bottleneck."""

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


class Judge(Protocol):
    """Compares a model with measurements."""

    def residuals(self, model: Model) -> Floats:
        """Return the logarithms of predicted over measured."""

    def change(self, model: Model, other: Model, constant: Constant) -> Floats:
        """Return the residuals of `other` less those of `model`: they differ in one constant."""


class Solution(NamedTuple):
    """Logarithms of constants that fit, and how well the rows tell them."""

    logs: Floats
    noise: float
    information: Floats
    """Inverse of the covariance of the logarithms, with the prior."""
    uncertain: frozenset[int] = frozenset()
    """The constants of which another fit has other values, by their place."""

    def halves(self, kept: Sequence[int]) -> Floats:
        """Return half of the 95 % intervals where only some constants are free."""
        part = self.information[np.ix_(kept, kept)]
        return np.asarray(NORMAL * np.sqrt(np.diag(np.linalg.inv(part))))

    def middles(self, kept: Sequence[int], defaults: Floats) -> Floats:
        """Return the logarithms where only some constants are free: others take up the rest."""
        rest = [i for i in range(len(self.logs)) if i not in kept]
        part = self.information[np.ix_(kept, kept)]
        pull = self.information[np.ix_(kept, rest)] @ (defaults - self.logs)[rest]
        return np.asarray(self.logs[list(kept)] - np.linalg.solve(part, pull))


def best_of_starts(judge: Judge, base: Model, free: Sequence[Constant]) -> Solution:
    """Return the best fit of all constants, from the best of some starts."""
    defaults = np.log([constant.of(base) for constant in free])
    rates = np.array([constant.name == "rate" for constant in free])
    starts = [defaults + np.where(rates, math.log(factor), 0.0) for factor in _STARTS]
    errors = [np.abs(judge.residuals(model_with(base, free, start))).sum() for start in starts]
    first, *others = np.argsort(errors, kind="stable").tolist()
    found = solve(judge, base, free, starts[first], _FIRST_NOISE)
    for place in others:
        if found.noise > _POOR:
            other = solve(judge, base, free, starts[place], _FIRST_NOISE)
            found = min(found, other, key=lambda solution: solution.noise)
    return solve(judge, base, free, found.logs, found.noise)


def with_doubt(judge: Judge, base: Model, free: Sequence[Constant], whole: Solution) -> Solution:
    """Return a fit that allows for others, in which another resource is the bottleneck.

    Links or threadblocks limit large messages, and the rows of one program may fit either. Where
    they tell one speed and leave another open, that may be what they tell. How far apart two fits
    are then counts as a deviation, in which all speeds take part.
    """
    rates = np.array([constant.name == "rate" for constant in free])
    links = np.array([constant.name.endswith("efficiency") for constant in free])
    halves = whole.halves(range(len(free)))
    known, left = halves <= _KNOWN, halves > NARROW
    starts = []
    if (known & rates).any() and (left & links).any():
        starts.append(whole.logs + math.log(_FASTER) * rates)
    if (known & links).any() and (left & rates).any():
        slower = whole.logs + math.log(_SLOWER) * rates
        starts.append(np.where(links, 0.0, slower))  # links have their whole bandwidth
    found = whole
    for start in starts:
        other = solve(judge, base, free, start, whole.noise)
        if other.noise <= WORSE * whole.noise:
            apart = other.logs - whole.logs
            covariance = np.linalg.inv(found.information) + np.outer(apart, apart)
            differ = np.flatnonzero((rates | links) & (np.abs(apart) > NARROW)).tolist()
            found = found._replace(
                information=np.asarray(np.linalg.inv(covariance), np.float64),
                uncertain=found.uncertain.union(differ),
            )
    return found


def solve(
    judge: Judge, base: Model, free: Sequence[Constant], start: Floats, noise: float
) -> Solution:
    """Return the best fit from a start, where rows have this noise."""
    least_squares = _scipy()
    defaults = np.log([constant.of(base) for constant in free])
    limits = np.array([_limits(constant, at) for constant, at in zip(free, defaults, strict=True)])

    def both(logs: Floats) -> Floats:
        rows = judge.residuals(model_with(base, free, logs)) / noise
        return np.concatenate([rows, (logs - defaults) / _PRIOR])

    def slopes(logs: Floats) -> Floats:
        here = model_with(base, free, logs)
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
    rows = judge.residuals(model_with(base, free, done.x))
    scaled = slopes(done.x)[: len(rows)]
    slope, prior = scaled * noise, np.eye(len(free)) / _PRIOR**2
    freedom = len(rows) - _told_by_rows(scaled, prior)
    spread = noise_of(rows, freedom)
    wide = spread * (_student(freedom) / NORMAL if freedom >= 1 else 1.0)
    return Solution(done.x, spread, slope.T @ slope / wide**2 + prior)


def _told_by_rows(slope: Floats, prior: Floats) -> float:
    """Return how many constants the rows determine: those that the prior holds do not count."""
    told = slope.T @ slope
    return float(np.trace(np.linalg.solve(told + prior, told)))


def noise_of(rows: Floats, freedom: float) -> float:
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


def model_with(base: Model, free: Sequence[Constant], logs: Floats) -> Model:
    """Return a model with other constants, given as logarithms."""
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
