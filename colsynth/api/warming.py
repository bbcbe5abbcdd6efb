"""Compiles all kernels, so that no later run has to."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from colsynth.api.compiling import compile as compile_schedule
from colsynth.api.direct import cablings, steps
from colsynth.api.given import require_callable
from colsynth.api.problem import load_topology, make_problem
from colsynth.api.timed import synthesize

_WALKS: tuple[tuple[str, int | None, str, str, dict[str, str]], ...] = (
    ("dgx-a100", 2, "allreduce", "forest", {}),
    ("mesh:3x3", None, "allreduce", "forest", {}),
    ("mesh:3x3", None, "alltoall", "ten", {}),
    ("dgx-a100", 2, "allgather", "ten", {"policy": "rarest"}),
    ("ring:4", None, "reduce-scatter", "ten", {"policy": "oldest"}),
    ("ring:4", None, "allgather", "bfb", {}),
    ("ring:4", None, "allreduce", "ring", {}),
)
"""Topology, boxes, collective, algorithm and options; together they call every kernel."""


def warm(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Compile small schedules of every kind, and with them the kernels that they need.

    Kernels are kept where later runs find them (``colsynth/kernels/folders.py``).

    Parameters
    ----------
    progress : callable or None
        Told what is being compiled, how many schedules are done, and how many there are.
    """
    require_callable("progress", progress)
    for done, (machine, boxes, collective, algorithm, options) in enumerate(_WALKS):
        if progress is not None:
            progress(f"{collective} on {machine}", done, len(_WALKS))
        problem = make_problem(load_topology(machine, nodes=boxes), collective)
        synthesize(problem)
        compile_schedule(problem, "msccl", algorithm=algorithm, **options)  # type: ignore[arg-type]
    problem = make_problem(load_topology("ring:4"), "reduce-scatter")
    compile_schedule(problem, "rccl", algorithm="forest", size=1 << 30)
    compile_schedule(problem, "torch", algorithm="forest")
    compile_schedule(problem, "mscclpp", algorithm="forest")
    _fabrics()


def _fabrics() -> None:
    """Judge a small fabric, and find another."""
    from colsynth.cabling.request import Request, make_job

    steps(make_problem(load_topology("ring:4"), "allgather"))
    job = make_job("allgather", (1,), (), Fraction(1), Fraction(0))
    cablings(Request(4, 2, job, tries=8))
