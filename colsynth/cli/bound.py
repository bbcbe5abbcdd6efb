"""``colsynth bound``: the proven optimum, and the cut that proves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colsynth.cli._common import (
    BandwidthOption,
    JsonOption,
    LatencyOption,
    NodesOption,
    SetOption,
    TopologyArgument,
    answer_console,
    emit_json,
    load_topology,
)
from colsynth.cli.compile import CollectiveOption, RootOption
from colsynth.cli.progress import progress
from colsynth.units import exact_gbps, format_bandwidth, gbps, plural

if TYPE_CHECKING:
    from fractions import Fraction

    from colsynth.model import Bound, Cut, Problem, Topology

_SHOWN = 8
"""Names that are listed before the rest is counted."""


def bound_(
    topology: TopologyArgument,
    collective: CollectiveOption,
    nodes: NodesOption = None,
    settings: SetOption = None,
    bandwidth: BandwidthOption = None,
    latency: LatencyOption = None,
    root: RootOption = None,
    json: JsonOption = False,
) -> None:
    """Print the proven optimum and the cut that proves it."""
    from colsynth import api

    value = load_topology(topology, nodes, settings, bandwidth, latency)
    problem = api.make_problem(value, collective, root)
    with progress():
        found = api.bound(problem)
    if json:
        emit_json(_as_object(problem, found))
    else:
        _show(problem, found)


def _as_object(problem: Problem, found: Bound) -> dict[str, Any]:
    phases = [
        {"direction": cut.direction.value, "algbw": exact_gbps(rate), **_cut(problem.topology, cut)}
        for cut, rate in zip(found.cuts, found.rates, strict=True)
    ]
    return {
        "topology": problem.topology.name,
        "collective": problem.collective.value,
        "root": problem.root,
        "ranks": problem.topology.size,
        "algbw_gbps": gbps(found.algbw),
        "algbw": exact_gbps(found.algbw),
        "trees_per_gpu": found.trees_per_root,
        "bottleneck": _cut(problem.topology, _slowest(found)[0]),
        "phases": phases,
    }


def _slowest(found: Bound) -> tuple[Cut, Fraction]:
    """Return cut and rate of the slowest phase, the first among equals."""
    pairs = list(zip(found.cuts, found.rates, strict=True))
    return min(pairs, key=lambda pair: pair[1])


def _cut(topology: Topology, cut: Cut) -> dict[str, Any]:
    return {
        "gpus": [topology.nodes[topology.ranks[rank]].name for rank in cut.gpus],
        "links": [topology.link_name(link) for link in cut.links],
        "bandwidth_gbps": gbps(cut.bandwidth),
    }


def _show(problem: Problem, found: Bound) -> None:
    from rich.table import Table

    topology = problem.topology
    table = Table.grid(padding=(0, 2))
    root = "" if problem.root is None else f" from rank {problem.root}"
    where = f"on {topology.name} ({topology.size} GPUs)"
    table.add_row("optimum of", f"{problem.collective}{root} {where}")
    exact = f"exactly {exact_gbps(found.algbw)} GB/s"
    table.add_row("algbw", f"{format_bandwidth(found.algbw)}, {exact}")
    table.add_row("trees per GPU", str(found.trees_per_root))
    for cut, rate in zip(found.cuts, found.rates, strict=True):
        phase = (
            "" if len(found.cuts) == 1 else f", {cut.direction} phase at {exact_gbps(rate)} GB/s"
        )
        names = _cut(topology, cut)
        way = "leaving" if cut.direction == "out" else "entering"
        sizes = f"{plural(len(cut.links), 'link')} {way} {plural(len(cut.gpus), 'GPU')}"
        head = f"{sizes}, {format_bandwidth(cut.bandwidth)}"
        table.add_row("bottleneck", head + phase)
        table.add_row("  GPUs", _listed(names["gpus"]))
        table.add_row("  links", _listed(names["links"]))
    answer_console().print(table)


def _listed(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
