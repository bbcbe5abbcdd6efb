"""``colsynth topology``: lists machines; shows, checks, exports and imports descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._common import (
    ForceOption,
    JsonOption,
    SuggestingGroup,
    answer_console,
    emit_json,
    ruled_table,
)
from colsynth.cli._help import Command
from colsynth.cli.bundles import bundled
from colsynth.cli.cabling import search
from colsynth.cli.import_topology import import_
from colsynth.cli.machine import MachineOptions, TopologyArgument, failures_field
from colsynth.cli.places import YAML, check_file
from colsynth.cli.streams import is_stdin
from colsynth.model import Kind, Topology
from colsynth.units import gb_per_s

if TYPE_CHECKING:
    from rich.table import Table

    from colsynth.topology.summary import Totals

app = typer.Typer(
    name="topology",
    help="List, show, export, check and import topologies.",
    cls=SuggestingGroup,
    no_args_is_help=True,
    add_completion=False,
)

app.command("import", cls=Command)(bundled(import_))
app.command(cls=Command)(search)

MATRIX_LIMIT = 16
"""GPUs whose rows are shown unless --all asks for more."""


@app.command("list", cls=Command)
def list_(json: JsonOption = False) -> None:
    """List the presets and generators."""
    from colsynth.topology import presets
    from colsynth.topology.graphs.examples import EXAMPLES

    found = presets()
    if json:
        entries = [
            {
                "name": preset.name,
                "aliases": list(preset.aliases),
                "title": preset.title,
                "path": str(preset.path),
                "parameters": dict(preset.parameters),
            }
            for preset in found
        ]
        emit_json({"presets": entries, "generators": list(EXAMPLES)})
        return
    table = ruled_table("preset", "also", "machine", "--set")
    for preset in found:
        parameters = ", ".join(name for name, _ in preset.parameters)
        table.add_row(preset.name, ", ".join(preset.aliases), preset.title, parameters)
    console = answer_console()
    console.print(table)
    console.print(f"generators: {', '.join(EXAMPLES)}", soft_wrap=True)


@app.command(cls=Command)
@bundled
def show(
    *,
    topology: TopologyArgument,
    machine: MachineOptions,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every GPU, not only the first 16.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the link matrix, the totals per GPU, and what kind of graph direct links make."""
    from colsynth.topology.graphs.facts import facts_of
    from colsynth.topology.summary import headline, totals

    damage = machine.read(topology)
    value = damage.topology
    sums, graph = totals(value), facts_of(value)
    if json:
        facts = {"graph": None if graph is None else asdict(graph)}
        emit_json({**_show_json(value, sums), **facts, **failures_field(damage)})
        return
    console = answer_console()
    console.print(headline(value), soft_wrap=True)
    if graph is not None:
        console.print(str(graph), soft_wrap=True)
    console.print(_matrix_table(value, value.size if everything else MATRIX_LIMIT))
    if value.size > MATRIX_LIMIT and not everything:
        console.print(f"({value.size - MATRIX_LIMIT} more GPUs: --all)\n")
    console.print(_totals_table([x for x in sums if x.rank is not None], "totals per GPU"))
    others = [x for x in sums if x.rank is None and (x.egress or x.ingress)]  # some were left out
    if others:
        console.print(_totals_table(others, "switches and NICs"))


