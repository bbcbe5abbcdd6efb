"""colsynth from Python: plain functions that return values.

::

    from colsynth import api

    topology = api.load_topology("dgx-a100", nodes=2)
    problem = api.make_problem(topology, "allreduce")
    print(api.bound(problem).algbw)
    done = api.compile(problem, "msccl", mode="in-place")
    Path("allreduce.xml").write_bytes(done.artefacts[0].data)
    found = api.synthesize(problem, size=64 * 10**6, chunks_per_gpu=4)
    api.write_schedule(found.schedule, "allreduce.npz")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.errors import Diagnostic, InputError, did_you_mean, require_least
from colsynth.model import Bound, Collective, FlowBound, Problem, Report, Topology
from colsynth.pipeline.modes import Mode, parse_mode, plan_modes
from colsynth.pipeline.result import Artefact, Compilation, file_name

if TYPE_CHECKING:
    from colsynth.model import TimedPhase, TimedSchedule
    from colsynth.pipeline.synthesize import Synthesis
    from colsynth.pipeline.target import Progress
    from colsynth.pipeline.walk import Watch
    from colsynth.simulate import Model, Simulation
    from colsynth.store import LinkRows
    from colsynth.tuning import Bundle, Comparison

__all__ = [
    "Artefact",
    "Compilation",
    "Mode",
    "bound",
    "compare",
    "compile",
    "file_names",
    "link_rows",
    "load_topology",
    "make_problem",
    "pass_names",
    "read_schedule",
    "simulate",
    "synthesize",
    "tune",
    "verify",
    "write_bundle",
    "write_schedule",
]


def load_topology(
    spec: str,
    *,
    nodes: int | None = None,
    settings: Mapping[str, str] | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
) -> Topology:
    """Return the topology that a preset, a YAML file or a generator describes.

    Parameters
    ----------
    spec : str
        ``"dgx-a100"``, ``"cluster.yaml"``, ``"torus:4x4x4"``, ...
    nodes : int, optional
        Number of boxes.
    settings : mapping, optional
        Values of the parameters that a preset or a file declares.
    bandwidth, latency : str, optional
        Of the links of a generator, such as ``"50 GB/s"`` and ``"0.7 us"``.

    Raises
    ------
    InputError
        Whatever is wrong, at its place.
    """
    from colsynth.topology.load import load

    return load(spec, nodes=nodes, settings=settings, bandwidth=bandwidth, latency=latency)


def make_problem(
    topology: Topology,
    collective: str | None,
    root: int | None = None,
    *,
    groups: Sequence[Sequence[int]] | None = None,
    transit: bool = False,
    custom: str | Path | None = None,
) -> Problem:
    """Return a collective on a topology.

    Parameters
    ----------
    topology : Topology
    collective : str or None
        A name such as ``"reduce-scatter"``; None or ``"custom"`` beside `custom`.
    root : int, optional
        Rank, or place in every group; 0 unless given. For broadcast, reduce, scatter and
        gather alone.
    groups : sequence of sequences of int, optional
        Process groups of equal size that run the collective at the same time, each by its
        ranks in order.
    transit : bool
        Whether GPUs outside all groups may pass chunks on.
    custom : path, optional
        A YAML file with a collective of one's own.

    Raises
    ------
    InputError
        CS213 for an unknown collective, CS211 for a root that does not fit, CS216 for
        groups that do not, CS217 for options that do not go together, and whatever is wrong
        with the file, at its place.
    """
    if custom is not None or collective in (None, Collective.CUSTOM):
        _check_custom(collective, custom, {"root": root, "groups": groups, "transit": transit})
        from colsynth.topology.custom import read_custom

        demands = read_custom(Path(str(custom)), topology)
        return Problem(topology, Collective.CUSTOM, demands=demands)
    names = [item.value for item in Collective]
    if collective not in names:
        phrase = f"there is no collective {collective!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(str(collective), names)))
    if transit and groups is None:
        phrase = "--transit is about GPUs outside a group, and there is none"
        raise InputError(Diagnostic("CS217", phrase, help="give --group or --groups"))
    members: tuple[tuple[int, ...], ...] = ()
    if groups is not None:
        from colsynth.topology.groups import check_groups

        members = check_groups(groups, topology)
    problem = Problem(
        topology, Collective(str(collective)), None, members, transit and members != ()
    )
    return replace(problem, root=_root(problem, root))


def _check_custom(
    collective: str | None, custom: str | Path | None, beside: Mapping[str, object]
) -> None:
    """Refuse options that make no sense beside a collective of one's own (CS217)."""
    if custom is None:
        given = collective is not None
        phrase = "a custom collective is described by a file" if given else "which collective?"
        advice = (
            "give the file with --custom FILE.yaml" if given else "give -c NAME, or --custom FILE"
        )
        raise InputError(Diagnostic("CS217", phrase, help=advice))
    if collective not in (None, Collective.CUSTOM):
        phrase = f"--custom and --collective {collective} both name the collective"
        raise InputError(Diagnostic("CS217", phrase, help="leave one of them out"))
    for name, value in beside.items():
        if value is not None and value is not False:
            phrase = f"--{name} does not go with --custom"
            raise InputError(
                Diagnostic("CS217", phrase, help="the file names every GPU that takes part")
            )


