"""``colsynth bound --steps``: what shortest-path broadcast takes on a direct-connect fabric."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from colsynth.cli._common import answer_console, emit_json, ruled_table
from colsynth.cli.progress import progress
from colsynth.text import listed
from colsynth.units import (
    exact_gb_per_s,
    format_bandwidth,
    format_size,
    gb_per_s,
    microseconds,
    plural,
)

if TYPE_CHECKING:
    from colsynth.api.direct import HeightRow
    from colsynth.model import Bound, Problem
    from colsynth.model.steps import StepBound, StepLoad

_PACKED = 64
"""GPUs up to which a throughput-optimal forest is packed for its height: a second."""
_SHOWN = 6


def show_steps(problem: Problem, *, json: bool) -> None:
    """Print the step bound of a problem, as a table or as JSON."""
    from colsynth import api
    from colsynth.bounds.optimum import best_optimum
    from colsynth.bounds.trees import bound

    with progress():
        steps = api.steps(problem)
        optimum, best = bound(problem), best_optimum(problem).algbw
        height = None
        if steps.algbw < optimum.algbw and problem.topology.size <= _PACKED:
            height = api.pack(problem, "optimal").max_height * len(steps.phases)
    if json:
        emit_json(_as_object(problem, steps, optimum, height, best))
    else:
        _show(problem, steps, optimum, height, best)


def crossover(
    problem: Problem, steps: StepBound, optimum: Bound, height: int | None
) -> Fraction | None:
    """Return the message size in bytes above which a forest of this height wins.

    Both times are steps times the largest latency, and bytes over bandwidth.
    """
    slower = steps.seconds_per_byte - 1 / optimum.algbw
    if height is None or slower <= 0:
        return None
    latency = max(link.latency for link in problem.topology.links)
    return max(Fraction(0), (height - steps.steps) * latency / slower)


def _as_object(
    problem: Problem, steps: StepBound, optimum: Bound, height: int | None, best: Fraction
) -> dict[str, Any]:
    topology = problem.topology
    size = crossover(problem, steps, optimum, height)
    return {
        "topology": topology.name,
        "collective": problem.collective.value,
        "ranks": topology.size,
        "ports": steps.ports,
        "steps": steps.steps,
        "moore_steps": steps.moore * len(steps.phases),
        "bandwidth_time": str(steps.bandwidth_time),
        "synchronous_algbw_gb_per_s": gb_per_s(1 / steps.seconds_per_byte),
        "algbw_gb_per_s": gb_per_s(steps.algbw),
        "equal_roots_gb_per_s": gb_per_s(optimum.algbw),
        "optimum_gb_per_s": gb_per_s(best),
        "throughput_optimal": steps.algbw == best,
        "forest_height": height,
        "crossover_bytes": None if size is None else float(size),
        "phases": [
            {
                "direction": phase.direction.value,
                "together": _load(problem, phase.together),
                "steps": [_load(problem, load) for load in phase.steps],
            }
            for phase in steps.phases
        ],
    }


def _load(problem: Problem, load: StepLoad) -> dict[str, Any]:
    topology = problem.topology
    return {
        "gpu": topology.gpu_names[load.rank],
        "links": [topology.link_name(link) for link in load.links],
        "parts": load.parts,
        "bandwidth": exact_gb_per_s(load.bandwidth),
        "load_us_per_mb": microseconds(load.load * 10**6 / sum(problem.weights)),
    }


def _show(
    problem: Problem, steps: StepBound, optimum: Bound, height: int | None, best: Fraction
) -> None:
    from rich.table import Table

    topology = problem.topology
    table = Table.grid(padding=(0, 2))
    ports = plural(steps.ports, "port")
    where = f"{problem.collective} on {topology.name} ({topology.size} GPUs, {ports})"
    table.add_row("shortest paths", where)
    moore = steps.moore * len(steps.phases)
    table.add_row("steps", f"{steps.steps}, no fabric of this size has less than {moore}")
    unit = "M/B, the message over the bandwidth of a GPU"
    table.add_row("step by step", f"{_number(steps.bandwidth_time)} {unit}")
    table.add_row(
        "pipelined", f"{_number(steps.injection / steps.algbw)} M/B, {_rate(steps.algbw)}"
    )
    for name, rate in _optima(optimum, best).items():
        table.add_row(name, f"{_number(steps.injection / rate)} M/B, {_rate(rate)}")
    verdict = _verdict(problem, steps, optimum, height)
    if best > optimum.algbw:
        verdict = f"with equal roots, {verdict}; free roots reach {_rate(best)}"
    table.add_row("verdict", verdict)
    console = answer_console()
    console.print(table)
    for phase in steps.phases:
        rows = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
        for name in ("step", "at", "parts", "over", "load", "links"):
            rows.add_column(name, justify="right" if name in ("step", "parts", "load") else "left")
        for number, load in [*enumerate(phase.steps, 1), ("all", phase.together)]:
            cells = _load(problem, load)
            share = load.load * steps.injection / steps.ports
            links = listed(cells["links"], _SHOWN)
            over = f"{cells['bandwidth']} GB/s"
            rows.add_row(str(number), cells["gpu"], str(load.parts), over, str(share), links)
        title = "receivers" if phase.direction == "out" else "senders"
        console.print(f"\nworst {title} of the {phase.direction} phase, load in parts per port")
        console.print(rows, soft_wrap=True)


def _optima(optimum: Bound, best: Fraction) -> dict[str, Fraction]:
    """Return the optimum, and that of equal roots where free ones do better in an allreduce."""
    if best > optimum.algbw:
        return {"equal roots": optimum.algbw, "optimum": best}
    return {"optimum": best}


def _rate(rate: Fraction) -> str:
    return format_bandwidth(rate)


def _number(value: Fraction) -> str:
    exact = str(value)
    return f"{float(value):.6g}" + (f" ({exact})" if len(exact) < 16 and "/" in exact else "")


def _verdict(problem: Problem, steps: StepBound, optimum: Bound, height: int | None) -> str:
    if steps.algbw == optimum.algbw:
        return "throughput-optimal at the least height: no packing is needed"
    share = float(optimum.algbw / steps.algbw)
    text = f"a throughput-optimal forest is {share:.4g} times as fast for large messages"
    size = crossover(problem, steps, optimum, height)
    if height is None or size is None:
        return text
    above = f"above {format_size(int(size))}" if size else "at every size"
    return f"{text}; with height {height}, it wins {above} over shortest paths step by step"


def show_heights(problem: Problem, *, json: bool) -> None:
    """Print the bandwidth of trees of each height, as a table or as JSON."""
    from colsynth import api
    from colsynth.bounds.optimum import best_optimum
    from colsynth.bounds.trees import bound

    with progress("nothing was printed") as show:
        rows = api.heights(problem, show)
        optimum, best = bound(problem), best_optimum(problem).algbw
    if not json:
        _show_heights(problem, rows, optimum, best)
        return
    emit_json(
        {
            "topology": problem.topology.name,
            "collective": problem.collective.value,
            "equal_roots_gb_per_s": gb_per_s(optimum.algbw),
            "optimum_gb_per_s": gb_per_s(best),
            "heights": [
                {
                    "height": row.height,
                    "bound_gb_per_s": gb_per_s(row.bound),
                    "algbw_gb_per_s": gb_per_s(row.forest.algbw),
                    "trees_per_gpu": row.forest.trees_per_root,
                    "proven": row.forest.algbw == row.bound,
                }
                for row in rows
            ],
        }
    )


def _show_heights(problem: Problem, rows: list[HeightRow], optimum: Bound, best: Fraction) -> None:
    console = answer_console()
    where = f"{problem.collective} on {problem.topology.name} ({problem.topology.size} GPUs)"
    told = ", ".join(
        f"the {name if name == 'optimum' else f'optimum of {name}'} is {format_bandwidth(rate)}"
        for name, rate in _optima(optimum, best).items()
    )
    console.print(f"{where}: {told}", soft_wrap=True)
    of = "of equal roots" if best > optimum.algbw else "of the optimum"
    table = ruled_table("height", "GB/s", of, "trees per GPU", "proof", right=slice(4))
    for row in rows:
        rate = row.forest.algbw
        share = f"{100 * float(rate / optimum.algbw):.2f} %"
        proven = "no trees of this height are faster"
        if rate < row.bound:
            proven = f"none reach more than {gb_per_s(row.bound):g} GB/s"
        trees = str(row.forest.trees_per_root)
        table.add_row(str(row.height), exact_gb_per_s(rate), share, trees, proven)
    console.print(table)
