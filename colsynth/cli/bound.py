"""``colsynth bound``: the proven optimum, and the cut that proves it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._allreduce import allreduce_fields, allreduce_rows
from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.cli._groups import Reached, group_fields, is_optimum, reached, reached_text
from colsynth.cli._options import AnyCollectiveOption
from colsynth.cli._steps import show_heights, show_steps
from colsynth.cli.bundles import bundled
from colsynth.cli.constants import ModelOption
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.members import MembersOptions, ShardsOption, asked_ranks
from colsynth.cli.progress import progress
from colsynth.cli.runtime_bound import (
    RuntimeOption,
    RuntimeSizesOption,
    asked_of_runtime,
    runtime_fields,
    show_runtime,
)
from colsynth.errors import Diagnostic, InputError
from colsynth.model import AllreduceBound, Bound, Collective, FlowBound
from colsynth.pipeline.target import require_served
from colsynth.text import listed
from colsynth.units import exact_gb_per_s, format_bandwidth, gb_per_s, percent, plural

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from colsynth.bounds.runtime import RuntimeBound
    from colsynth.cli.runtime_bound import Asked
    from colsynth.model import Cut, Problem, Topology
    from colsynth.topology.damage import Damage

Found = Bound | FlowBound | AllreduceBound

_SHOWN = 8
"""Names that are listed before the rest is counted."""


@bundled
def bound_(
    *,
    topology: TopologyArgument,
    collective: AnyCollectiveOption = None,
    machine: MachineOptions,
    members: MembersOptions,
    shards: ShardsOption = None,
    runtime: RuntimeOption = None,
    sizes: RuntimeSizesOption = None,
    model: ModelOption = None,
    steps: Annotated[
        bool,
        typer.Option(
            "--steps",
            help="Print steps and times of shortest-path broadcast (-a bfb) instead, with the "
            "links that prove them. For direct-connect fabrics.",
        ),
    ] = False,
    heights: Annotated[
        bool,
        typer.Option(
            "--heights",
            help="Print instead what trees of each height reach, from the lowest to those at the "
            "optimum, with proofs. For small direct-connect fabrics.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Print the proven optimum and the cut that proves it."""
    damage = machine.read(topology)
    problem = members.problem(damage.topology, collective, shards)
    asked = asked_of_runtime(runtime, sizes, model)
    given = {"--steps": steps, "--heights": heights, "--runtime": asked is not None}
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        phrase = f"{names[1]} does not go with {names[0]}"
        raise InputError(Diagnostic("CS217", phrase, help="each prints an answer of its own"))
    if asked is not None:
        require_served(problem.collective, asked.runtime)
    if steps or heights:
        (show_steps if steps else show_heights)(problem, json=json)
        return
    with progress():
        found = solved(problem)
        trees = reached(problem, found)
        healthy = solved(_unhurt(problem, damage)).algbw if damage.failures else None
        least = () if asked is None else _least(problem, found, asked)
    if json:
        extra = {**_loss_fields(found.algbw, healthy), **failures_field(damage)}
        extra |= runtime_fields(least)
        answer = bound_object(problem, found, trees)
        emit_json({**answer, **group_fields(problem, trees), **extra})
    else:
        _show(problem, found, trees, healthy)
        if asked is not None:
            show_runtime(asked.runtime.name, least)


def _least(problem: Problem, found: Found, asked: Asked) -> tuple[RuntimeBound, ...]:
    """Return the least times of a runtime; for one group, a file is for a machine of its own."""
    from colsynth.bounds.runtime import runtime_bounds
    from colsynth.topology.communicator import communicators

    if len(problem.groups) == 1:
        problem = communicators(problem)[0].problem
        found = solved(problem)
    return runtime_bounds(problem, asked.runtime, found, asked.sizes, asked.model)


def solved(problem: Problem) -> Found:
    """Return the bound of a problem; for an allreduce, with free roots."""
    from colsynth import api

    allreduce = problem.collective is Collective.ALLREDUCE and len(problem.groups) < 2
    return api.allreduce_bound(problem) if allreduce else api.bound(problem)


def _unhurt(problem: Problem, damage: Damage) -> Problem:
    """Return the problem on the healthy topology, with the same GPUs."""
    old = damage.old_ranks
    groups = tuple(tuple(old[rank] for rank in group) for group in problem.groups)
    alone = problem.root is not None and not groups
    root = old[problem.root] if problem.root is not None and alone else problem.root
    held = dict(zip(damage.old_ranks, problem.shards, strict=False))
    shards = tuple(held.get(rank, 0) for rank in range(damage.healthy.size)) if held else ()
    demands = tuple(
        replace(
            demand,
            holders=tuple(old[rank] for rank in demand.holders),
            wanted=tuple(old[rank] for rank in demand.wanted),
        )
        for demand in problem.demands
    )
    healthy = replace(problem, topology=damage.healthy, root=root, shards=shards)
    return replace(healthy, groups=groups, demands=demands)


