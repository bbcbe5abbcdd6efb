"""colsynth from Python: plain functions that return values.

::

    from colsynth import api

    topology = api.load_topology("dgx-a100", nodes=2)
    problem = api.make_problem(topology, "allreduce")
    print(api.bound(problem).algbw)
    done = api.compile(problem, "msccl", mode="in-place")
    Path("allreduce.xml").write_bytes(done.artefacts[0].data)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.model import Bound, Collective, Problem, Report, Topology
from colsynth.pipeline.modes import Mode, parse_mode, plan_modes
from colsynth.pipeline.result import Artefact, Compilation, file_name

if TYPE_CHECKING:
    from colsynth.pipeline.target import Progress
    from colsynth.pipeline.walk import Watch

__all__ = [
    "Artefact",
    "Compilation",
    "Mode",
    "bound",
    "compile",
    "file_names",
    "load_topology",
    "make_problem",
    "pass_names",
    "verify",
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


def make_problem(topology: Topology, collective: str, root: int | None = None) -> Problem:
    """Return a collective on a topology.

    Parameters
    ----------
    topology : Topology
    collective : str
        A name such as ``"reduce-scatter"``.
    root : int, optional
        Rank; rank 0 unless given. For broadcast and reduce alone.

    Raises
    ------
    InputError
        CS213 for an unknown collective, CS211 for a root that does not fit.
    """
    names = [item.value for item in Collective]
    if collective not in names:
        phrase = f"there is no collective {collective!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(collective, names)))
    wanted = Collective(collective)
    if not wanted.rooted:
        if root is not None:
            raise InputError(Diagnostic("CS211", f"{wanted} has no root", help="leave --root out"))
        return Problem(topology, wanted)
    root = 0 if root is None else root
    if not 0 <= root < topology.size:
        phrase = f"there is no rank {root} to be the root"
        advice = f"ranks of {topology.name} are 0 to {topology.size - 1}"
        raise InputError(Diagnostic("CS211", phrase, help=advice))
    return Problem(topology, wanted, root)


def bound(problem: Problem) -> Bound:
    """Return the proven optimum of a problem, with the cuts that prove it.

    Raises
    ------
    InfeasibleError
        No data can pass between some two GPUs.
    InputError
        Trees cannot serve the collective, or its numbers do not fit 64 bits.
    """
    from colsynth.synthesis.bound import bound as solve

    return solve(problem)


def compile(  # noqa: A001 - the verb of this package
    problem: Problem,
    runtime: str,
    *,
    algorithm: str = "forest",
    trees: str | None = None,
    mode: str = "auto",
    several: bool = True,
    instances: int | None = None,
    protocol: str = "Simple",
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
        The synthesizer.
    trees : str, optional
        ``"auto"`` (the default): fewest trees per root within 2 % of the optimum that fit
        the runtime; ``"optimal"``: the exact optimum; a number: so many.
    mode : str
        ``"auto"``, ``"both"``, ``"in-place"`` or ``"out-of-place"`` calls.
    several : bool
        Whether there may be one file per mode where one cannot serve both.
    instances : int, optional
        Parallel copies of the program, each with a part of every chunk.
    protocol : str
        ``"Simple"``, ``"LL"`` or ``"LL128"``.
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

    target = aim(
        problem, profile(runtime), protocol, min_bytes, max_bytes, seed=seed, progress=progress
    )
    request = Request(algorithm, passes, trees, instances, parse_mode(mode), several)
    return compile_problem(problem, target, request, watch)


def file_names(
    problem: Problem, runtime: str, mode: str = "auto", several: bool = True
) -> tuple[str, ...]:
    """Return the names of the files that `compile` would give, without compiling.

    Raises
    ------
    InputError
        No such runtime or mode, or one file cannot serve the mode.
    """
    from colsynth.runtimes.catalog import profile

    modes = plan_modes(profile(runtime), parse_mode(mode), several)
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
