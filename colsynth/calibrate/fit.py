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
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from colsynth.calibrate.solution import (
    NARROW,
    NORMAL,
    WORSE,
    Constant,
    Floats,
    Judge,
    Solution,
    best_of_starts,
    model_with,
    noise_of,
    solve,
    with_doubt,
)
from colsynth.cost import Model

ROUGH = 0.8
"""Half of a 95 % interval of the logarithm up to which a constant is fitted at all."""

_RELATED = 0.3
"""Correlation from which one constant may stand for another."""


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
    whole = best_of_starts(judge, base, free)
    kept, final = _settled(judge, base, free, whole)
    told = with_doubt(judge, base, free, whole)
    if final is None:
        rows = judge.residuals(base)
        return base, _estimates(base, free, told, kept, told), noise_of(rows, len(rows))
    model = model_with(base, [free[i] for i in kept], final.logs)
    return model, _estimates(base, free, told, kept, final), final.noise


def _kept(whole: Solution, defaults: Floats) -> list[int]:
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
    judge: Judge, base: Model, free: Sequence[Constant], whole: Solution
) -> tuple[list[int], Solution | None]:
    """Return which constants are fitted, and their fit: None where all are at their defaults.

    What `_kept` expects of the others' defaults holds close to the best fit alone. So the fit is
    compared with that of all constants; where it is worse, the least likely default goes, too.
    """
    defaults = np.log([constant.of(base) for constant in free])
    kept = _kept(whole, defaults)
    off = np.abs(whole.logs - defaults) / whole.halves(range(len(free)))
    most = WORSE * max(whole.noise, _size(judge, model_with(base, free, whole.logs)))
    while True:
        own = [free[i] for i in kept]
        found = solve(judge, base, own, whole.logs[kept], whole.noise) if kept else None
        model = base if found is None else model_with(base, own, found.logs)
        left = [i for i in range(len(free)) if i not in kept]
        if not left or _size(judge, model) <= most:
            return kept, found
        kept = sorted([*kept, max(left, key=lambda i: float(off[i]))])


def _size(judge: Judge, model: Model) -> float:
    """Return the root mean square of the residuals of a model."""
    return float(np.sqrt(np.mean(judge.residuals(model) ** 2)))


def _estimates(
    base: Model, free: list[Constant], whole: Solution, kept: list[int], final: Solution
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
        alone = float(NORMAL * deviations[place])
        middle = fitted.get(place, float(whole.logs[place]))
        half = float(narrow.get(place, alone)) if alone > NARROW else alone
        others = tuple(
            other
            for number, other in enumerate(free)
            if number not in fitted
            and (related[place, number] > _RELATED or {place, number} <= whole.uncertain)
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
