"""The files of a job, tuned: what serves which messages, and what the library keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from colsynth.compile.files import Maker
from colsynth.compile.modes import Mode, plan_modes
from colsynth.compile.result import Artefact
from colsynth.errors import DefectError, InputError, NegativeFinding, require_least
from colsynth.model import Collective, Problem
from colsynth.pipeline.target import aim
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import called_size, taken_sizes
from colsynth.search.case import Case
from colsynth.search.found import nothing_fits, refusals
from colsynth.search.levels import LEVELS
from colsynth.search.library import Library, library_algorithms, library_case
from colsynth.search.means import Means, in_turn
from colsynth.search.measured import Measured
from colsynth.search.plan import Plan
from colsynth.search.run import find_each
from colsynth.search.wish import algorithm_names
from colsynth.simulate import Point
from colsynth.tuning.ranges import Offer, Ranges, Segment, plan_ranges, why_left
from colsynth.units import plural

_LIBRARY = 8
"""Evaluations of a library's algorithms on another runtime: each with every protocol, at least."""


@dataclass(frozen=True)
class TunedFile:
    """A verified file of a bundle, and what it is predicted to do.

    Parameters
    ----------
    name : str
    plan : Plan
    trees_per_gpu : int or None
    min_bytes, max_bytes : int
        Inclusive.
    artefact : Artefact
    predicted : tuple of Point
        At the measured sizes of its range.
    """

    name: str
    plan: Plan
    trees_per_gpu: int | None
    min_bytes: int
    max_bytes: int
    artefact: Artefact
    predicted: tuple[Point, ...]

    def __repr__(self) -> str:
        return f"TunedFile({self.name}, {self.min_bytes} to {self.max_bytes} bytes, {self.plan})"


@dataclass(frozen=True)
class LeftOver:
    """Messages of a collective for which there is no file.

    Parameters
    ----------
    collective : Collective
    min_bytes : int
        Inclusive, as `max_bytes`.
    max_bytes : int or None
        None: all that are larger, too.
    reason : str
    """

    collective: Collective
    min_bytes: int
    max_bytes: int | None
    reason: str


@dataclass(frozen=True)
class Bundle:
    """The tuned files of a job.

    Parameters
    ----------
    cases : tuple of Case
        One per collective.
    files : tuple of TunedFile
    left_to_library : tuple of LeftOver
        With `files`, every message size once for each mode of the call.
    evaluations : tuple of int
        Per case.
    budget : int
    algorithms : tuple of str
        That were to be tried.
    left_out : dict
        Why algorithms gave no program, by collective.
    spent : tuple of tuple of bool
        Per case and size, whether the budget ended the search.
    """

    cases: tuple[Case, ...]
    files: tuple[TunedFile, ...]
    left_to_library: tuple[LeftOver, ...]
    evaluations: tuple[int, ...]
    budget: int
    algorithms: tuple[str, ...]
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    spent: tuple[tuple[bool, ...], ...] = ()

    def __repr__(self) -> str:
        """Return one line: fields hold the topology and all files."""
        first, *_ = self.cases
        names = ", ".join(case.problem.collective for case in self.cases)
        files = plural(len(self.files), "file")
        return f"Bundle({names} on {first.problem.topology.name}, {first.runtime}, {files})"

    @property
    def profile(self) -> Profile:
        """The runtime."""
        return profile(self.cases[0].runtime)

    @property
    def unserved(self) -> tuple[tuple[Collective, int], ...]:
        """Sizes asked for that lie in the range of files, none of which divides them."""
        headers = [file.artefact.program.header for file in self.files]
        laws = [(one.collective, taken_sizes(one, self.profile)) for one in headers]

        def is_unserved(problem: Problem, size: int) -> bool:
            call = called_size(size, problem.collective, problem.topology.size)
            own = [law for collective, law in laws if collective is problem.collective]
            inside = any(law.min_bytes <= call <= (law.max_bytes or inf) for law in own)
            return inside and not any(law.takes(size) for law in own)

        pairs = [(case.problem, size) for case in self.cases for size in case.sizes]
        return tuple(
            (problem.collective, size) for problem, size in pairs if is_unserved(problem, size)
        )


