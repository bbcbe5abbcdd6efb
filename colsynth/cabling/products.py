"""What a chosen fabric becomes: a topology, and a list of cables."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

from colsynth.cabling.boxes import wired
from colsynth.cabling.figures import Figures
from colsynth.cabling.panels import Cable, cables
from colsynth.cabling.request import Request
from colsynth.model import Topology
from colsynth.topology.generators import topology_of
from colsynth.topology.graphs.grammar import build, read_term
from colsynth.units import spell_bandwidth, spell_duration


def fabric(found: Figures, request: Request) -> Topology:
    """Return the topology of a fabric: GPUs, or boxes joined by their NICs."""
    graph = build(read_term(found.text))
    if request.box is not None:
        name = f"{request.box} x{found.size} by {found.text}"
        return wired(request.box, found.size, cables(graph), name)
    bandwidth = spell_bandwidth(request.job.bandwidth)
    latency = spell_duration(request.job.latency)
    return topology_of(replace(graph, axes=1, axis=graph.axis * 0), found.text, bandwidth, latency)


def cable_list(found: Figures, request: Request) -> str:
    """Return the cables as CSV: the port of every node, its panel, and where that leads."""
    rows = cables(build(read_term(found.text)))
    kind = "gpu" if request.box is None else "box"
    out = StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("panel", "from", "from_port", "to", "to_port", "both_ways"))
    for cable in rows:
        ports = _ports(cable)
        if cable.source != cable.target:
            ends = (f"{kind}{cable.source}", ports[0], f"{kind}{cable.target}", ports[1])
            table.writerow((cable.panel, *ends, "yes" if cable.both_ways else "no"))
    return out.getvalue()


def _ports(cable: Cable) -> tuple[int, int]:
    """Return the ports at both ends: a cable for both directions leaves by an even port."""
    if not cable.both_ways:
        return cable.panel, cable.panel
    return 2 * cable.panel, 2 * cable.panel + 1
