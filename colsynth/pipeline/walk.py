"""The walk from a problem to verified bytes, and the outer loop over the number of trees.

The walk is the same for every algorithm: one schedule, then a program for every mode.

Each attempt is a fresh walk with a fixed number of trees; nothing is patched
backwards. Bytes are verified as they would lie on disk before anybody gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from colsynth.errors import (
    DefectError,
    Diagnostic,
    InfeasibleError,
    InputError,
    LimitError,
    NegativeFinding,
    VerificationError,
    did_you_mean,
)
from colsynth.model import Collective, Forest, Problem, Report, ThreadblockProgram, TimedSchedule
from colsynth.pipeline.capabilities import capability_notes
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.interface import Pass
from colsynth.pipeline.manager import Pipeline, findings
from colsynth.pipeline.modes import Mode, mode_notes, plan_modes
from colsynth.pipeline.options import options_of
from colsynth.pipeline.pipelined import changed
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT
from colsynth.pipeline.result import Artefact, Compilation, Schedule, file_name
from colsynth.pipeline.rivals import PACKERS, ROUNDER, Rival, fastest
from colsynth.runtimes.selection import never_usual, taken_sizes
from colsynth.runtimes.target import Target

Watch = Callable[[str, int, str, Any], None]
"""Told (mode when there are several, place, name, value) of every intermediate value."""

SCHEDULES: tuple[type, ...] = (Forest, TimedSchedule)
"""What synthesizers give that prove how fast it is; baselines may give plain transfers."""

_PACKER, _FREE, _LOWERER = "pack-trees", "pack-roots", "lower-forest"
_SETTINGS = (
    *("trees", "channels", "instances", "order", "spread", "even", "most"),
    *("size", "chunks_per_gpu", "policy", "tries", "budget"),
)
"""Fields of a request that are options of passes, by the same names."""


@dataclass(frozen=True, slots=True)
class Request:
    """How a problem is to be compiled; what runtime for is in the target.

    Parameters
    ----------
    algorithm : str
        A key of `ALGORITHMS`.
    passes : str or None
        A pipeline to run instead of the algorithm's.
    trees : str or None
        ``"auto"``, ``"optimal"`` or a number. This and all below: None leaves it to the
        pipeline.
    channels : int or None
        Rings or pairs of trees of a baseline.
    instances : int or None
        Parallel copies of the program.
    order : str or None
        Of transfers, as in the pass ``order-transfers``.
    spread : bool or None
        Whether it takes as many threadblocks as may be resident.
    even : bool or None
        Whether connections get as many threadblocks as their load needs instead.
    most : int or None
        Chunks of a tree, or of several, in one transfer.
    size, chunks_per_gpu, policy, tries, budget
        As in the pass ``match-chunks``.
    mode : Mode
    several : bool
        Whether more than one file may be written.
    measured : bool
        Whether the simulator decides what is left to the pipeline (`rivals.py`).
    """

    algorithm: str = "forest"
    passes: str | None = None
    trees: str | None = None
    channels: int | None = None
    instances: int | None = None
    order: str | None = None
    spread: bool | None = None
    even: bool | None = None
    most: int | None = None
    size: int | None = None
    chunks_per_gpu: int | None = None
    policy: str | None = None
    tries: int | None = None
    budget: int | None = None
    mode: Mode = Mode.AUTO
    several: bool = False
    measured: bool = True

    def settings(self) -> dict[str, Any]:
        """Return the options of passes that were asked for, by field."""
        found = {name: getattr(self, name) for name in _SETTINGS}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class _Walk:
    """What every attempt shares."""

    problem: Problem
    target: Target
    modes: tuple[Mode, ...]
    request: Request
    watch: Watch | None
    clock: Clock = field(default_factory=Clock)


def compile_problem(
    problem: Problem, target: Target, request: Request, watch: Watch | None = None
) -> Compilation:
    """Return the verified files of a request.

    Raises
    ------
    InputError
        Wrong options (CS200s).
    LimitError
        No number of trees that was tried fits the runtime; that of the last attempt.
    DefectError, VerificationError
        The emitted bytes are wrong: our mistake, or that of ``passes``.
    """
    pipeline = build_pipeline(request)
    pipeline.check(Problem, ThreadblockProgram)
    modes = plan_modes(target.profile, request.mode, request.several, problem.collective)
    walk = _Walk(problem, target, modes, request, watch)
    if watch is not None:
        watch("", 0, "problem", problem)
    refusals: list[str] = []
    *attempts, last = _attempts(pipeline, walk)
    for attempt in attempts:
        try:
            return _fastest(walk, pipeline, attempt, refusals[:1])
        except (LimitError, InfeasibleError) as refusal:
            refusals.append(_given_up(attempt, refusal))
    return _fastest(walk, pipeline, last, refusals[:1])


def build_pipeline(request: Request) -> Pipeline:
    """Return the pipeline that a request asks for.

    Raises
    ------
    InputError
        CS213 for an unknown algorithm, CS206 for options beside ``passes``, CS217 for
        options that the algorithm does not have, CS210 for numbers that cannot be, CS201
        to CS204 for wrong text.
    """
    named = [_option(name) for name in request.settings()]
    if request.passes is not None and named:
        phrase = f"--{named[0]} and --passes both say what the pipeline does"
        advice = f"write {named[0]}= into the pipeline"
        raise InputError(Diagnostic("CS206", phrase, help=advice))
    pipeline = Pipeline.from_text(pipeline_text(request.algorithm, request.passes))
    return _configure(pipeline, request)


def _option(name: str) -> str:
    return name.replace("_", "-")


def pipeline_text(algorithm: str, passes: str | None) -> str:
    """Return the text of the pipeline: `passes`, or that of the algorithm (else CS213)."""
    if passes is not None:
        return passes
    if algorithm not in ALGORITHMS:
        phrase = f"there is no algorithm {algorithm!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(algorithm, ALGORITHMS)))
    return ALGORITHMS[algorithm]


def _configure(pipeline: Pipeline, request: Request) -> Pipeline:
    """Return the pipeline with the request's values in the passes that take them."""
    settings = request.settings()
    options = [{x.field for x in options_of(type(item))} for item in pipeline.passes]
    for name in settings:
        if not any(name in known for known in options):
            phrase = f"--{_option(name)} does not go with -a {request.algorithm}"
            raise InputError(Diagnostic("CS217", phrase, help=_owners(name)))
    if request.trees == "optimal":  # the exact optimum was asked for, whoever selects the file
        pipeline = changed(pipeline, ROUNDER, parts="keep")
    return Pipeline(
        tuple(
            _set(item, **{name: value for name, value in settings.items() if name in known})
            for item, known in zip(pipeline.passes, options, strict=True)
        )
    )


