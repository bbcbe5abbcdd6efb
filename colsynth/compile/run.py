"""From a problem to verified files: the search for a plan, then its files.

Every algorithm is compiled in the same way: one schedule, then a program for every call mode. The
bytes are verified as they would lie on disk before they are returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log

from colsynth.compile.capabilities import capability_notes, plan_notes
from colsynth.compile.files import Maker, Watch
from colsynth.compile.link_rate import best_rate, detours, link_rate
from colsynth.compile.modes import Mode, mode_notes, plan_modes
from colsynth.compile.notes import given_up, search_notes, selection_notes, warnings
from colsynth.compile.predicted import limited_by, predictions
from colsynth.compile.request import Request
from colsynth.compile.result import Artefact, Compilation, Prediction
from colsynth.compile.served import Served, served
from colsynth.errors import DefectError, Diagnostic, InputError, NegativeFinding
from colsynth.jobs.beside import Beside
from colsynth.model import (
    Problem,
    Program,
    RoundProgram,
    ThreadblockProgram,
)
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.dump import PROBLEM
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.found import Found
from colsynth.search.library import Library, library_algorithms
from colsynth.search.means import Means, onward
from colsynth.search.measured import Measured
from colsynth.search.objective import TIE, Objective, usual
from colsynth.search.plan import Plan
from colsynth.search.run import find_plan
from colsynth.simulate.passed import passed_notes
from colsynth.units import format_most, format_size


def compile_problem(
    problem: Problem,
    target: Target,
    request: Request,
    watch: Watch | None = None,
) -> Compilation:
    """Return the verified files of a request.

    Parameters
    ----------
    problem : Problem
    target : Target
        Its call modes are replaced by those of each file.
    request : Request
    watch : callable, optional
        Called with every value of the compilation that is kept.

    Raises
    ------
    InputError
        Wrong options (CS200s).
    LimitError
        No program fits the runtime.
    DefectError, VerificationError
        The bytes are wrong: a defect of colsynth, or of ``passes``.
    """
    request.check()
    if request.passes is not None:
        form = RoundProgram if target.profile.rounds else ThreadblockProgram
        Pipeline.from_text(request.passes).check(Problem, form)
    modes = plan_modes(target.profile, request.mode, request.several, problem.collective)
    if watch is not None:
        watch("", 0, PROBLEM, problem)
    compiler = _Compiler(problem, target, request, modes, Clock())
    case, objective = compiler.case()
    told = onward(target.progress)
    means = Means(request.evaluations, progress=told, beside=request.jobs > 1)
    made = compiler.best(case, objective, means, watch=None if modes[1:] else watch)
    for mode in modes[1:]:
        made = compiler.for_slower(mode, made, objective, means)
    if modes[1:] and watch is not None:
        return compiler.make(made.found, made.measured, made.library, watch).compilation
    return made.compilation


def _require_within(size: int, target: Target) -> None:
    """Refuse a size for which no call may use the file (CS212)."""
    limit = target.profile.default_max_bytes
    told = f"--size {format_size(size)} is not among the messages that the file serves"
    if target.max_bytes is None and limit is not None and size > limit:
        note = f"{target.profile.name} serves messages {format_most(limit)}"
        raise InputError(Diagnostic("CS212", told, notes=(note,), help="give a smaller --size"))
    if size < target.min_bytes:
        note, option = f"they have {format_size(target.min_bytes)} or more", "--min-bytes"
    elif target.max_bytes is not None and size > target.max_bytes:
        note, option = f"they have at most {format_size(target.max_bytes)}", "--max-bytes"
    else:
        return
    raise InputError(Diagnostic("CS212", told, notes=(note,), help=f"change --size or {option}"))


@dataclass(frozen=True)
class _Made:
    """Files, and the search that they come from.

    Parameters
    ----------
    found : Found
    measured : Measured
        The plan of the files, in the call mode of the search.
    library : Library or None
        What the files were compared with.
    compilation : Compilation
    """

    found: Found
    measured: Measured
    library: Library | None
    compilation: Compilation

    def lag(self, objective: Objective) -> float:
        """Return how many times as long the other call mode takes, over all weighted sizes."""
        slowest = {point.size_bytes: point.seconds for point in self.compilation.predicted}
        sizes = self.found.workshop.case.sizes
        rows = zip(sizes, objective.weights, self.measured.seconds, strict=True)
        return exp(sum(w * log(slowest[at] / own) for at, w, own in rows if own and at in slowest))


@dataclass(frozen=True)
class _Compiler:
    """Makes the files of a request.

    Parameters
    ----------
    problem : Problem
    target : Target
    request : Request
    modes : tuple of Mode
        The call mode of each file.
    clock : Clock
    """

    problem: Problem
    target: Target
    request: Request
    modes: tuple[Mode, ...]
    clock: Clock

    @property
    def compares(self) -> bool:
        """Whether files serve only what the library does not serve faster."""
        collective = self.problem.collective
        return self.request.compares and bool(library_algorithms(self.target.profile, collective))

    def case(self) -> tuple[Case, Objective]:
        """Return the case of the search in the first mode, and what it minimizes."""
        problem, target, request = self.problem, self.target, self.request
        limits, ranks = (target.min_bytes, target.max_bytes), problem.topology.size
        beside = self.compares and not request.least_given
        sizes, objective = usual(*limits, problem.collective, ranks, beside=beside)
        if request.size is not None:
            _require_within(request.size, target)
            sizes, objective = (request.size,), Objective()
        case = Case(
            problem,
            target.profile.name,
            sizes,
            in_place=self.modes[0].in_place,
            out_of_place=self.modes[0].out_of_place,
            min_bytes=target.min_bytes,
            max_bytes=target.max_bytes,
            model=target.model,
            seed=target.seed,
            limited=request.any_protocol,
        )
        return case, objective

    def best(
        self,
        case: Case,
        objective: Objective,
        means: Means,
        watch: Watch | None = None,
        also: tuple[Plan, ...] = (),
    ) -> _Made:
        """Return the files of the best plan in the mode of a case; `also` as for `find_plan`."""
        target = self.target
        wish = self.request.wish(target.protocol, case.size, rounds=target.profile.rounds)
        failure: NegativeFinding | DefectError | None = None
        library = Library(case)
        # A search that tries the library's algorithms, too, makes its programs on the way.
        makes = wish.is_open and library.is_made_for(case, wish.usual)
        with Beside(library.make, wanted=means.beside and self.compares and not makes) as others:
            held = library.plans if self.compares and makes else ()
            found = find_plan(case, objective, wish, means, self.clock, also, held)
            library.take(found.workshop.programs_held.items())
            library.take(iter(others.result, None))
        for measured in found.ranking:
            try:
                return self.make(found, measured, library if self.compares else None, watch)
            except (NegativeFinding, DefectError) as fault:
                failure = failure or fault  # verification refuses this one: take the next best
        raise failure or TypeError("a search without a program ends with an error")

    def for_slower(self, mode: Mode, made: _Made, objective: Objective, means: Means) -> _Made:
        """Return files for which calls of another mode were searched, if these take longer.

        All files come from one plan. Out of place, some GPUs also copy their input, so what is best
        in place may not be: a broadcast of 1 GiB by msccl on ring:4 took 3.3 times as long.
        """
        budget, before = self.request.evaluations, made.found.evaluations
        left = None if budget is None else budget - before
        if not self.request.compares or left == 0 or made.lag(objective) <= TIE:
            return made
        case = replace(made.found.workshop.case, in_place=mode.in_place)
        case = replace(case, out_of_place=mode.out_of_place)
        with suppress(NegativeFinding, DefectError):
            also = (made.measured.plan,)
            return self.best(case, objective, means.within(before, left), also=also)
        return made

    def make(
        self, found: Found, measured: Measured, library: Library | None, watch: Watch | None
    ) -> _Made:
        """Return the files of one plan; without a library, they serve all that the target does."""
        problem, target, request, modes = self.problem, self.target, self.request, self.modes
        plan, case, clock = measured.plan, found.workshop.case, found.workshop.clock
        schedule, program = found.workshop.make(plan)
        with clock.measure("library"):
            serves = _served(program, measured, found, library, request, target)
        aimed = case.target(plan.protocol)
        target = replace(target, protocol=plan.protocol, size=plan.size)
        target = serves.limit(replace(target, max_bytes=aimed.max_bytes, needed=aimed.needed))
        ours = request.passes is None
        maker = Maker(problem, target, modes, plan.pipeline, ours, watch, clock)
        lead = next(mode for mode in modes if mode.in_place == case.in_place)
        known = None if watch is not None else (schedule, lead, serves.limited(program))
        wanted = request.jobs > 1 and known is not None
        with Beside(partial(_limits, measured, found, serves), wanted=wanted) as beside:
            schedule, artefacts = maker.make(known)
            limits = beside.result()
        in_order = sorted(artefacts, key=lambda artefact: artefact.mode is not lead)
        programs = [artefact.program for artefact in in_order]
        taken = link_rate(programs[0], problem.topology, found.bound)
        links = best_rate(schedule, taken, found.bound)
        if links is not None and not found.proven:
            links = replace(links, proven=False)
        notes = (
            *given_up(found),
            *search_notes(found.start, measured, case),
            *serves.notes,
            *mode_notes(target.profile, request.mode, modes),
            *selection_notes(artefacts, target),
            *(() if _multicasts(artefacts) else capability_notes(problem, target.profile)),
            *plan_notes(problem, target.profile, plan.protocol),
            *warnings(artefacts),
            *target.profile.warnings,
            *detours(schedule, links, taken),
            *passed_notes(programs[0], problem.topology, target.profile),
        )
        predicted, slowest = predictions(measured, found, programs)
        if limits is None or limits[0] != predicted:
            limits = predicted, limited_by(slowest, case, predicted)
        compilation = Compilation(
            problem=problem,
            runtime=target.profile.name,
            algorithm=plan.algorithm,
            pipeline=plan.passes,
            schedule=schedule,
            artefacts=artefacts,
            seconds=clock.seconds(),
            notes=notes,
            predicted=predicted,
            limited_by=limits[1],
            links=links,
        )
        return _Made(found, measured, library, compilation)


def _served(
    program: Program,
    measured: Measured,
    found: Found,
    library: Library | None,
    request: Request,
    target: Target,
) -> Served:
    """Return the sizes that a file serves; all that it can, without a library."""
    if library is None:
        return Served()
    case = found.workshop.case
    times = dict(zip(case.sizes, measured.seconds, strict=True))
    sides = {"below": not request.least_given, "above": target.max_bytes is None}
    asked = request.size is not None
    return served(program, case, library, times, found.floors[-1], asked=asked, **sides)


def _limits(
    measured: Measured, found: Found, serves: Served
) -> Iterator[tuple[tuple[Prediction, ...], dict[str, float]]]:
    """Yield the predictions for the first program, and what limits the last of them."""
    program = serves.limited(found.workshop.make(measured.plan)[1])
    predicted, _ = predictions(measured, found, (program,))
    yield predicted, limited_by(program, found.workshop.case, predicted)


def _multicasts(artefacts: tuple[Artefact, ...]) -> bool:
    programs = (artefact.program for artefact in artefacts)
    return any(isinstance(p, ThreadblockProgram) and p.multicasts for p in programs)
