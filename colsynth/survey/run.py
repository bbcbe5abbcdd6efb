"""All failures of a survey, on several cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from colsynth.jobs.workers import Workers
from colsynth.survey.folder import Folder, claim, refuse_to_replace
from colsynth.survey.row import Row
from colsynth.survey.survey_case import Found, SurveyCase, examine, label_of
from colsynth.topology.damage import Failures
from colsynth.topology.single_failures import single_failures
from colsynth.units import percent, plural

FORMAT, VERSION = "colsynth survey", 2

Progress = Callable[[str, int, int], None]
_Item = tuple[int, Failures]


@dataclass(frozen=True)
class Survey:
    """What every single failure costs.

    Parameters
    ----------
    case : SurveyCase
    healthy : Row
    rows : tuple of Row
        The worst first: by bound, then by what the schedule reaches.
    """

    case: SurveyCase
    healthy: Row
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        """Return one line: fields hold the topology and every failure."""
        case, problem = self.case, self.case.problem
        found = [f"{problem.collective} on {problem.topology.name}", case.runtime]
        found.append(f"{plural(len(self.rows), 'failure')} of {', '.join(case.kinds)}")
        if self.rows:
            worst = self.rows[0]
            found.append(f"{worst.failure} costs {percent(self.loss(worst)):.3g} % of the bound")
        return f"Survey({', '.join(found)})"

    def loss(self, row: Row) -> Fraction:
        """Return the share of the healthy bound that a failure costs."""
        return 1 - row.bound / self.healthy.bound

    def describe(self) -> dict[str, Any]:
        """Return the whole survey as plain values, ready for JSON."""
        case, problem = self.case, self.case.problem
        return {
            "format": FORMAT,
            "version": VERSION,
            "topology": problem.topology.name,
            "ranks": problem.topology.size,
            "collective": problem.collective.value,
            "root": problem.root,
            "runtime": case.runtime,
            "algorithm": case.algorithm,
            "protocol": case.protocol,
            "trees": case.trees,
            "seed": case.seed,
            **({} if case.model is None else {"model": case.model.digest}),
            "surveyed": list(case.kinds),
            "healthy": self.healthy.entry(),
            "rows": [{**row.entry(), **self._losses(row)} for row in self.rows],
        }

    def _losses(self, row: Row) -> dict[str, float | None]:
        """Return losses of the bound and of the schedule, in percent."""
        lost = None
        if row.algbw is not None and self.healthy.algbw is not None:
            lost = percent(1 - row.algbw / self.healthy.algbw)
        return {"loss_percent": percent(self.loss(row)), "algbw_loss_percent": lost}


def survey(
    case: SurveyCase,
    place: Path | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
    *,
    force: bool = False,
) -> Survey:
    """Return what every failure of a case costs.

    Parameters
    ----------
    case : SurveyCase
    place : Path, optional
        A folder that is given every row as soon as it is known, and the table at the end;
        rows that it holds are not worked out again.
    workers : Workers, optional
    progress : callable, optional
        Told (failure, failures done, failures in all), the healthy topology counted.
    force : bool
        Whether a survey of something else in `place` is replaced.

    Raises
    ------
    InputError
        CS136: nothing of a kind is there to fail. CS207: something else stands in `place`.
        CS250: another process works there. Wrong options.
    LimitError
        The runtime runs no such collective.
    ColsynthError
        There is no bound for such a problem.
    """
    case.check()
    items = tuple(enumerate(_failures(case)))
    if place is not None:
        refuse_to_replace(place, case.identity(), force)
    with claim(place):
        folder = Folder(place, case.identity(), force)
        done = _surveyed(case, folder, items, workers or Workers(), progress)
        folder.publish(done.describe())
    return done


def _surveyed(
    case: SurveyCase,
    folder: Folder,
    items: Sequence[_Item],
    workers: Workers,
    progress: Progress | None,
) -> Survey:
    """Return the survey, with rows that the folder has or that it is given now."""
    rows = _known(case, folder, items)
    waiting = [item for item in items if item[0] not in rows]
    if progress is not None:
        progress("surveying", len(rows), len(items))
    # The healthy one first and alone: it finds wrong options, and compiles kernels once for all.
    alone = sum(number == 0 for number, _ in waiting)
    for part in (waiting[:alone], waiting[alone:]):
        for number, found in workers.run(partial(_numbered, case), part):
            rows[number] = folder.keep(number, found)
            if progress is not None:
                bare = sum(row.refusal is not None for row in rows.values())
                what = f"surveyed {found.row.failure or 'healthy'}"
                what += f", {bare} without a schedule" if bare else ""
                progress(what, len(rows), len(items))
    healthy, *broken = (rows[number] for number, _ in items)
    return Survey(case, healthy, tuple(sorted(broken, key=_badness)))


def _failures(case: SurveyCase) -> tuple[Failures, ...]:
    """Return none at all, for the healthy topology, then every failure."""
    topology = case.problem.topology
    return (Failures(), *chain(*(single_failures(topology, kind) for kind in case.kinds)))


def _known(case: SurveyCase, folder: Folder, items: Sequence[_Item]) -> dict[int, Row]:
    """Return the rows of an earlier run, by number."""
    topology = case.problem.topology
    recalled = (
        (number, folder.recall(number, label_of(topology, failures))) for number, failures in items
    )
    return {number: row for number, row in recalled if row is not None}


def _numbered(case: SurveyCase, item: _Item) -> tuple[int, Found]:
    return item[0], examine(case, item[1])


def _badness(row: Row) -> tuple[Fraction, Fraction]:
    return row.bound, row.algbw or Fraction(0)
