"""Parallel switches of a box, such as the chips of an NVSwitch board: they count as one.

GPUs spread data over all their links to such switches by address, whatever a file says. Were they
apart, a connection would be taken to use one of them at a time. One switch with the sum of their
links carries exactly what they carry together: a share of every flow goes through each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from colsynth.model import Topology
from colsynth.text import listed
from colsynth.topology.damage import NAMED, Ends
from colsynth.topology.spare import Fabric, fabrics_of
from colsynth.topology.wires import choose_wires

Role = tuple[bool, tuple[int, ...], tuple[int, ...]]
"""Whether a node is a switch, and the GPUs that it gets data from and sends data to."""


@dataclass(frozen=True, slots=True)
class _Plane:
    """Switches that links join, and the node that has each role among them and their GPUs."""

    fabric: Fabric
    places: dict[Role, int]


def merge_switches(topology: Topology) -> Topology:
    """Return a topology in which switches that join the same GPUs at the same rates are one.

    So are parallel groups of switches that links join, such as the planes of a DGX-2. Nodes stay
    what they are, but only the first of several parallel ones has links. What was merged is in the
    notes; the topology as it was is the `whole` of the answer.

    Parameters
    ----------
    topology : Topology
        Its slower wires were left out (`choose_wires`).
    """
    fabrics = [fabric for fabric in fabrics_of(topology) if fabric.gpus]
    times = Counter(gpu for fabric in fabrics for gpu in fabric.gpus)
    planes: dict[object, list[_Plane]] = {}
    for fabric in fabrics:
        if min(times[gpu] for gpu in fabric.gpus) > 1:
            roles = _roles(topology, fabric)
            if roles is not None:
                plane = _Plane(fabric, {role: node for node, role in roles.items()})
                planes.setdefault(_shape(topology, fabric, roles), []).append(plane)
    parallel = [found for found in planes.values() if len(found) > 1]
    return _merged(topology, parallel) if parallel else topology


def as_used(topology: Topology, rates: Mapping[Ends, Fraction] | None = None) -> Topology:
    """Return a topology as runtimes use it: the faster of two wires, and chips of a switch as one.

    Parameters are those of `choose_wires`.
    """
    return merge_switches(choose_wires(topology, rates))


def separate_links(topology: Topology) -> dict[Ends, int]:
    """Return the links that can fail by (source, target): those of merged switches are apart."""
    whole = topology.whole
    return (topology if whole is None else choose_wires(whole)).link_between


def _roles(topology: Topology, fabric: Fabric) -> dict[int, Role] | None:
    """Return what tells each node of a fabric from the others; None where nothing does.

    A GPU is itself; a switch is known by its GPUs. A fabric that leads to NICs or out of the box
    stays as it is: files choose the NIC of a connection.
    """
    into: dict[int, set[int]] = {switch: set() for switch in fabric.switches}
    out: dict[int, set[int]] = {switch: set() for switch in fabric.switches}
    for link in fabric.links:
        outside = {link.source, link.target} - fabric.switches
        if not outside <= topology.rank_of.keys():
            return None
        if link.target in into:
            into[link.target] |= outside
        if link.source in out:
            out[link.source] |= outside
    roles: dict[int, Role] = {gpu: (False, (gpu,), ()) for gpu in fabric.gpus}
    for switch in fabric.switches:
        roles[switch] = True, tuple(sorted(into[switch])), tuple(sorted(out[switch]))
    return roles if len(set(roles.values())) == len(roles) else None


def _shape(topology: Topology, fabric: Fabric, roles: dict[int, Role]) -> object:
    """Return what parallel fabrics have in common; rates are shares of that of the first link."""
    links = sorted((roles[x.source], roles[x.target], x.bandwidth, x.latency) for x in fabric.links)
    switches = sorted(fabric.switches, key=roles.__getitem__)
    return (
        tuple((a, b, rate / links[0][2], latency) for a, b, rate, latency in links),
        tuple((topology.nodes[x].box, topology.nodes[x].capabilities) for x in switches),
    )


def _merged(topology: Topology, parallel: list[list[_Plane]]) -> Topology:
    links = {link.ends: link for link in topology.links}
    notes = []
    for first, *others in parallel:
        for plane in others:
            kept = {node: first.places[role] for role, node in plane.places.items()}
            for link in plane.fabric.links:
                del links[link.source, link.target]
                ends = kept[link.source], kept[link.target]
                both = links[ends].bandwidth + link.bandwidth
                links[ends] = replace(links[ends], bandwidth=both)
        switches = [i for plane in (first, *others) for i in sorted(plane.fabric.switches)]
        names = listed((topology.nodes[i].name for i in switches), NAMED)
        notes.append(
            f"{names} join the same GPUs, which spread data over all of them: they count as one"
        )
    return replace(
        topology,
        links=tuple(link for _, link in sorted(links.items())),
        notes=(*topology.notes, *notes),
        whole=topology.whole or topology,
    )
