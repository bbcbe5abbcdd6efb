"""Boxes of GPUs that name none: NICs tell where one node ends and the next begins.

Nodes that reach each other over links and switches alone are one component. GPUs of different
components reach each other through NICs only, so the components are different boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Kind, Topology
from colsynth.text import listed
from colsynth.topology.reach import joined

_NAMED = 4
"""GPUs and boxes that a note lists before it counts the rest."""


def infer_boxes(topology: Topology, spans: Sequence[Span | None] | None = None) -> Topology:
    """Return a topology in which GPUs behind different NICs have different boxes.

    Boxes that are named stay. A component without a name takes the box that its switches or NICs
    name, else a number of its own. All stays as it is where nobody needs a name: the GPUs are
    one component, or each has its box. `Topology.notes` tell what was concluded.

    Parameters
    ----------
    topology : Topology
    spans : sequence of Span or None, optional
        Where each node is declared.

    Raises
    ------
    InputError
        CS140: two components share a NIC, so they may be one box, and nothing tells.
    """
    if all(topology.nodes[gpu].box is not None for gpu in topology.ranks):
        return topology
    component = parts_without_nics(topology)
    components = list(dict.fromkeys(component[gpu] for gpu in topology.ranks))
    if len(components) == 1:
        return topology
    members = _members(topology, component, spans)
    box_of = _boxes(topology, members, components)
    nodes = list(topology.nodes)
    for number in components:
        for index in members[number]:
            if nodes[index].box is None:
                nodes[index] = replace(nodes[index], box=box_of[number])
    found = replace(topology, nodes=tuple(nodes))
    if found == topology:
        return topology
    return replace(found, notes=(*topology.notes, _note(topology, found)))


def parts_without_nics(topology: Topology) -> dict[int, int]:
    """Return a number for every node, equal for those that links without NICs join."""
    near = [node.kind is not Kind.NIC for node in topology.nodes]
    arcs = [x.ends for x in topology.links if near[x.source] and near[x.target]]
    parts = joined(range(len(near)), arcs)
    return {node: number for number, part in enumerate(parts) for node in part}


def _members(
    topology: Topology, component: dict[int, int], spans: Sequence[Span | None] | None
) -> dict[int, list[int]]:
    """Return the nodes of each component with GPUs, and the NICs that are linked to it."""
    members: dict[int, list[int]] = {component[gpu]: [] for gpu in topology.ranks}
    around: dict[int, set[int]] = {}
    for link in topology.links:
        for nic, other in (link.ends, (link.target, link.source)):
            other_is_nic = topology.nodes[other].kind is Kind.NIC
            if topology.nodes[nic].kind is Kind.NIC and not other_is_nic:
                around.setdefault(nic, set()).add(component[other])
    for index, node in enumerate(topology.nodes):
        near = {component[index]} if node.kind is not Kind.NIC else around.get(index, set())
        near &= members.keys()
        if len(near) > 1 and node.box is None:
            _refuse_shared(topology, index, near, component, spans)
        for number in near:
            members[number].append(index)
    return members


def _refuse_shared(
    topology: Topology,
    nic: int,
    near: set[int],
    component: dict[int, int],
    spans: Sequence[Span | None] | None,
) -> None:
    """Refuse a NIC between components of which one has a GPU without a box."""
    gpus = [gpu for gpu in sorted(topology.ranks) if component[gpu] in near]
    lost = [gpu for gpu in gpus if topology.nodes[gpu].box is None]
    if not lost:
        return
    other = next(gpu for gpu in gpus if component[gpu] != component[lost[0]])
    one, two = sorted((lost[0], other))
    names = topology.nodes[one].name, topology.nodes[two].name
    raise InputError(
        Diagnostic(
            "CS140",
            f"GPUs {names[0]!r} and {names[1]!r} may be in one box or in two",
            None if spans is None else spans[lost[0]],
            (f"both use NIC {topology.nodes[nic].name!r}, and no way between them avoids NICs",),
            "name the box of every GPU, such as 'box: 0'",
        )
    )


def _boxes(
    topology: Topology, members: dict[int, list[int]], components: list[int]
) -> dict[int, int | None]:
    """Return the box of each component; None where its members name several."""
    taken = {node.box for node in topology.nodes}
    free = (number for number in range(len(components) + len(taken)) if number not in taken)
    box_of: dict[int, int | None] = {}
    for number in components:
        named = {topology.nodes[index].box for index in members[number]} - {None}
        if not named:
            box_of[number] = next(free)
        else:
            box_of[number] = named.pop() if len(named) == 1 else None
    return box_of


def _note(before: Topology, after: Topology) -> str:
    """Return what was concluded: which GPUs are taken for a box each."""
    boxes: dict[int | None, list[str]] = {}
    for gpu in after.ranks:
        if before.nodes[gpu].box is None:
            boxes.setdefault(after.nodes[gpu].box, []).append(after.nodes[gpu].name)
    inferred = ((box, names) for box, names in boxes.items() if box is not None)
    shown = [f"box {box}: {listed(names, _NAMED)}" for box, names in inferred]
    head = "GPUs without a box are taken for one box where ways without a NIC join them"
    return f"{head}; {listed(shown, _NAMED, '; ', 'boxes')}"