def tune(cases: Sequence[Case], means: Means, algorithms: Sequence[str] | None = None) -> Bundle:
    """Return the fewest verified files that serve every size, one case per collective.

    Parameters
    ----------
    cases : sequence of Case
        For one runtime, with different collectives.
    means : Means
        Its budget, for each size, is shared out evenly among the cases, one evaluation for each
        at least.
    algorithms : sequence of str, optional
        To try; all unless given.

    Raises
    ------
    InputError
        CS210 and CS213 for a wrong budget or algorithm.
    LimitError
        CS611 where no algorithm gives a program for a collective.
    """
    runtime = profile(cases[0].runtime)
    budget = LEVELS[-1].evaluations * len(cases) if means.budget is None else means.budget
    require_least("--budget", budget, len(cases))
    share = means if means.budget is None else replace(means, budget=budget // len(cases))
    names = algorithm_names(cases[0].problem, algorithms, cases[0].profile)
    turns = zip(cases, in_turn(means.progress, len(cases)), strict=True)
    explored = [find_each(case, names, replace(share, progress=turn)) for case, turn in turns]
    found = [item.measured for item in explored]
    for case, measured in zip(cases, found, strict=True):
        if all(m.refusal is not None for m in measured):
            raise nothing_fits(case, measured)
    modes = [_modes(case, runtime) for case in cases]
    pairs = list(zip(cases, found, modes, strict=True))
    offers = [
        _offer(case, measured, _library(case, measured, share), len(served))
        for case, measured, served in pairs
    ]
    plans = plan_ranges(offers, runtime.max_files)
    made = [
        _Maker(case, runtime, served, measured).make(plan)
        for (case, measured, served), plan in zip(pairs, plans, strict=True)
    ]
    return Bundle(
        cases=tuple(cases),
        files=tuple(file for files, _ in made for file in files),
        left_to_library=tuple(left for _, lefts in made for left in lefts),
        evaluations=tuple(len(measured) for measured in found),
        budget=budget,
        algorithms=names,
        left_out={str(case.problem.collective): refusals(measured) for case, measured, _ in pairs},
        spent=tuple(item.spent for item in explored),
    )


def _modes(case: Case, runtime: Profile) -> tuple[Mode, ...]:
    return plan_modes(runtime, Mode.AUTO, True, case.problem.collective)


def _library(case: Case, found: tuple[Measured, ...], means: Means) -> tuple[Measured, ...]:
    """Return what the library does by itself: its algorithms, on the runtime that has them."""
    own = library_algorithms(case.profile, case.problem.collective)
    if case.profile.library is not None and own:
        quiet = replace(means, budget=_LIBRARY, progress=None)  # short, after all others
        explored = find_each(library_case(case), own, quiet)
        found = explored.measured
    return tuple(m for m in found if m.plan.algorithm in own)


def _offer(
    case: Case, found: tuple[Measured, ...], inside: tuple[Measured, ...], files: int
) -> Offer:
    """Return what may serve a case; what the library has itself needs no file."""
    written = tuple(m for m in found if m.refusal is None and m not in inside)
    library = Library(case)  # as it stands: a small budget may have left its protocols out
    times = [[t for m in inside if (t := m.seconds[i]) is not None] for i in range(len(case.sizes))]
    for size, known in zip(case.sizes, times, strict=True):
        if (fastest := library.fastest(size, below=min(known, default=inf))) is not None:
            known.append(fastest[0])
    return Offer(written, tuple(min(row, default=None) for row in times), files)


@dataclass(frozen=True)
class _Maker:
    """Compiles the files of one case."""

    case: Case
    runtime: Profile
    modes: tuple[Mode, ...]
    found: tuple[Measured, ...]

    def make(self, plan: Ranges) -> tuple[list[TunedFile], list[LeftOver]]:
        """Return the files of a plan, and the ranges without one.

        Where a file ends before the next measured size, with the last that its protocol is
        for, the next segment begins there. Behind the last file, the library serves what is
        larger than flags count.
        """
        files: list[TunedFile] = []
        left: list[LeftOver] = []
        uncovered: int | None = None
        for segment in plan.segments:
            least, most = self._range(segment)
            least = least if uncovered is None else uncovered
            uncovered = None
            made = self._files(segment, least, most, len(files) // len(self.modes) + 1)
            files += made
            if made and made[0].min_bytes > least:
                reason = f"{self.runtime.name} needs 16 bytes for every chunk"
                self._leave(left, least, made[0].min_bytes - 1, reason)
            if not made:
                why = why_left(segment, self.found, self.runtime.max_files)
                self._leave(left, least, most, why)
            elif made[0].max_bytes != most:
                uncovered = made[0].max_bytes + 1
                if segment is plan.segments[-1]:
                    self._leave(left, uncovered, most, self._reason_behind(made[0]))
        return files, left

    def _leave(self, left: list[LeftOver], least: int, most: int | None, reason: str) -> None:
        left.append(LeftOver(self.case.problem.collective, least, most, reason))

    def _range(self, segment: Segment) -> tuple[int, int | None]:
        """Return the bytes that a segment stands for, inclusive; None is no end."""
        begins = _begins(self.case.sizes, self.case.problem)
        least = begins[segment.first] if segment.first else self.runtime.least_min_bytes
        if segment.last + 1 < len(begins):
            return least, begins[segment.last + 1] - 1
        return least, None

    def _reason_behind(self, file: TunedFile) -> str:
        """Return why a file serves nothing larger."""
        counted = self.runtime.largest_message(
            file.plan.protocol, file.artefact.program.header.chunks
        )
        full = file.max_bytes == counted
        return f"{self.runtime.name} counts no more" if full else "larger than what was measured"

    def _files(
        self, segment: Segment, least: int, most: int | None, number: int
    ) -> list[TunedFile]:
        """Return the files of a segment; the next plan where one does not fit its range."""
        for measured in segment.ranking:
            limit = self.case.limit(measured.plan.protocol)
            end = most if limit is None or (most is not None and most <= limit) else limit
            try:
                return self._compile(measured, segment, least, end, number)
            except (InputError, NegativeFinding, DefectError):
                continue
        return []

    def _compile(
        self, measured: Measured, segment: Segment, least: int, most: int | None, number: int
    ) -> list[TunedFile]:
        case, plan = self.case, measured.plan
        target = aim(case.problem, self.runtime, plan.protocol, least, most, seed=case.seed)
        target = replace(target, size=plan.size, model=case.model)
        _, artefacts = Maker(case.problem, target, self.modes, plan.pipeline).make()
        sizes = case.sizes[segment.first : segment.last + 1]
        shape = measured.shape
        return [
            TunedFile(
                name=_numbered(item.name, number),
                plan=plan,
                trees_per_gpu=None if shape is None else shape.trees_per_gpu or None,
                min_bytes=item.program.header.min_bytes,
                max_bytes=item.program.header.max_bytes or 0,
                artefact=item,
                predicted=points(case, item, sizes),
            )
            for item in artefacts
        ]


def _begins(sizes: Sequence[int], problem: Problem) -> list[int]:
    """Return the least message that each size stands for: that of a call of this size.

    Sizes so close that their calls are the same begin at themselves.
    """
    found: list[int] = []
    for size in sizes:
        called = called_size(size, problem.collective, problem.topology.size)
        found.append(called if called > max(found, default=0) else size)
    return found


def _numbered(name: str, number: int) -> str:
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{number}{dot}{suffix}"


def points(case: Case, item: Artefact, sizes: Sequence[int]) -> tuple[Point, ...]:
    """Return what a file is predicted to do at each size."""
    from colsynth.simulate import simulate

    topology = case.problem.topology
    return simulate(item.program, topology, case.profile, tuple(sizes), model=case.model)
