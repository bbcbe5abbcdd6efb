"""How results change with the size of a machine, across every limit of work in the code.

Each sweep goes over sizes on both sides of where a limit begins to cut work. Values are ratios
that should hardly change with the size, so a cliff shows as a jump. A limit that changes the time
or a text alone has seconds to look at. Run as ``python -m tests.bench.bench_levels --sweep``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench.harness import show

if TYPE_CHECKING:
    from colsynth.model import Problem, Topology

JUMP = 0.05
"""Relative change from one size to the next from which a value is marked."""
_SEEDS = 100


@dataclass(frozen=True, slots=True)
class Sweep:
    """One limit: what is looked at, and on which machines, smallest first.

    Parameters
    ----------
    limit : str
        Where it stands, and its value.
    value : str
        What is looked at.
    measure : callable
        Gives that of a problem.
    machines : tuple of str
        ``"preset xBOXES"``, ``"preset name=value"`` or generators; `variant` says what is broken
        of them.
    collective : str
    variant : str
        ``"whole"``, ``"damaged"`` (a twentieth of the links missing or halved, both ways) or
        ``"lopsided"`` (one way).
    """

    limit: str
    value: str
    measure: Callable[[Problem], float]
    machines: tuple[str, ...]
    collective: str = "allgather"
    variant: str = "whole"


def allreduce_limit(problem: Problem) -> float:
    """Return the proven bound of an allreduce over the bandwidth of a link."""
    from colsynth.bounds.optimum import best_optimum

    return float(best_optimum(problem).algbw / problem.topology.links[0].bandwidth)


def free_roots(problem: Problem) -> float:
    """Return the algorithm bandwidth of a forest with free roots over the bound."""
    from colsynth.bounds.optimum import best_optimum
    from colsynth.runtimes import profile
    from colsynth.runtimes.target import Target
    from colsynth.synthesis.pack_roots import PackRoots

    forest = PackRoots().run(problem, Target(profile("msccl")))
    return float(forest.algbw / best_optimum(problem).algbw)


def alltoall_over_cut(problem: Problem) -> float:
    """Return the bound of an all-to-all over what cuts alone allow."""
    from colsynth.bounds.alltoall import alltoall_bound

    found = alltoall_bound(problem)
    return float(found.algbw / found.cut_algbw)


def height(problem: Problem) -> float:
    """Return the mean height of the forest of ``auto``."""
    from colsynth import api

    return float(api.pack(problem).mean_height)


def reached(problem: Problem) -> float:
    """Return the algorithm bandwidth of the forest of ``auto`` over the bound."""
    from colsynth import api

    forest = api.pack(problem)
    return float(forest.algbw / forest.bound.algbw)


def known_of_groups(problem: Problem) -> float:
    """Return what trees of two groups reach of the bound; 0 where `bound` leaves that open."""
    from colsynth import api
    from colsynth.cli._groups import reached as found

    evens, odds = (range(start, problem.topology.size, 2) for start in (0, 1))
    halves = api.make_problem(problem.topology, "allgather", groups=[[*evens], [*odds]])
    bound = api.bound(halves)
    answer = found(halves, bound)
    return float(answer.algbw / bound.algbw) if answer and answer.algbw else 0.0


def trials(problem: Problem) -> float:
    """Return how many requests are tried to advise on one that does not fit."""
    from colsynth.compile.advice import trials_of

    return float(trials_of(problem))


def predicted(problem: Problem) -> float:
    """Return the predicted bandwidth of what -O1 finds at 1 GiB, over what any file can reach."""
    from colsynth import api

    point = api.compile(problem, "msccl", several=False).predicted[-1]
    assert point.least is not None
    return point.algbw / point.least.algbw


def boxes(preset: str, counts: Sequence[int]) -> tuple[str, ...]:
    """Return names of machines of so many boxes."""
    return tuple(f"{preset} x{count}" for count in counts)


MESHES = tuple(
    f"mesh:{a}x{b}"
    for a, b in ((15, 15), (15, 16), (16, 16), (16, 17), (17, 17), (18, 18), (20, 20), (24, 24))
)

SWEEPS = {
    "allreduce": Sweep(
        "bounds/allreduce/rooted.py, formerly 256 GPUs",
        "bound / link",
        allreduce_limit,
        MESHES,
        "allreduce",
    ),
    "roots": Sweep(
        "synthesis/allreduce, formerly 256 GPUs",
        "forest / bound",
        free_roots,
        MESHES,
        "allreduce",
    ),
    "alltoall": Sweep(
        "bounds/alltoall.py, 60,000 GPUs x links (formerly also 64 GPUs)",
        "bound / best cut",
        alltoall_over_cut,
        (*boxes("mi250", (3, 4, 5, 6)), *boxes("dgx-a100", (7, 8, 9, 12, 13))),
        "alltoall",
        "damaged",
    ),
    "alltoall-torus": Sweep(
        "bounds/alltoall.py, 60,000 GPUs x links (formerly also 64 GPUs)",
        "bound / best cut",
        alltoall_over_cut,
        tuple(f"torus:{a}x{b}" for a, b in ((7, 7), (7, 9), (8, 8), (9, 9), (11, 11), (13, 13))),
        "alltoall",
        "damaged",
    ),
    "tightened": Sweep(
        "bounds/alltoall.py, 16,000,000 GPUs x links (formerly 256 GPUs)",
        "bound / best cut",
        alltoall_over_cut,
        boxes("dgx-a100", (31, 32, 33, 48, 64)),
        "alltoall",
        "damaged",
    ),
    "heights": Sweep(
        "synthesis/forest/choose.py, packings x GPUs^3 (formerly 64 GPUs)",
        "mean height",
        height,
        (*boxes("mi250", (3, 4, 5, 6, 8, 10)), *boxes("dgx-h100", (7, 8, 9, 16, 20, 21))),
    ),
    "forwarding": Sweep(
        "synthesis/forest/forwarding.py, 2,000,000 GPUs x links (formerly 2000 links)",
        "forest / bound",
        reached,
        boxes("dgx-a100", (8, 16, 32, 41, 43)),
        variant="lopsided",
    ),
    "groups": Sweep(
        "cli/_groups.py, 400,000 members x links (formerly 64 members)",
        "reached / bound",
        known_of_groups,
        boxes("dgx-a100", (7, 8, 9, 16, 32)),
    ),
    "one-switch": Sweep(
        "threadblocks of msccl: phases, then directions share them",
        "predicted / most",
        predicted,
        tuple(f"gb200-nvl72 gpus={n}" for n in range(4, 100, 4)),
        "allreduce",
    ),
    "one-switch-allgather": Sweep(
        "threadblocks of msccl: directions share them",
        "predicted / most",
        predicted,
        tuple(f"gb200-nvl72 gpus={n}" for n in range(4, 100, 4)),
    ),
    "many-boxes": Sweep(
        "threadblocks and steps of msccl",
        "predicted / most",
        predicted,
        boxes("dgx-h100", (1, 2, 3, 4, 6, 8, 12, 16)),
        "allreduce",
    ),
    "advice": Sweep(
        "compile/advice.py, trials x GPUs^2 (formerly 128 GPUs)",
        "trials",
        trials,
        tuple(f"ring:{n}" for n in (120, 128, 129, 136, 180, 256, 404, 405)),
    ),
}


def machine_of(name: str, variant: str) -> Topology:
    """Return a machine, broken as the variant says, by the first seed that leaves it whole."""
    from colsynth import api
    from colsynth.errors import InfeasibleError
    from tests.reference import graphs

    preset, _, size = name.partition(" ")
    settings = dict([size.split("=")]) if "=" in size else {}
    nodes = int(size[1:]) if size and not settings else None
    topology = whole = api.load_topology(preset, nodes=nodes, settings=settings)
    for seed in range(_SEEDS if variant != "whole" else 0):
        topology = getattr(graphs, variant)(whole, seed)
        with suppress(InfeasibleError):
            api.bound(api.make_problem(topology, "allgather"))
            break
    return topology


def rows(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    """Yield (machine, GPUs, links, value, change, seconds); a jump is marked by ``<--``."""
    from colsynth import api

    before, family = None, None
    for name in sweep.machines:
        topology = machine_of(name, sweep.variant)
        begun = time.process_time()
        found = sweep.measure(api.make_problem(topology, sweep.collective))
        seconds = time.process_time() - begun
        kind = name.replace(":", " ").split()[0]
        same = before is not None and kind == family
        change = found / before - 1 if same and before else 0.0
        mark = " <--" if abs(change) > JUMP else ""
        told = f"{100 * change:+.1f} %{mark}" if same else ""
        figures = str(topology.size), str(len(topology.links)), f"{found:.4f}"
        yield (name, *figures, told, f"{seconds:.2f}")
        before, family = found, kind


def print_sweeps(names: Sequence[str]) -> int:
    """Print the tables of some sweeps, or of all."""
    from rich.table import Table

    unknown = [name for name in names if name not in SWEEPS]
    if unknown:
        print(f"no sweep {unknown[0]!r}; there are {', '.join(SWEEPS)}", file=sys.stderr)
        return 2
    for name in names or SWEEPS:
        sweep = SWEEPS[name]
        what = "" if sweep.variant == "whole" else f", {sweep.variant}"
        title = f"{name}: {sweep.limit}; {sweep.collective}{what}"
        table = Table(title=title, title_justify="left")
        for head in ("machine", "GPUs", "links", sweep.value, "change", "s"):
            table.add_column(head, justify="left" if head == "machine" else "right", no_wrap=True)
        for cells in rows(sweep):
            print("  ".join(cells), file=sys.stderr, flush=True)
            table.add_row(*cells)
        show(table)
    return 0
