"""From a problem to verified files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from colsynth.errors import Diagnostic, InputError, LimitError, did_you_mean, require_least
from colsynth.model import Problem
from colsynth.pipeline.modes import parse_mode, plan_modes
from colsynth.pipeline.result import Compilation, file_name

if TYPE_CHECKING:
    from colsynth.pipeline.target import Progress
    from colsynth.pipeline.walk import Watch
    from colsynth.tuning import Candidate

AUTO = "auto"
"""The algorithm that leaves the choice to the simulator."""


def compile(  # noqa: A001 - the verb of this package
    problem: Problem,
    runtime: str,
    *,
    algorithm: str = "forest",
    trees: str | None = None,
    size: int | None = None,
    chunks_per_gpu: int | None = None,
    policy: str | None = None,
    tries: int | None = None,
    budget: int | None = None,
    mode: str = "auto",
    several: bool = True,
    instances: int | None = None,
    channels: int | None = None,
    protocol: str | None = None,
    min_bytes: int | None = None,
    max_bytes: int | None = None,
    passes: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Compilation:
    """Return verified schedule files for a runtime.

    Parameters
    ----------
    problem : Problem
        With a process group, a file is for a communicator of its GPUs in their order. With
        several it is made for the first and serves all; notes say how well.
    runtime : str
        ``"msccl"``, ``"msccl-executor"`` or ``"rccl"``.
    algorithm : str
        The synthesizer: ``"forest"`` packs trees, ``"ten"`` matches chunks to links in time;
        or a baseline, what libraries use: ``"ring"``, ``"tree"``, ... (README). ``"auto"``
        takes what the simulator predicts to be fastest at `size` (1 GiB unless given),
        with the protocol and the settings that go with it, which a note tells.
    trees : str, optional
        ``"auto"`` (the default): fewest trees per root within 2 % of the optimum that fit
        the runtime, or within 10 % where the simulator predicts those to be faster at 1 GiB;
        ``"optimal"``: the exact optimum; a number: so many. For forest alone.
    size, chunks_per_gpu, policy, tries, budget : optional
        As for `synthesize`. For ten alone; with auto, `size` is the message to be fast at and
        `budget` the most evaluations.
    mode : str
        ``"auto"``, ``"both"``, ``"in-place"`` or ``"out-of-place"`` calls.
    several : bool
        Whether there may be one file per mode where one cannot serve both.
    instances : int, optional
        Parallel copies of the program, each with a part of every chunk.
    channels : int, optional
        Rings, or pairs of trees; as many as are fastest unless given. For baselines alone.
    protocol : str, optional
        ``"Simple"`` (the default), ``"LL"`` or ``"LL128"``.
    min_bytes, max_bytes : int, optional
        Message sizes served, inclusive, counted as the runtime counts them.
    passes : str, optional
        A pipeline to run instead of the algorithm's.
    seed : int
        Of every random choice.
    progress, watch : callable, optional
        Told of long work, and of every intermediate value.

    Raises
    ------
    InputError
        Wrong options, or no such runtime.
    LimitError
        No schedule fits the runtime's limits; which one, and what would help.
    InfeasibleError
        No schedule exists.
    DefectError
        colsynth made a wrong program and kept it from you.
    """
    from colsynth.pipeline.advice import with_advice
    from colsynth.pipeline.groups import group_notes, machines_of
    from colsynth.pipeline.target import aim
    from colsynth.pipeline.walk import Request, compile_problem
    from colsynth.runtimes.catalog import profile
    from colsynth.synthesis.groups.bounds import advised

    settings: dict[str, Any] = {
        "trees": trees,
        "instances": instances,
        "channels": channels,
        "size": size,
        "chunks_per_gpu": chunks_per_gpu,
        "policy": policy,
        "tries": tries,
        "budget": budget,
    }
    notes: tuple[str, ...] = ()
    asked, problem = problem, machines_of(problem, profile(runtime))[0].problem
    _require_known(algorithm, passes)
    chosen = algorithm == AUTO and passes is None
    if chosen:
        taken = {**settings, "protocol": protocol}
        candidate = _fastest(problem, runtime, taken, seed, progress)
        settings = candidate.settings()
        algorithm, protocol = settings.pop("algorithm"), settings.pop("protocol")
        notes = (f"-a auto took {candidate}",)
    target = aim(
        problem,
        profile(runtime),
        protocol or "Simple",
        min_bytes,
        max_bytes,
        seed=seed,
        progress=progress,
    )
    request = Request(
        algorithm=algorithm,
        passes=passes,
        mode=parse_mode(mode),
        several=several,
        measured=not chosen,  # what was chosen has been measured as it is, at its size
        **settings,
    )
    with advised(asked, "take GPUs that join them into the group"):
        try:
            done = compile_problem(problem, target, request, watch)
        except LimitError as refusal:
            raise with_advice(refusal, problem, target, request) from refusal
    told = group_notes(asked, done.artefacts[0].program, target.profile)
    return replace(done, notes=(*notes, *told, *done.notes))


def _require_known(algorithm: str, passes: str | None) -> None:
    """Refuse a name that is neither an algorithm nor `AUTO` (CS213); `passes` need none."""
    from colsynth.pipeline.registry import ALGORITHMS

    known = (AUTO, *ALGORITHMS)
    if passes is None and algorithm not in known:
        phrase = f"there is no algorithm {algorithm!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(algorithm, known)))


def _fastest(
    problem: Problem,
    runtime: str,
    given: Mapping[str, Any],
    seed: int,
    progress: Progress | None,
) -> Candidate:
    """Return algorithm, protocol and settings that are fastest at a size; CS217 beside others."""
    from colsynth.runtimes.selection import LARGE, usual_size
    from colsynth.tuning import Case, Means, choose
    from colsynth.tuning.search import SMALL_BUDGET

    others = [name for name, value in given.items() if value is not None]
    for name in others:
        if name not in ("size", "budget"):
            phrase = f"--{name.replace('_', '-')} does not go with -a auto"
            raise InputError(Diagnostic("CS217", phrase, help="auto chooses it; leave it out"))
    size, budget = given["size"], given["budget"]
    require_least("--size", 1 if size is None else size, 1)
    wanted = usual_size(LARGE, problem.topology.size) if size is None else size
    case = Case(problem, runtime, (wanted,), seed=seed)
    means = Means(budget=SMALL_BUDGET if budget is None else budget, progress=progress)
    return choose(case, means)


def file_names(
    problem: Problem, runtime: str, mode: str = "auto", several: bool = True
) -> tuple[str, ...]:
    """Return the names of the files that `compile` would give, without compiling.

    Raises
    ------
    InputError
        No such runtime or mode, or one file cannot serve the mode.
    LimitError
        The runtime refuses calls of that mode; CS404 as `communicators`.
    """
    from colsynth.pipeline.groups import machines_of
    from colsynth.runtimes.catalog import profile

    problem = machines_of(problem, profile(runtime))[0].problem
    modes = plan_modes(profile(runtime), parse_mode(mode), several, problem.collective)
    return tuple(file_name(problem, runtime, item) for item in modes)


def pass_names(algorithm: str = "forest", passes: str | None = None) -> tuple[str, ...]:
    """Return the names of the passes that `compile` would run, in order.

    With ``"auto"``, those of all algorithms: which of them it takes is not known before.

    Raises
    ------
    InputError
        No such algorithm, or wrong text in `passes`.
    """
    from colsynth.pipeline.registry import ALGORITHMS
    from colsynth.pipeline.spec import parse
    from colsynth.pipeline.walk import pipeline_text

    _require_known(algorithm, passes)
    if algorithm == AUTO and passes is None:
        named = (spec.name for text in ALGORITHMS.values() for spec in parse(text))
        return tuple(dict.fromkeys(named))
    return tuple(spec.name for spec in parse(pipeline_text(algorithm, passes)))