def _loss_fields(algbw: Fraction, healthy: Fraction | None) -> dict[str, Any]:
    """Return the JSON fields of the loss by failures; empty without failures."""
    if healthy is None:
        return {}
    return {
        "healthy_algbw_gb_per_s": gb_per_s(healthy),
        "healthy_algbw": exact_gb_per_s(healthy),
        "loss_percent": percent(1 - algbw / healthy),
    }


def bound_object(problem: Problem, found: Found, reach: Reached | None) -> dict[str, Any]:
    """Return a bound for ``--json``."""
    topology = problem.topology
    count = None if problem.shards else _trees_per_root(found, reach)
    bottleneck = found.cut if isinstance(found, FlowBound) else _slowest(found)[0]
    phases = [
        {"direction": cut.direction.value, "algbw": exact_gb_per_s(rate), **_cut(topology, cut)}
        for cut, rate in _phases(found)
    ]
    return {
        "topology": topology.name,
        "collective": problem.collective.value,
        "root": problem.root,
        **({"roots": _roots(problem)} if problem.has_several_roots else {}),
        "ranks": len(problem.members[0]),
        "algbw_gb_per_s": gb_per_s(found.algbw),
        "algbw": exact_gb_per_s(found.algbw),
        "trees_per_gpu": count,
        **({"shards": list(problem.shards)} if problem.shards else {}),
        "bottleneck": _cut(topology, bottleneck),
        "phases": phases,
        **(_flow_fields(topology, found) if isinstance(found, FlowBound) else {}),
        **(
            allreduce_fields(topology, found, reached=is_optimum(found.algbw, reach))
            if isinstance(found, AllreduceBound)
            else {}
        ),
    }


def _roots(problem: Problem) -> list[int]:
    """Return the ranks that are roots."""
    parts = zip(problem.roots, problem.weights, strict=True)
    return [rank for rank, part in parts if part]


def _of_trees(found: Found) -> Bound | None:
    """Return the bound of trees with equal roots, None for flows."""
    if isinstance(found, FlowBound):
        return None
    return found.composition if isinstance(found, AllreduceBound) else found


def _trees_per_root(found: Found, reach: Reached | None) -> int | None:
    """Return how many equal trees per root reach the rate; None if unknown."""
    trees = _of_trees(found)
    if trees is None or (reach is not None and reach.algbw is None):
        return None
    packed = None if reach is None else reach.forest
    return trees.trees_per_root if packed is None else packed.trees_per_root or None


def _flow_fields(topology: Topology, found: FlowBound) -> dict[str, Any]:
    """Return the JSON fields of a flow bound: its proof, and whether flows reach it."""
    prices = {topology.link_name(i): price for i, price in enumerate(found.prices) if price}
    return {
        "exact": found.exact,
        "cut_gb_per_s": gb_per_s(found.cut_algbw),
        "lp_gb_per_s": None if found.reached is None else round(found.reached / 10**9, 6),
        "prices": prices or None,
    }


def _phases(found: Found) -> list[tuple[Cut, Fraction]]:
    """Return the cut and the rate of every phase."""
    if isinstance(found, FlowBound):
        return [(found.cut, found.cut_algbw)]
    trees = found.composition if isinstance(found, AllreduceBound) else found
    return list(zip(trees.cuts, trees.rates, strict=True))


def _slowest(found: Found) -> tuple[Cut, Fraction]:
    """Return cut and rate of the slowest phase, the first among equals."""
    return min(_phases(found), key=lambda pair: pair[1])


def _cut(topology: Topology, cut: Cut) -> dict[str, Any]:
    return {
        "gpus": [topology.gpu_names[rank] for rank in cut.gpus],
        "links": [topology.link_name(link) for link in cut.links],
        "bandwidth_gb_per_s": gb_per_s(cut.bandwidth),
    }