def _owners(name: str) -> str:
    """Return advice that names the algorithms with an option."""
    found = [
        algorithm
        for algorithm, text in ALGORITHMS.items()
        for item in Pipeline.from_text(text).passes
        if name in {option.field for option in options_of(type(item))}
    ]
    return f"it is an option of -a {', '.join(found)}"


def _set(item: Pass, **values: Any) -> Pass:
    changed: Pass = replace(item, **values)  # type: ignore[type-var]
    return changed


def _attempts(pipeline: Pipeline, walk: _Walk) -> Iterator[Pipeline]:
    """Yield the pipeline with each number of trees worth trying, best first."""
    head, *rest = pipeline.passes
    if head.name == _PACKER and walk.request.passes is None and _gains(walk, head):
        yield _free_roots(pipeline, walk.request)
    if head.name != _PACKER or getattr(head, "trees", None) != "auto":
        yield pipeline
        return
    from colsynth.synthesis.forest import candidates

    with walk.clock.measure("choose-trees"):
        counts = candidates(walk.problem)
    for count in counts:
        yield Pipeline((_set(head, trees=str(count)), *rest))


def _fastest(walk: _Walk, pipeline: Pipeline, attempt: Pipeline, notes: list[str]) -> Compilation:
    """Return what an attempt gives, or a rival of it that is predicted to be faster.

    Who watches is told of the walk that is kept alone.
    """
    asked = walk.request.passes is not None or not walk.request.measured
    if asked or pipeline.passes[0].name not in PACKERS:
        return _attempt(walk, attempt, notes)
    try:
        done = _attempt(replace(walk, watch=None), attempt, notes)
    except NegativeFinding:
        if walk.watch is None:
            raise
        return _attempt(walk, attempt, notes)
    if not isinstance(done.schedule, Forest):
        raise TypeError(f"{pipeline.passes[0].name} gave {type(done.schedule).__name__}")
    base = Rival(attempt, done.schedule, done.artefacts[0].program)
    best, note = fastest(base, pipeline, _aimed(walk, walk.modes[0]), walk.clock)
    if best is not base or walk.watch is not None:
        made = best if walk.watch is None else None
        done = _attempt(walk, best.pipeline, [*note, *notes], made)
    return replace(done, seconds=walk.clock.seconds())


def _free_roots(pipeline: Pipeline, request: Request) -> Pipeline:
    """Return the pipeline with free roots, as many trees, and as many copies as links need."""
    packer, *rest = pipeline.passes
    made: Pass = DEFAULT.load(_FREE)(trees=getattr(packer, "trees", "auto"))
    if request.instances is None:
        rest = [_set(x, fill=True) if x.name == _LOWERER else x for x in rest]
    return Pipeline((made, *rest))


def _gains(walk: _Walk, packer: Pass) -> bool:
    """Whether an allreduce is faster where roots have shares of their own, as many as suit."""
    counted = getattr(packer, "trees", "auto").isdigit()
    if counted or walk.problem.collective is not Collective.ALLREDUCE:
        return False
    from colsynth.synthesis.allreduce import worth_trying

    with walk.clock.measure("choose-roots"):
        return worth_trying(walk.problem)


