"""From a problem to verified files: the search for a plan, then its files.

Every algorithm is compiled in the same way: one schedule, then a program for every call mode. The
bytes are verified as they would lie on disk before they are returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from colsynth.compile.capabilities import capability_notes, plan_notes
from colsynth.compile.files import Maker, Watch, aimed
from colsynth.compile.link_rate import best_rate, detours, link_rate
from colsynth.compile.modes import Mode, mode_notes, plan_modes
from colsynth.compile.predicted import limited_by, predictions
from colsynth.compile.request import Request
from colsynth.compile.result import Artefact, Compilation, Prediction
from colsynth.compile.served import Served, compared, served
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
from colsynth.runtimes.selection import taken_sizes, unused
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.found import Found
from colsynth.search.library import Library, library_algorithms
from colsynth.search.means import Means
from colsynth.search.measured import Measured
from colsynth.search.objective import Objective, usual
from colsynth.search.run import find_plan
from colsynth.simulate.passed import passed_notes
from colsynth.units import format_size

_PLACE = re.compile(r"\b(rank|threadblock|step) \d+")
"""Where in a file a finding is."""


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
    clock = Clock()
    modelled = bool(library_algorithms(target.profile, problem.collective))
    compares, beside = modelled and request.compares, request.jobs > 1
    case, objective = _case(
        problem, target, request, modes, beside=compares and not request.least_given
    )
    means = Means(request.evaluations, progress=target.progress, beside=beside)
    wish = request.wish(target.protocol, rounds=target.profile.rounds)
    failure: NegativeFinding | DefectError | None = None
    library = Library(case)
    rival = library if compares else None
    ahead = partial(library.ahead, compared(case))
    with Beside(ahead, wanted=beside and compares) as others:
        library.follow(others)
        found = find_plan(case, objective, wish, means, clock)
        for measured in found.ranking:
            try:
                return _compiled(problem, target, request, modes, watch, found, measured, rival)
            except (NegativeFinding, DefectError) as fault:
                failure = failure or fault  # verification refuses this program: take the next best
    raise failure or TypeError("a search without a program ends with an error")


def _case(
    problem: Problem, target: Target, request: Request, modes: tuple[Mode, ...], *, beside: bool
) -> tuple[Case, Objective]:
    """Return the case of the search, and what it minimizes; `beside` as for `usual`."""
    limits, ranks = (target.min_bytes, target.max_bytes), problem.topology.size
    sizes, objective = usual(*limits, problem.collective, ranks, beside=beside)
    if request.size is not None:
        _require_within(request.size, target)
        sizes, objective = (request.size,), Objective()
    first = aimed(target, modes[0])
    case = Case(
        problem,
        target.profile.name,
        sizes,
        in_place=first.in_place,
        out_of_place=first.out_of_place,
        min_bytes=target.min_bytes,
        max_bytes=target.max_bytes,
        model=target.model,
        seed=target.seed,
        limited=request.any_protocol,
    )
    return case, objective


def _require_within(size: int, target: Target) -> None:
    """Refuse a size for which no call may use the file (CS212)."""
    limit = target.profile.default_max_bytes
    told = f"--size {size} is not among the messages that the file serves"
    if target.max_bytes is None and limit is not None and size > limit:
        note = f"{target.profile.name} serves messages of at most {limit} bytes"
        raise InputError(Diagnostic("CS212", told, notes=(note,), help="give a smaller --size"))
    if size < target.min_bytes:
        note, option = f"they have {target.min_bytes} bytes or more", "--min-bytes"
    elif target.max_bytes is not None and size > target.max_bytes:
        note, option = f"they have at most {target.max_bytes} bytes", "--max-bytes"
    else:
        return
    raise InputError(Diagnostic("CS212", told, notes=(note,), help=f"change --size or {option}"))


def _compiled(
    problem: Problem,
    target: Target,
    request: Request,
    modes: tuple[Mode, ...],
    watch: Watch | None,
    found: Found,
    measured: Measured,
    library: Library | None,
) -> Compilation:
    """Return the files of one plan; without a library, they serve all that the target does."""
    plan, case, clock = measured.plan, found.workshop.case, found.workshop.clock
    schedule, program = found.workshop.make(plan)
    with clock.measure("library"):
        serves = _served(program, measured, found, library, request, target)
    most = case.target(plan.protocol).max_bytes
    target = replace(target, protocol=plan.protocol, size=case.size, max_bytes=most)
    target = serves.limit(target)
    ours = request.passes is None
    maker = Maker(problem, target, modes, plan.pipeline, ours, watch, clock)
    known = None if watch is not None else (schedule, serves.limited(program))
    wanted = request.jobs > 1 and known is not None
    with Beside(partial(_limits, measured, found, serves), wanted=wanted) as beside:
        schedule, artefacts = maker.make(known)
        limits = beside.result()
    programs = [artefact.program for artefact in artefacts]
    taken = link_rate(programs[0], problem.topology, found.bound)
    links = best_rate(schedule, taken, found.bound)
    notes = (
        *_given_up(found),
        *search_notes(found.start, measured, case),
        *serves.notes,
        *mode_notes(target.profile, request.mode, modes),
        *_selection_notes(artefacts, target),
        *(() if _multicasts(artefacts) else capability_notes(problem, target.profile)),
        *plan_notes(problem, target.profile, plan.protocol),
        *_warnings(artefacts),
        *target.profile.warnings,
        *detours(schedule, links, taken),
        *passed_notes(programs[0], problem.topology, target.profile),
    )
    predicted, slowest = predictions(measured, found, programs)
    if limits is None or limits[0] != predicted:
        limits = predicted, limited_by(slowest, found.workshop.case, predicted)
    return Compilation(
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


def _given_up(found: Found) -> tuple[str, ...]:
    """Return why the preferred start was not taken, if both starts have trees."""
    refused, taken = found.refused, found.start.plan.option("trees")
    trees = None if refused is None else refused.plan.option("trees")
    if refused is None or refused.refusal is None or trees is None or taken is None:
        return ()
    reason = refused.refusal.partition(": ")[2]
    if refused.plan.algorithm == "roots":
        return (f"free roots would be faster but were given up: {reason}",)
    return (f"{trees} trees per GPU would be faster but were given up: {reason}",)


def search_notes(start: Measured, best: Measured, case: Case) -> tuple[str, ...]:
    """Return notes on changes of the search that users should know about."""
    if start.shape is None or best.shape is None:
        return ()
    notes = []
    before, after = (str(m.plan.option("trees", "")) for m in (start, best))
    fewer = before.isdigit() and after.isdigit() and int(after) < int(before)
    if fewer and best.seconds[-1] and start.seconds[-1]:
        times = start.seconds[-1] / best.seconds[-1]
        notes.append(
            f"{before} trees per GPU have the better bound, but are predicted "
            f"to take {times:.2f} times as long at {format_size(case.sizes[-1])}"
        )
    segments = 1 + str(best.plan.values().get("lower-forest.segments", "1")).count("-")
    if segments > 1:
        notes.append(
            f"trees carry their chunks in {segments} segments, which helps large messages; a file "
            "for small messages alone (--max-bytes) has none"
        )
    return tuple(notes)


def _selection_notes(artefacts: tuple[Artefact, ...], target: Target) -> tuple[str, ...]:
    """Return a note if calls of the size, or else of usual sizes, do not use the files."""
    laws = (taken_sizes(artefact.program.header, target.profile) for artefact in artefacts)
    found = dict.fromkeys(text for law in laws if (text := unused(law, target.size)))
    return tuple(f"{text}; the library's own algorithm serves the others" for text in found)


def _warnings(artefacts: tuple[Artefact, ...]) -> tuple[str, ...]:
    """Return the warnings of verification on all files, each once.

    Files of two call modes often share one, where only the numbers of threadblocks differ.
    """
    told: dict[str, str] = {}
    for finding in (x for artefact in artefacts for x in artefact.report.findings):
        text = f"{finding.rule}: {finding.message} (`colsynth explain {finding.rule}`)"
        told.setdefault(_PLACE.sub(r"\1", text), text)
    return tuple(told.values())