def _root(problem: Problem, root: int | None) -> int | None:
    """Return the root of a problem; refuse one that does not fit (CS211)."""
    if not problem.collective.rooted:
        if root is not None:
            phrase = f"{problem.collective} has no root"
            raise InputError(Diagnostic("CS211", phrase, help="leave --root out"))
        return None
    root = 0 if root is None else root
    size = len(problem.members[0])
    if 0 <= root < size:
        return root
    if problem.groups:
        phrase = f"no group has a member {root} to be the root"
        advice = f"members of a group are counted from 0 to {size - 1}"
    else:
        phrase = f"there is no rank {root} to be the root"
        advice = f"ranks of {problem.topology.name} are 0 to {size - 1}"
    raise InputError(Diagnostic("CS211", phrase, help=advice))


def bound(problem: Problem) -> Bound | FlowBound:
    """Return the proven optimum of a problem, with the cuts that prove it.

    Of an alltoall, scatter or gather it is a `FlowBound`: a bandwidth that no schedule
    beats, which for alltoall need not be reached where it is not `exact`.

    Raises
    ------
    InfeasibleError
        No data can pass between some two GPUs.
    InputError
        No bound is known for such a problem, or its numbers do not fit 64 bits.
    """
    if problem.collective in (Collective.ALLTOALL, Collective.SCATTER, Collective.GATHER):
        from colsynth.synthesis.flow_bound import flow_bound

        return flow_bound(problem)
    from colsynth.synthesis.bound import bound as solve

    return solve(problem)


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
    runtime : str
        ``"msccl"``, ``"msccl-executor"`` or ``"rccl"``.
    algorithm : str
        The synthesizer: ``"forest"`` packs trees, ``"ten"`` matches chunks to links in time;
        or a baseline, what libraries use: ``"ring"``, ``"tree"``, ... (README). ``"auto"``
        takes what the simulator predicts to be fastest at `size` (10**9 bytes unless given),
        with the protocol and the settings that go with it.
    trees : str, optional
        ``"auto"`` (the default): fewest trees per root within 2 % of the optimum that fit
        the runtime; ``"optimal"``: the exact optimum; a number: so many. For forest alone.
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
    from colsynth.pipeline.target import aim
    from colsynth.pipeline.walk import Request, compile_problem
    from colsynth.runtimes.catalog import profile

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
    if algorithm == "auto" and passes is None:
        taken = {**settings, "protocol": protocol}
        settings = _fastest(problem, runtime, taken, seed, progress)
        algorithm, protocol = settings.pop("algorithm"), settings.pop("protocol")
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
        algorithm=algorithm, passes=passes, mode=parse_mode(mode), several=several, **settings
    )
    return compile_problem(problem, target, request, watch)


def _fastest(
    problem: Problem,
    runtime: str,
    given: Mapping[str, Any],
    seed: int,
    progress: Progress | None,
) -> dict[str, Any]:
    """Return algorithm, protocol and settings that are fastest at a size; CS217 beside others."""
    from colsynth.tuning import Case, Means, choose
    from colsynth.tuning.search import SMALL_BUDGET

    others = [name for name, value in given.items() if value is not None]
    for name in others:
        if name not in ("size", "budget"):
            phrase = f"--{name.replace('_', '-')} does not go with -a auto"
            raise InputError(Diagnostic("CS217", phrase, help="auto chooses it; leave it out"))
    size, budget = given["size"], given["budget"]
    require_least("--size", 1 if size is None else size, 1)
    case = Case(problem, runtime, (DEFAULT_SIZE if size is None else size,), seed=seed)
    means = Means(budget=SMALL_BUDGET if budget is None else budget, progress=progress)
    return choose(case, means).settings()


DEFAULT_SIZE = 10**9
"""Bytes of the message where none are given."""


