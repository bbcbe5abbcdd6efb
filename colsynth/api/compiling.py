"""From a problem to verified files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from colsynth.api.given import plain, require_callable, require_model, require_problem, require_text
from colsynth.compile.modes import parse_mode, plan_modes
from colsynth.compile.result import Compilation, file_name
from colsynth.errors import Diagnostic, InputError, LimitError, require_least
from colsynth.model import Problem
from colsynth.pipeline.registry import AUTO

if TYPE_CHECKING:
    from colsynth.compile.files import Watch
    from colsynth.compile.request import Request
    from colsynth.cost import Model
    from colsynth.pipeline.target import Progress
    from colsynth.runtimes.target import Target

_TIMED = ("ten", "exact")
"""Algorithms whose schedules are made for a size, with a budget of their own."""


def compile(  # noqa: A001 - the verb of this package
    problem: Problem,
    runtime: str,
    *,
    algorithm: str | None = None,
    level: int | None = None,
    trees: str | int | None = None,
    max_height: int | None = None,
    size: int | None = None,
    chunks_per_gpu: int | None = None,
    policy: str | None = None,
    gap: str | None = None,
    tries: int | None = None,
    steps: int | None = None,
    work: int | None = None,
    budget: int | None = None,
    mode: str = "auto",
    several: bool = True,
    instances: int | None = None,
    channels: int | None = None,
    protocol: str | None = None,
    min_bytes: int | None = None,
    max_bytes: int | None = None,
    passes: str | None = None,
    model: Model | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Compilation:
    """Return verified schedule files for a runtime.

    Parameters
    ----------
    problem : Problem
        With a process group, a file is for a communicator of its GPUs in their order. With
        several it is made for the first and serves all; notes say how well. With a sketch, for
        ten alone; it states chunks and size where the call does not.
    runtime : str
        ``"msccl"``, ``"msccl-executor"``, ``"rccl"``, ``"mscclpp"`` or ``"torch"``.
    algorithm : str, optional
        ``"forest"`` packs trees, ``"ten"`` assigns chunks to links in time; or a baseline,
        what libraries use: ``"ring"``, ``"tree"``, ... Unless given, what is predicted to be
        fastest of what the level tries. ``"auto"`` is the highest level.
    level : int, optional
        How hard the search tries: 0 not at all, 1 (the default) quick variants, 2 more of them, 3
        all algorithms and protocols.
    max_height : int, optional
        Most links between a root and a GPU, on direct-connect fabrics. For ``"forest"`` alone.
    trees : str or int, optional
        ``"auto"`` (the default): fewest trees per root within 2 % of the optimum that fit
        the runtime, or fewer where those are predicted to be faster; ``"optimal"``: the exact
        optimum; a number: so many. For forest alone.
    size : int, optional
        Bytes of the message to be fast at. Unless given, 1 GiB counts, 64 MiB and 1 MiB a
        little.
    budget : int, optional
        Most programs that the search makes. For ten as for `synthesize`.
    chunks_per_gpu, policy, gap, tries, steps, work : optional
        As for `synthesize`. For ten and exact alone.
    mode : str
        ``"auto"``, ``"both"``, ``"in-place"`` or ``"out-of-place"`` calls.
    several : bool
        Whether there may be one file per mode where one cannot serve both.
    instances : int, optional
        Parallel copies of the program, each with a part of every chunk.
    channels : int, optional
        Rings, or pairs of trees; as many as are fastest unless given. For baselines alone.
    protocol : str, optional
        ``"Simple"``, ``"LL"`` or ``"LL128"``; Simple unless given, LL128 where that hangs.
    min_bytes, max_bytes : int, optional
        Message sizes served, inclusive, counted as the runtime counts them. Unless given, a file
        serves those around `size` at which the library by itself is not predicted to be faster;
        without a search (level 0, `passes`) all that the runtime counts.
    passes : str, optional
        A pipeline to run as it stands, instead of an algorithm and a search.
    model : Model, optional
        The constants that decisions follow; those of the runtime unless given.
    seed : int
        Of every random choice.
    jobs : int
        With more than one, copies of this process do a part of the work (Linux). Give more only
        where no other thread holds a lock at the time. The result is the same.
    progress : callable, optional
        Told (what, done, total) during long work; the total is 0 where nobody knows it.
    watch : callable, optional
        Told of every intermediate value.

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
    from colsynth.compile.groups import machines_of
    from colsynth.compile.request import Request
    from colsynth.pipeline.target import aim, usual_protocol
    from colsynth.runtimes.catalog import profile

    _require_kinds(algorithm, passes, model, progress=progress, watch=watch)
    stated, size = _of_sketch(problem, algorithm, passes, plain(size))
    given = {"trees": trees, "max_height": max_height, "instances": instances, "channels": channels}
    given |= {"chunks_per_gpu": chunks_per_gpu, "policy": policy, "gap": gap}
    given |= {"tries": tries, "steps": steps, "work": work}
    settings = stated | _settings(algorithm, given, size, plain(budget))
    library = profile(runtime)
    machine = machines_of(problem, library)[0].problem
    level = _checked_level(algorithm, level, passes)
    first = usual_protocol(machine, library) if protocol is None else protocol
    target = aim(machine, library, first, min_bytes, max_bytes, seed=seed, progress=progress)
    request = Request(
        algorithm=None if algorithm == AUTO else algorithm,
        passes=passes,
        settings=settings,
        mode=parse_mode(mode),
        several=several,
        level=level,
        size=_of_call(size, machine),
        any_protocol=protocol is None and passes is None and _tries_protocols(level, size),
        evaluations=None if algorithm in _TIMED else plain(budget),
        jobs=jobs,
        least_given=min_bytes is not None,
    )
    return _compiled(problem, machine, replace(target, model=model), request, watch)