def _given_up(attempt: Pipeline, refusal: NegativeFinding) -> str:
    """Return why the best number of trees was not taken."""
    if attempt.passes[0].name == _FREE:
        return f"free roots would be faster but were given up: {refusal.diagnostic.phrase}"
    trees = getattr(attempt.passes[0], "trees", "?")
    return f"{trees} trees per GPU would be faster but were given up: {refusal.diagnostic.phrase}"


def _attempt(
    walk: _Walk, pipeline: Pipeline, notes: list[str], made: Rival | None = None
) -> Compilation:
    """Return what one walk gives; the schedule is shared by all modes.

    What was made of the pipeline for the first of them need not be made again.
    """
    problem, target = walk.problem, walk.target
    head, tail = pipeline.split_after(*SCHEDULES)
    if not head.passes:
        head, tail = pipeline.split_at(1)
    if made is None:
        schedule = head.run(problem, target, walk.clock, _observer(walk, ""))
    else:
        schedule = made.schedule
    artefacts = tuple(
        _artefact(walk, tail, schedule, mode, made.program if made and not place else None)
        for place, mode in enumerate(walk.modes)
    )
    notes = [*notes, *mode_notes(target.profile, walk.request.mode, walk.modes)]
    notes += _selection_notes(artefacts, target)
    notes += capability_notes(problem, target.profile.name)
    return Compilation(
        problem=problem,
        runtime=target.profile.name,
        algorithm=walk.request.algorithm,
        pipeline=str(pipeline),
        schedule=schedule,
        artefacts=artefacts,
        seconds=walk.clock.seconds(),
        notes=(*notes, *_warnings(artefacts), *target.profile.warnings),
    )


def _selection_notes(artefacts: tuple[Artefact, ...], target: Target) -> list[str]:
    """Return a note where files are for messages that hardly anybody sends."""
    laws = (taken_sizes(artefact.program.header, target.profile) for artefact in artefacts)
    found = dict.fromkeys(filter(None, map(never_usual, laws)))
    return [f"{text}; the library's own algorithm serves the others" for text in found]


def _warnings(artefacts: tuple[Artefact, ...]) -> tuple[str, ...]:
    """Return what verification warns of in any of the files, each warning once."""
    found = (finding for artefact in artefacts for finding in artefact.report.findings)
    return tuple(dict.fromkeys(f"{finding.rule}: {finding.message}" for finding in found))


def _observer(walk: _Walk, mode: str) -> Callable[[int, str, Any], None] | None:
    watch = walk.watch
    if watch is None:
        return None
    return lambda place, name, value: watch(mode, place, name, value)


def _aimed(walk: _Walk, mode: Mode) -> Target:
    """Return the target for one mode of the call."""
    return replace(walk.target, in_place=mode.in_place, out_of_place=mode.out_of_place)


def _artefact(
    walk: _Walk,
    tail: Pipeline,
    schedule: Schedule,
    mode: Mode,
    program: ThreadblockProgram | None = None,
) -> Artefact:
    """Return the verified file for one mode of the call, of its program if that is known."""
    from colsynth.runtimes.writer import write

    target = _aimed(walk, mode)
    label = mode.value if len(walk.modes) > 1 else ""
    if program is None:
        program = tail.run(schedule, target, walk.clock, _observer(walk, label))
    _check_largest(program, target)
    with walk.clock.measure("write"):
        data = write(program, target.profile)
    name = file_name(walk.problem, target.profile.name, mode)
    target.progress("verify", len(tail.passes), len(tail.passes))
    with walk.clock.measure("verify"):
        report = _verified(walk, name, data)
    return Artefact(name, mode, data, program, report)


def _check_largest(program: ThreadblockProgram, target: Target) -> None:
    """Refuse a largest message that takes more tiles than the runtime counts (rule K03)."""
    from colsynth.verify.lint_header import MAX_TILES

    most = MAX_TILES * target.profile.tile_bytes[target.protocol] * program.header.chunks
    if target.max_bytes is not None and target.max_bytes > most:
        phrase = f"--max-bytes {target.max_bytes} is too large for {target.protocol}"
        note = f"{program.header.chunks} chunks of {MAX_TILES} tiles hold {most} bytes"
        advice = "give a smaller --max-bytes, or more chunks with --instances or --trees"
        raise LimitError(Diagnostic("CS222", phrase, notes=(note,), help=advice))


def _verified(walk: _Walk, name: str, data: bytes) -> Report:
    """Return the report on `data`; raise where it has errors."""
    from colsynth.verify import verify_bytes

    problem = walk.problem
    single_node = len(problem.topology.boxes) <= 1
    report = verify_bytes(data, walk.target.profile, subject=name, single_node=single_node)
    root = dict(report.facts).get("root")
    if report.ok and (problem.root is None or root == str(problem.root)):
        return report
    phrase = f"the program for {walk.target.profile.name} is wrong; nothing was written"
    notes = tuple(findings(report)) or (f"its root is {root}, not {problem.root}",)
    if walk.request.passes is None:
        raise DefectError(Diagnostic("CS904", phrase, notes=notes))
    advice = "the passes given with --passes lead to a wrong program"
    raise VerificationError(Diagnostic("CS230", phrase, notes=notes, help=advice))