def compare(
    problem: Problem,
    sizes: Sequence[int],
    *,
    runtime: str = "msccl",
    algorithms: Sequence[str] | None = None,
    budget: int | None = None,
    jobs: int = 1,
    model: Model | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Return what every algorithm reaches at every size, beside the bound.

    Parameters
    ----------
    problem : Problem
    sizes : sequence of int
        Bytes of the message, as nccl-tests counts them.
    runtime : str
    algorithms : sequence of str, optional
        All unless given.
    budget : int, optional
        Most evaluations.
    jobs : int
        Processes that evaluate; the answer does not depend on them.
    model : Model, optional
        Constants of the simulator.
    seed : int
    progress : callable, optional

    Raises
    ------
    InputError
        Wrong options.
    LimitError
        The runtime serves no such problem, or no algorithm gives a program (CS611).
    """
    from colsynth.tuning import Case, Means, Workers
    from colsynth.tuning import compare as measure
    from colsynth.tuning.search import BUDGET

    ordered = tuple(sorted(set(sizes)))
    require_least("--sizes", min(ordered, default=0), 1)
    ceiling = bound(problem).algbw
    with Workers(jobs) as workers:
        case = Case(problem, runtime, ordered, model, seed)
        means = Means(BUDGET if budget is None else budget, workers, progress=progress)
        return measure(case, ceiling, means, algorithms)


def tune(
    topology: Topology,
    collectives: Sequence[str],
    runtime: str,
    sizes: Sequence[int],
    *,
    root: int | None = None,
    algorithms: Sequence[str] | None = None,
    budget: int | None = None,
    jobs: int = 1,
    model: Model | None = None,
    seed: int = 0,
    journal: Path | None = None,
    progress: Progress | None = None,
) -> Bundle:
    """Return the fewest verified files that serve messages of every size.

    Parameters
    ----------
    topology : Topology
    collectives : sequence of str
    runtime : str
    sizes : sequence of int
        Messages to measure; what the runtime serves no files for is left out.
    root : int, optional
        Of broadcast and reduce.
    algorithms, budget, jobs, model, seed, progress : optional
        As for `compare`; `budget` is shared out among the collectives.
    journal : Path, optional
        A file in which measurements are kept and found again.

    Raises
    ------
    InputError
        Wrong options.
    LimitError
        The runtime serves no such problem, or no algorithm gives a program (CS611).
    """
    from colsynth.tuning import Case, Journal, Means, Workers, usable_sizes
    from colsynth.tuning import tune as make
    from colsynth.tuning.search import BUDGET

    names = tuple(dict.fromkeys(collectives))
    if not names:
        phrase = "which collectives?"
        raise InputError(Diagnostic("CS217", phrase, help="give -c allreduce,allgather"))
    fitting = usable_sizes(runtime, sizes)
    problems = [make_problem(topology, name, _root_if_any(name, root)) for name in names]
    cases = [Case(problem, runtime, fitting, model, seed) for problem in problems]
    most = BUDGET * len(cases) if budget is None else budget
    with Workers(jobs) as workers:
        return make(cases, Means(most, workers, Journal(journal), progress), algorithms)


def _root_if_any(collective: str, root: int | None) -> int | None:
    """Return the root for a collective that has one."""
    rooted = collective in [item.value for item in Collective if item.rooted]
    return root if rooted else None


def write_bundle(bundle: Bundle, path: str | Path, *, force: bool = False) -> None:
    """Write a bundle as a directory, whole or not at all.

    Raises
    ------
    InputError
        CS207 where something stands in its place (`force` replaces a bundle), CS208 when the
        system refuses.
    """
    from colsynth.tuning import publish, refuse_to_replace

    refuse_to_replace(Path(path), force)
    publish(bundle, Path(path))


def synthesize(
    problem: Problem,
    *,
    size: int | None = None,
    chunks_per_gpu: int | None = None,
    policy: str | None = None,
    tries: int | None = None,
    budget: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Synthesis:
    """Return a timed schedule that was checked, for any collective, group and size.

    Parameters
    ----------
    problem : Problem
    size : int, optional
        Bytes of the message, as nccl-tests counts them; 10**9 unless given.
    chunks_per_gpu : int, optional
        Chunks that every shard is cut into; 1 unless given.
    policy : str, optional
        Which chunk goes first: ``"oldest"``, ``"rarest"`` or ``"earliest"``; with
        ``"auto"``, the default, tries take turns.
    tries : int, optional
        Schedules made, of which the best is kept.
    budget : int, optional
        Transfers after which no further try begins; 0 sets no limit.
    seed : int
        Of every random choice; equal seeds give equal schedules.
    progress : callable, optional
        Told of long work.

    Raises
    ------
    InputError
        Wrong options, or numbers that do not fit 64 bits.
    InfeasibleError
        Some chunk cannot reach a GPU that wants it.
    DefectError
        colsynth made a wrong schedule and kept it from you.
    """
    from colsynth.pipeline.synthesize import synthesize_problem
    from colsynth.runtimes.target import Context

    context = Context(seed=seed) if progress is None else Context(seed=seed, progress=progress)
    options = {
        "size": size,
        "chunks_per_gpu": chunks_per_gpu,
        "policy": policy,
        "tries": tries,
        "budget": budget,
    }
    return synthesize_problem(problem, context, options)


def write_schedule(
    schedule: TimedSchedule, path: str | Path, progress: Progress | None = None
) -> None:
    """Write a timed schedule as a numpy archive, whole or not at all.

    Equal schedules give equal bytes; the arrays are described in `colsynth.store`.

    Raises
    ------
    InputError
        CS208 when the system refuses.
    """
    from colsynth.store import write_npz

    write_npz(schedule, Path(path), progress)


def read_schedule(path: str | Path) -> TimedSchedule:
    """Return the timed schedule of a file that `write_schedule` wrote.

    Raises
    ------
    InputError
        CS240: the file cannot be read, or is no schedule file.
    """
    from colsynth.store import read_npz

    return read_npz(Path(path))


def link_rows(phase: TimedPhase, first: int = 0, last: int | None = None) -> LinkRows:
    """Return one row (start, end, link, chunk, transfer) for every occupied link of a phase.

    Parameters
    ----------
    phase : TimedPhase
    first, last : int, optional
        Hops to read, from `first` to before `last`; all unless given.

    Returns
    -------
    LinkRows
        Arrays; times in ticks of the schedule, links as indices into the topology's.
    """
    from colsynth.store import link_rows as spell_out

    return spell_out(phase, first, last)


def file_names(
    problem: Problem, runtime: str, mode: str = "auto", several: bool = True
) -> tuple[str, ...]:
    """Return the names of the files that `compile` would give, without compiling.

    Raises
    ------
    InputError
        No such runtime or mode, or one file cannot serve the mode.
    LimitError
        The runtime refuses calls of that mode.
    """
    from colsynth.runtimes.catalog import profile

    modes = plan_modes(profile(runtime), parse_mode(mode), several, problem.collective)
    return tuple(file_name(problem, runtime, item) for item in modes)


def pass_names(algorithm: str = "forest", passes: str | None = None) -> tuple[str, ...]:
    """Return the names of the passes that `compile` would run, in order.

    Raises
    ------
    InputError
        No such algorithm, or wrong text in `passes`.
    """
    from colsynth.pipeline.spec import parse
    from colsynth.pipeline.walk import pipeline_text

    return tuple(spec.name for spec in parse(pipeline_text(algorithm, passes)))


def verify(
    data: bytes, runtime: str, *, subject: str = "schedule", single_node: bool | None = None
) -> Report:
    """Return everything wrong with a schedule file, as `runtime` would read and run it.

    Parameters
    ----------
    data : bytes
    runtime : str
    subject : str
        Name of the file, for the report.
    single_node : bool, optional
        Whether all ranks are in one box, where that is known.

    Raises
    ------
    InputError
        There is no such runtime.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.verify import verify_bytes

    return verify_bytes(data, profile(runtime), subject=subject, single_node=single_node)


def simulate(
    data: bytes,
    runtime: str,
    topology: Topology,
    sizes: Sequence[int],
    *,
    model: Model | None = None,
    subject: str = "schedule",
) -> Simulation:
    """Return the predicted time of a schedule file at each message size.

    Parameters
    ----------
    data : bytes
    runtime : str
    topology : Topology
        Of as many ranks as the file is for.
    sizes : sequence of int
        Bytes, as nccl-tests counts them.
    model : Model, optional
        The constants of the simulator; those of the runtime unless given.
    subject : str
        Name of the file, for the answer.

    Raises
    ------
    InputError
        CS605: the file holds no program; CS600: it is for another number of ranks; CS602: it
        cannot be connected; CS604: a size is below one byte.
    InfeasibleError
        CS601: the program sends where no links lead.
    VerificationError
        CS603: the program does not finish at one of the sizes.
    """
    from colsynth.runtimes.catalog import profile
    from colsynth.simulate import Simulation, read_program
    from colsynth.simulate import simulate as execute

    target = profile(runtime)
    program = read_program(data, target, subject)
    points = execute(program, topology, target, sizes, model)
    return Simulation(subject, program.header.ranks, program.header.collective, points)