def _of_call(size: int | None, machine: Problem) -> int | None:
    """Return the bytes of the call that a size stands for."""
    from colsynth.runtimes.selection import size_of_call

    return size and size_of_call(size, machine)


def _require_kinds(
    algorithm: object, passes: object, model: object = None, **functions: object
) -> None:
    """Refuse arguments of other types; each may be None, which stands for the default (CS200)."""
    require_model(model)
    for name, given in functions.items():
        require_callable(name, given)
    require_text("algorithm", algorithm, "forest")
    require_text("passes", passes, "pack-trees,lower-forest,...")


def _check_beside(passes: str | None, algorithm: str | None, level: int | None) -> None:
    """Refuse an algorithm or a search beside a pipeline, which is compiled as it stands (CS206)."""
    if passes is None or (algorithm is None and not level):
        return
    named, does = f"-O{level}", "searches for a pipeline"
    if algorithm is not None:
        named, does = f"-a {algorithm}", "names a pipeline"
    phrase = f"{named} {does}, and --passes gives one"
    raise InputError(Diagnostic("CS206", phrase, help=f"leave out {named} or --passes"))


def _of_sketch(
    problem: Problem, algorithm: str | None, passes: str | None, size: int | None
) -> tuple[dict[str, Any], int | None]:
    """Return the options that a sketch states, and the size; refuse other algorithms (CS217)."""
    from colsynth.sketches.given import defaults

    require_problem(problem, "compile")
    if problem.sketch is None or (passes is None and algorithm in _TIMED):
        stated = defaults(problem)
        share = stated.pop("size", None)
        return stated, share if size is None else size
    named = f"-a {algorithm}" if algorithm else "a search for the algorithm"
    other = "--passes" if passes is not None else named
    phrase = f"the sketch {problem.sketch.name} does not go with {other}"
    advice = f"give -a {' or '.join(_TIMED)}; other algorithms would not keep to it"
    raise InputError(Diagnostic("CS217", phrase, help=advice))


def _checked_level(algorithm: str | None, given: int | None, passes: str | None) -> int:
    """Return the level of the search; raise for one that does not exist (CS210).

    `AUTO` is a name for the highest one, and does not go with others (CS217).
    """
    from colsynth.search.levels import DEFAULT_LEVEL, LEVELS, check_level

    if given is not None:
        check_level(given)
    _check_beside(passes, algorithm, given)
    highest = len(LEVELS) - 1
    level = given if given is not None else highest if algorithm == AUTO else DEFAULT_LEVEL
    if algorithm == AUTO and level != highest:
        phrase = f"-a {AUTO} is short for -O{highest}, and -O{level} says otherwise"
        raise InputError(Diagnostic("CS217", phrase, help=f"leave out -a {AUTO} or -O{level}"))
    return level


def _tries_protocols(level: int, size: int | None) -> bool:
    """Whether a search may choose the protocol: always on the highest level, or for one size."""
    from colsynth.search.levels import LEVELS

    return LEVELS[level].everything or (LEVELS[level].sweep and size is not None)


def _settings(
    algorithm: str | None, given: dict[str, Any], size: int | None, budget: int | None
) -> dict[str, Any]:
    """Return the options of passes that were given; refuse sizes and budgets below one."""
    from colsynth.synthesis.forest.rate import require_trees

    settings = {name: plain(value) for name, value in given.items() if value is not None}
    if "trees" in settings:
        settings["trees"] = str(settings["trees"])
        require_trees(settings["trees"], "--trees")
    if algorithm in _TIMED and budget is not None:
        settings["budget"] = budget
    if "max_height" in settings:
        require_least("--max-height", settings["max_height"], 1)
    if size is not None:
        require_least("--size", size, 1)
    if budget is not None and algorithm not in _TIMED:
        require_least("--budget", budget, 1)
    return settings


def _compiled(
    asked: Problem, machine: Problem, target: Target, request: Request, watch: Watch | None
) -> Compilation:
    """Return the files for the machine of the first group, with notes on the others."""
    from colsynth.bounds.groups.bounds import advised
    from colsynth.compile.advice import with_advice
    from colsynth.compile.groups import group_notes
    from colsynth.compile.run import compile_problem

    with advised(asked, "take GPUs that join them into the group"):
        try:
            done = compile_problem(machine, target, request, watch)
        except LimitError as refusal:
            raise with_advice(refusal, machine, target, request) from refusal
    told = group_notes(asked, done.artefacts[0].program, target)
    return replace(done, notes=(*told, *done.notes))


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
    from colsynth.compile.groups import machines_of
    from colsynth.runtimes.catalog import profile

    require_problem(problem, "file_names")
    problem = machines_of(problem, profile(runtime))[0].problem
    modes = plan_modes(profile(runtime), parse_mode(mode), several, problem.collective)
    return tuple(file_name(problem, runtime, item) for item in modes)


def pass_names(algorithm: str | None = None, passes: str | None = None) -> tuple[str, ...]:
    """Return the names of the passes that `compile` may run, in order.

    Without an algorithm, those of all: which of them is taken is not known before.

    Raises
    ------
    InputError
        No such algorithm, or wrong text in `passes`.
    """
    from colsynth.pipeline.registry import ALGORITHMS
    from colsynth.pipeline.spec import parse
    from colsynth.search.wish import configured

    _require_kinds(algorithm, passes)
    if passes is not None:
        texts = [passes]
    elif algorithm is None or algorithm == AUTO:
        texts = list(ALGORITHMS.values())
    else:
        texts = [str(configured(algorithm, {}))]
    named = (spec.name for text in texts for spec in parse(text))
    return tuple(dict.fromkeys(named))
