"""A topology as plain values: nodes with their places on the page, links, boxes, losses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import product
from typing import Any

from colsynth.errors import ColsynthError
from colsynth.model import Kind, Problem, Topology
from colsynth.units import gb_per_s, percent

Place = tuple[int, int]

STEP, GAP, MARGIN = 74, 46, 30
"""Pixels from node to node in a row, between boxes, and around them."""
ROW = 92
"""Pixels from a row of nodes to the next."""
MOST_LOSSES = 48
"""Links whose failure is costed; each costs one bound."""

_GRID = re.compile(r"(?:torus|mesh|grid|hypercube):([0-9]+(?:x[0-9]+)*)")


def describe_machine(topology: Topology) -> dict[str, Any]:
    """Return nodes, links (GB/s, microseconds) and two layouts: for a desk and for a phone."""
    return {
        "name": topology.name,
        "nodes": [
            {
                "name": node.name,
                "kind": node.kind.value,
                "box": node.box,
                "rank": topology.rank_of.get(index),
            }
            for index, node in enumerate(topology.nodes)
        ],
        "links": [
            [link.source, link.target, gb_per_s(link.bandwidth), float(link.latency * 10**6)]
            for link in topology.links
        ],
        "layouts": {
            "wide": _layout(topology, 2 if len(topology.boxes) <= 4 else 4, 8),
            "narrow": _layout(topology, 1 if len(topology.boxes) <= 4 else 2, 4),
        },
    }


def link_losses(problem: Problem, links: Iterable[int]) -> list[dict[str, Any]]:
    """Return what the failure of a link (in both directions) costs the bound, for the first links.

    The loss is in percent of the healthy bound; 100 where GPUs are cut off.
    """
    from dataclasses import replace

    from colsynth.bounds.optimum import best_optimum
    from colsynth.topology.damage import Failures
    from colsynth.topology.failures import apply_failures

    topology, found = problem.topology, []
    healthy = best_optimum(problem).algbw
    wires = dict.fromkeys(_both(topology, link) for link in links)
    for wire in list(wires)[:MOST_LOSSES]:
        name = topology.link_name(wire[0]).replace(" -> ", "-")
        row: dict[str, Any] = {"wire": name, "links": list(wire), "algbw_gb_per_s": None}
        row["loss_percent"] = 100.0
        ends = tuple((topology.links[i].source, topology.links[i].target) for i in wire)
        try:
            left = apply_failures(topology, Failures(links=ends)).topology
            rate = best_optimum(replace(problem, topology=left)).algbw
            row |= {"algbw_gb_per_s": gb_per_s(rate), "loss_percent": percent(1 - rate / healthy)}
        except ColsynthError as fault:
            row["refusal"] = fault.diagnostic.phrase
        found.append(row)
    return found


def _both(topology: Topology, index: int) -> tuple[int, ...]:
    """Return a link and the one back, in order."""
    link = topology.links[index]
    back = topology.link_between.get((link.target, link.source))
    return tuple(sorted({index} if back is None else {index, back}))


def _layout(topology: Topology, columns: int, most: int) -> dict[str, Any]:
    """Return places of nodes, frames of boxes, and the size of the picture.

    Boxes stand in a grid of `columns`; what is in no box stands between their rows. A row has
    at most `most` nodes.
    """
    boxes: dict[int | None, list[int]] = {}
    for index, node in enumerate(topology.nodes):
        boxes.setdefault(node.box, []).append(index)
    fabric = boxes.pop(None, [])
    inside = {box: _box(topology, nodes, most) for box, nodes in boxes.items()}
    width = max((size[0] for _, size in inside.values()), default=0)
    height = max((size[1] for _, size in inside.values()), default=0)
    columns = min(columns, len(boxes)) or 1
    rows = math.ceil(len(boxes) / columns)
    whole = max(columns * (width + GAP) - GAP, min(len(fabric), most) * STEP)
    above = math.ceil(rows / 2)
    places: dict[int, Place] = {}
    frames = []
    band = ROW * math.ceil(len(fabric) / max(1, whole // STEP))
    for number, (box, (within, size)) in enumerate(inside.items()):
        row, column = divmod(number, columns)
        left = MARGIN + column * (width + GAP) + (width - size[0]) // 2
        top = MARGIN + row * (height + GAP) + (band if row >= above else 0)
        frames.append({"box": box, "at": [left, top, *size]})
        places |= {node: (left + x, top + y) for node, (x, y) in within.items()}
    top = MARGIN + above * (height + GAP) - (GAP - ROW // 2 if boxes else 0)
    places |= _rows(fabric, MARGIN, top, whole)
    bottom = MARGIN + rows * (height + GAP) - (GAP if boxes else 0) + band
    return {
        "size": [whole + 2 * MARGIN, bottom + MARGIN],
        "nodes": [list(places[index]) for index in range(len(topology.nodes))],
        "boxes": frames,
    }


def _rows(nodes: list[int], left: int, top: int, width: int) -> dict[int, Place]:
    """Return nodes in rows across a width."""
    each = max(1, width // STEP)
    found = {}
    for first in range(0, len(nodes), each):
        line = nodes[first : first + each]
        for number, node in enumerate(line):
            x = left + width * (2 * number + 1) // (2 * len(line))
            found[node] = (x, top + ROW * (first // each))
    return found


def _box(topology: Topology, nodes: list[int], most: int) -> tuple[dict[int, Place], Place]:
    """Return places within a box, and its size: a grid, a ring, or rows by kind."""
    kinds = {kind: [n for n in nodes if topology.nodes[n].kind is kind] for kind in Kind}
    gpus = kinds[Kind.GPU]
    ranks = set(gpus)
    direct = any(link.source in ranks and link.target in ranks for link in topology.links)
    if direct:
        found, size = _grid(topology, gpus) or _ring(gpus)
    else:
        width = max(STEP * min(most, len(gpus)), STEP)
        found = _rows(gpus, 0, ROW // 2, width)
        size = (width, ROW * math.ceil(len(gpus) / max(1, width // STEP)))
    up = ROW if kinds[Kind.SWITCH] else 0
    places = {node: (x, y + up) for node, (x, y) in found.items()}
    width, height = size[0], size[1] + up
    places |= _rows(kinds[Kind.SWITCH], 0, ROW // 2, width)
    if kinds[Kind.NIC]:
        places |= _rows(kinds[Kind.NIC], 0, height + ROW // 4, width)
        height += ROW * math.ceil(len(kinds[Kind.NIC]) / max(1, width // STEP)) - ROW // 4
    return places, (width, height)


def _ring(gpus: list[int]) -> tuple[dict[int, Place], Place]:
    """Return GPUs on a circle that leaves room for their names."""
    radius = max(110, round(len(gpus) * STEP / (2 * math.pi) * 1.05))
    middle = radius + STEP // 2
    found = {}
    for number, gpu in enumerate(gpus):
        angle = 2 * math.pi * (number + 0.5) / len(gpus) - math.pi / 2
        x, y = middle + radius * math.cos(angle), middle + radius * math.sin(angle)
        found[gpu] = (round(x), round(y))
    return found, (2 * middle, 2 * middle)


def _grid(topology: Topology, gpus: list[int]) -> tuple[dict[int, Place], Place] | None:
    """Return a generated torus or mesh as its grid, further axes drawn askew; None for others."""
    match = _GRID.match(topology.name)
    sides = [] if match is None else [int(side) for side in match[1].split("x")]
    if match is not None and match[0].startswith("hypercube"):
        sides = [2] * sides[0]
    if not sides or math.prod(sides) != len(gpus) or len(sides) > 4:
        return None
    sides = [1] * (2 - len(sides)) + sides
    *outer, wide = sides[:-2] + sides[-1:]
    found = {}
    for gpu, at in zip(gpus, product(*map(range, sides)), strict=True):
        *layer, y, x = at
        # The third axis goes askew within a cell; a fourth repeats the picture to the right.
        depth = layer[-1] if layer else 0
        deep = outer[-1] if outer else 1
        beside = layer[0] * wide if len(layer) > 1 else 0
        cell = STEP * max(1, deep) * 0.72
        found[gpu] = (
            round(STEP / 2 + (x + beside) * cell + depth * STEP * 0.56),
            round(STEP / 2 + y * cell + (deep - 1 - depth) * STEP * 0.46),
        )
    most = [max(place[axis] for place in found.values()) + STEP // 2 for axis in (0, 1)]
    return found, (most[0], most[1])