@app.command(cls=Command)
@bundled
def export(
    *,
    topology: TopologyArgument,
    machine: MachineOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write YAML to this file, e.g. cluster.yaml.",
            show_default="stdout",
        ),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a topology in the flat form, as YAML or as JSON (either can be read back)."""
    from colsynth.topology.export import export_flat, flat_form
    from colsynth.topology.load import is_generator
    from colsynth.topology.summary import headline
    from colsynth.writing import write_files

    place = None if output is None or is_stdin(output) else output
    if place is not None:
        check_file("--output", place, YAML, force)
    value = machine.read(topology).topology
    text = export_flat(value)
    if is_generator(topology):
        given = (("--bandwidth", machine.bandwidth), ("--latency", machine.latency))
        options = "".join(f" {name} {word!r}" for name, word in given if word is not None)
        text = f"# colsynth topology export {topology!r}{options}\n{text}"
    if place is not None:
        write_files({place: text.encode()}, replace=force)
    if json:
        emit_json(flat_form(value))
    elif place is None:
        print(text, end="")
    else:
        answer_console().print(f"{place}: {headline(value)}", soft_wrap=True)


@app.command(cls=Command)
def schema(_json: JsonOption = False) -> None:
    """Print the JSON Schema of topology files (with or without --json)."""
    from colsynth.topology import json_schema

    emit_json(json_schema())


@app.command(cls=Command)
@bundled
def check(
    *,
    topology: TopologyArgument,
    machine: MachineOptions,
    json: JsonOption = False,
) -> None:
    """Check a description; a mistake is reported with its line and column."""
    from colsynth.topology.summary import headline

    damage = machine.read(topology)
    value = damage.topology
    if json:
        emit_json({"ok": True, **_facts(value), **failures_field(damage)})
    else:
        answer_console().print(f"ok: {headline(value)}", soft_wrap=True)


def _facts(topology: Topology) -> dict[str, Any]:
    return {
        "topology": topology.name,
        "gpus": topology.size,
        "boxes": len(topology.boxes),
        "nodes": len(topology.nodes),
        "links": len(topology.links),
        "symmetric": topology.is_symmetric,
    }


def _show_json(topology: Topology, sums: Iterable[Totals]) -> dict[str, Any]:
    from colsynth.topology.summary import matrix

    return {
        **_facts(topology),
        "ranks": list(topology.gpu_names),
        "matrix_gb_per_s": [[gb_per_s(cell) for cell in row] for row in matrix(topology)],
        "totals": [
            {
                "name": x.node.name,
                "kind": str(x.node.kind),
                "rank": x.rank,
                "box": x.node.box,
                "capabilities": list(x.node.capabilities),
                "egress_gb_per_s": gb_per_s(x.total_egress),
                "ingress_gb_per_s": gb_per_s(x.total_ingress),
                "egress_by_kind_gb_per_s": {str(k): gb_per_s(v) for k, v in x.egress.items()},
                "ingress_by_kind_gb_per_s": {str(k): gb_per_s(v) for k, v in x.ingress.items()},
            }
            for x in sums
        ],
    }


def _matrix_table(topology: Topology, limit: int) -> Table:
    """Rows are GPUs; columns are GPUs by rank, each switch, and all NICs together."""
    rows = topology.ranks[:limit]
    shown = set(rows)
    linked = {x.target for x in topology.links if x.source in shown}
    peers = [gpu for gpu in topology.ranks if gpu in linked][: 2 * limit]
    switches = [n for n in sorted(linked) if topology.nodes[n].kind is Kind.SWITCH][:limit]
    rest = sorted(linked.difference(peers, switches))
    nics = [node for node in rest if topology.nodes[node].kind is Kind.NIC]
    others = [node for node in rest if topology.nodes[node].kind is not Kind.NIC]
    columns = [(str(topology.rank_of[gpu]), [gpu]) for gpu in peers]
    columns += [(topology.nodes[node].name, [node]) for node in switches]
    columns += [(name, nodes) for name, nodes in (("others", others), ("NICs", nics)) if nodes]
    table = ruled_table("rank", "GPU", title="links, GB/s from row to column")
    for name, _ in columns:
        table.add_column(name, justify="right")
    for gpu in rows:
        cells = [_figure(_links(topology, gpu, nodes)) for _, nodes in columns]
        table.add_row(str(topology.rank_of[gpu]), topology.nodes[gpu].name, *cells)
    return table


def _links(topology: Topology, source: int, targets: Iterable[int]) -> Fraction:
    found = [topology.link_between.get((source, target)) for target in targets]
    return sum((topology.links[i].bandwidth for i in found if i is not None), Fraction(0))


def _figure(bandwidth: Fraction) -> str:
    return f"{gb_per_s(bandwidth):g}" if bandwidth else "."


def _totals_table(sums: Sequence[Totals], title: str) -> Table:
    """One row for all nodes with equal totals."""
    kinds = [kind for kind in Kind if any(kind in (*x.egress, *x.ingress) for x in sums)]
    table = ruled_table("nodes", title=f"{title}, GB/s")
    for name in ("count", "egress", "ingress", *(f"{k} out/in" for k in kinds)):
        table.add_column(name, justify="right")
    alike: dict[object, list[Totals]] = {}
    for x in sums:
        key = (x.node.kind, x.node.capabilities, *x.egress.items(), None, *x.ingress.items())
        alike.setdefault(key, []).append(x)
    for group in alike.values():
        first = group[0]
        cells = [f"{_of(first.egress, kind)}/{_of(first.ingress, kind)}" for kind in kinds]
        sides = (_figure(first.total_egress), _figure(first.total_ingress))
        table.add_row(_label(sums, group), str(len(group)), *sides, *cells)
    return table


def _of(sums: Mapping[Kind, Fraction], kind: Kind) -> str:
    return _figure(sums.get(kind, Fraction(0)))


def _label(sums: Sequence[Totals], group: Sequence[Totals]) -> str:
    """Return the names of a group; consecutive ones are written ``first .. last``."""
    names = [x.node.name for x in group]
    start = sums.index(group[0])
    if len(names) <= 2:
        label = ", ".join(names)
    elif list(sums[start : start + len(group)]) == list(group):
        label = f"{names[0]} .. {names[-1]}"
    else:
        label = f"{names[0]}, {names[1]}, .., {names[-1]}"
    powers = group[0].node.capabilities
    return f"{label} ({', '.join(powers)})" if powers else label
