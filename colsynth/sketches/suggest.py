"""Sketches for a topology, from its rails, its NICs and its symmetries.

- ``rails``: every GPU sends to the one in its place of other boxes. Many connections, few steps.
- ``relays``: of the GPUs behind one NIC, one sends for all, and one receives.
- ``all``: any GPU to any of another box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from colsynth.model import Kind, Sketch, Topology
from colsynth.sketches.logical import ways_of
from colsynth.sketches.read import decode_sketch, equal_boxes
from colsynth.sketches.symmetry import Logical, Way, turned

_MOST_RANKS = 128
"""Above, turns of whole boxes alone are tried: a symmetry is looked up link by link."""

_MOST_SEARCHED = 64
"""Ranks up to which symmetries that are no turns are looked for."""

Place = tuple[int, int]
"""Sender and receiver, in places of a box."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A sketch that fits a topology.

    Parameters
    ----------
    name : str
        ``"rails"``, ``"relays"``, ``"all"``, or ``"box"`` where there is only one.
    text : str
        YAML.
    sketch : Sketch
    """

    name: str
    text: str
    sketch: Sketch


def suggest(topology: Topology) -> tuple[Proposal, ...]:
    """Return sketches for a topology.

    Raises
    ------
    InputError
        CS143: the boxes differ.
    """
    boxes = equal_boxes(topology)
    empty = decode_sketch(b"version: 1\n", topology.name, topology).sketch
    ways = ways_of(topology, empty)
    if len(boxes) == 1:
        return (_proposal("box", topology, empty, ways, ["version: 1"]),)
    found = []
    for name, told in _between(topology, boxes, ways):
        lines = ["version: 1", f"boxes: {len(boxes)}", *told]
        sketch = decode_sketch("\n".join(lines).encode(), name, topology).sketch
        found.append(_proposal(name, topology, sketch, ways_of(topology, sketch), lines))
    return tuple(found)


def _between(
    topology: Topology, boxes: list[list[int]], ways: Sequence[Way]
) -> Iterator[tuple[str, list[str]]]:
    """Yield name and lines of every proposal for what is between boxes."""
    size, first, second = len(boxes[0]), set(boxes[0]), set(boxes[1])
    out: dict[int, set[int]] = {}
    into: dict[int, set[int]] = {}
    have: set[Place] = set()
    for source, target, route in ways:
        if source in first and target in second:
            place = source - boxes[0][0], target - boxes[1][0]
            have.add(place)
            nodes = [topology.links[link].target for link in route[:-1]]
            nics = [node for node in nodes if topology.nodes[node].kind is Kind.NIC]
            # Without NICs, every GPU has links of its own to the fabric.
            out.setdefault(place[0], set()).add(nics[0] if nics else -1 - place[0])
            into.setdefault(place[1], set()).add(nics[-1] if nics else -1 - place[1])
    rails = all((i, i) in have for i in range(size))
    if rails:
        yield "rails", ["between-boxes: {connections: rails}", "inside-boxes: {connections: many}"]
    senders = sorted({frozenset(nics): i for i, nics in sorted(out.items())}.values())
    receivers = sorted({frozenset(nics): -i for i, nics in sorted(into.items())[::-1]}.values())
    receivers = sorted(-i for i in receivers)
    if senders and not (rails and len(senders) == size):
        joined = list(zip(senders, receivers, strict=False))
        if len(senders) != len(receivers) or not have.issuperset(joined):
            joined = [(a, b) for a in senders for b in receivers if (a, b) in have]
        yield "relays", _relayed(size, out, senders, joined)
    yield "all", ["between-boxes: {connections: all}"]


def _relayed(
    size: int, out: dict[int, set[int]], senders: list[int], joined: list[Place]
) -> list[str]:
    """Return the lines of a sketch with one sender and one receiver per NIC."""
    own = {frozenset(out[sender]): sender for sender in senders}
    served: dict[int, list[int]] = {sender: [] for sender in senders}
    for gpu in range(size):
        near = senders[gpu * len(senders) // size]
        served[own.get(frozenset(out.get(gpu, ())), near)].append(gpu)
    lines = ["between-boxes:", "  connections:"]
    for sender in senders:
        to = ", ".join(str(receiver) for one, receiver in joined if one == sender)
        lines.append(f"    - {{from: {sender}, to: [{to}]}}")
    lines.append("  senders:")
    for sender, gpus in served.items():
        lines.append(f"    - {{gpu: {sender}, for: [{', '.join(map(str, gpus))}]}}")
    return [*lines, "inside-boxes: {connections: few}"]


def _proposal(
    name: str, topology: Topology, sketch: Sketch, ways: Sequence[Way], lines: list[str]
) -> Proposal:
    logical = Logical(topology, sketch, ways)
    images = dict(_symmetries(topology, logical))
    if images:
        lines = [*lines, "symmetries:", *(f"  - {text}" for text in images)]
    text = "\n".join(lines) + "\n"
    return Proposal(name, text, replace(sketch, symmetries=tuple(images.values())))


def _symmetries(topology: Topology, logical: Logical) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield symmetries, as text and image, each of which makes more GPUs alike."""
    ranks = topology.size
    orbit = list(range(ranks))
    for text, image in _candidates(topology):
        joined = _merged(orbit, image)
        if joined != orbit and logical.fault(image) is None:
            orbit = joined
            yield text, image
    if len(set(orbit)) == 1 or ranks > _MOST_SEARCHED:
        return
    for image in _others(topology):
        joined = _merged(orbit, image)
        if joined != orbit and logical.fault(image) is None:
            orbit = joined
            yield f"{{ranks: [{', '.join(map(str, image))}]}}", image


def _candidates(topology: Topology) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield turns of blocks, large blocks and small steps first."""
    ranks, box = topology.size, topology.size // max(len(topology.boxes), 1)
    for size in (n for n in range(ranks, 1, -1) if ranks % n == 0):
        for offset in (n for n in range(1, size) if size % n == 0):
            if ranks <= _MOST_RANKS or offset == box:
                text = f"{{turn: {offset}, of: {size}}}"
                yield text, turned(offset, size, ranks)


def _others(topology: Topology) -> Iterator[tuple[int, ...]]:
    """Yield symmetries of the whole topology that map rank 0 to others, one for each."""
    import numpy as np

    from colsynth.topology.graphs.symmetry import maps_of_first

    gpus = [*topology.ranks]
    order = gpus + [i for i in range(len(topology.nodes)) if i not in topology.rank_of]
    place = {node: i for i, node in enumerate(order)}
    kinds: dict[object, int] = {}
    arcs = []
    for link in topology.links:
        ends = (topology.nodes[node] for node in link.ends)
        what = *((x.kind, x.capabilities) for x in ends), link.bandwidth, link.latency
        kind = kinds.setdefault(what, len(kinds))
        arcs.append((place[link.source], place[link.target], kind))
    tail, head, kind_of = (np.array(column) for column in zip(*arcs, strict=True))
    for found in maps_of_first(len(order), tail, head, kind_of, range(1, len(gpus))):
        yield tuple(found[: len(gpus)].tolist())


def _merged(orbit: list[int], image: Sequence[int]) -> list[int]:
    """Return the least rank that each rank is like, with one more symmetry."""
    import networkx as nx

    graph = nx.Graph(enumerate(orbit))
    graph.add_edges_from(enumerate(image))
    least = {rank: min(part) for part in nx.connected_components(graph) for rank in part}
    return [least[rank] for rank in range(len(orbit))]