def _title(problem: Problem, found: Found, trees: Reached | None) -> str:
    """Return the title of the figure: the optimum, or only a limit.

    Of an allreduce in several groups only the optimum of equal roots is known, of which one phase
    follows the other.
    """
    if problem.collective is Collective.ALLREDUCE and not isinstance(found, AllreduceBound):
        return "equal roots of" if is_optimum(found.algbw, trees) else "equal roots at most, for"
    if isinstance(found, AllreduceBound) and not found.known:
        return "at least, for" if is_optimum(found.algbw, trees) else "equal roots at most, for"
    if isinstance(found, AllreduceBound) and not found.proven:
        return "best trees for" if is_optimum(found.algbw, trees) else "trees at most, for"
    proven = found.exact if isinstance(found, FlowBound) else is_optimum(found.algbw, trees)
    return "optimum of" if proven else "at most, for"


def _show(problem: Problem, found: Found, reach: Reached | None, healthy: Fraction | None) -> None:
    from rich.table import Table

    topology = problem.topology
    table = Table.grid(padding=(0, 2))
    where = f"{asked_ranks(problem)} on {topology.name} ({topology.size} GPUs)"
    title = _title(problem, found, reach)
    table.add_row(title, f"{problem.collective}{_ways(problem)}{where}")
    exact = f"exactly {exact_gb_per_s(found.algbw)} GB/s"
    table.add_row("algbw", f"{format_bandwidth(found.algbw)}, {exact}")
    if healthy is not None:
        unhurt = f"{format_bandwidth(healthy)}, exactly {exact_gb_per_s(healthy)} GB/s"
        table.add_row("healthy", unhurt)
        table.add_row("loss", f"{percent(1 - found.algbw / healthy):.2f} %")
    if reach is not None:
        table.add_row("reached", reached_text(reach, found.algbw))
    if isinstance(found, AllreduceBound):
        for label, text in allreduce_rows(topology, found):
            table.add_row(label, text)
    if not isinstance(found, FlowBound):
        _add_trees(table, problem, found, reach)
    else:
        table.add_row("reached", _reached(problem, found))
        if found.prices:
            table.add_row("proof", "prices of links, listed by --json")
            allowed = f", which allow {format_bandwidth(found.cut_algbw)}"
            _add_cut(table, topology, "tightest cut", found.cut, allowed)
        else:
            _add_cut(table, topology, "bottleneck", found.cut, "")
    answer_console().print(table)


def _add_trees(
    table: Table, problem: Problem, found: Bound | AllreduceBound, reach: Reached | None
) -> None:
    """Add rows for the number of trees, and for the cut of every phase."""
    if problem.shards:
        table.add_row("shards", _parts(problem))
    if (count := _trees_per_root(found, reach)) is not None:
        table.add_row(f"trees per {'part' if problem.shards else 'GPU'}", str(count))
    phases = _phases(found)
    for cut, rate in phases:
        phase = f", {cut.direction} phase at {exact_gb_per_s(rate)} GB/s"
        _add_cut(table, problem.topology, "bottleneck", cut, phase if len(phases) > 1 else "")


def _parts(problem: Problem) -> str:
    """Return text that counts the GPUs by their number of parts of the message."""
    counts = Counter(problem.weights)
    of_each = (f"{part} for {plural(counts[part], 'GPU')}" for part in sorted(counts, reverse=True))
    return f"{plural(sum(problem.weights), 'part')}: {listed(list(of_each), _SHOWN)}"


def _add_cut(table: Table, topology: Topology, label: str, cut: Cut, remark: str) -> None:
    names = _cut(topology, cut)
    way = "leaving" if cut.direction == "out" else "entering"
    sizes = f"{plural(len(cut.links), 'link')} {way} {plural(len(cut.gpus), 'GPU')}"
    table.add_row(label, f"{sizes}, {format_bandwidth(cut.bandwidth)}{remark}")
    table.add_row("  GPUs", listed(names["gpus"], _SHOWN))
    table.add_row("  links", listed(names["links"], _SHOWN))


def _ways(problem: Problem) -> str:
    """Return a remark on the kind of allreduce that several groups are bounded for."""
    several = problem.collective is Collective.ALLREDUCE and len(problem.groups) > 1
    return " (reduce-scatter + allgather)" if several else ""


def _reached(problem: Problem, found: FlowBound) -> str:
    """Return text on whether flows reach the bound of a collective, and how that is known."""
    if problem.collective is Collective.CUSTOM:
        return "not known: a limit on any schedule, by cuts that were tried"
    if found.reached is None:
        known = "yes, by flows (maximum flow, minimum cut)"
        return known if found.exact else "not known: too large or too uneven for the linear program"
    reach = "yes" if found.exact else f"{found.reached / 10**9:.6g} GB/s"
    return f"{reach}, by flows (linear program)"
