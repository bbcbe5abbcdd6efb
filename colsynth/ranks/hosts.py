"""Hosts by name, and the GPU of a host on which each rank runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Kind, Topology
from colsynth.topology.importers.hostlist import Host
from colsynth.units import plural


class Place(NamedTuple):
    """Where a rank runs: the host, and the number of the GPU on it."""

    host: str
    device: int


def placement_of(
    topology: Topology, hosts: Sequence[str], whole: Topology | None = None
) -> tuple[Place, ...]:
    """Return where each rank of a topology runs; hosts are its boxes, in order.

    Parameters
    ----------
    topology : Topology
    hosts : sequence of str
    whole : Topology, optional
        The machine before GPUs were left out: a GPU keeps the number that it has there.

    Raises
    ------
    InputError
        CS631: there are more or fewer hosts than boxes.
    """
    machine = whole or topology
    boxes = {node.box for node in machine.nodes if node.kind is Kind.GPU}
    if None in boxes:
        return _without_boxes(topology, machine, hosts)
    known = sorted(box for box in boxes if box is not None)
    if len(hosts) != len(known):
        raise wrong_count(len(hosts), len(known), machine.name)
    devices: dict[str, Place] = {}
    count = dict.fromkeys(known, 0)
    for node in machine.nodes:
        if node.kind is Kind.GPU and node.box is not None:
            devices[node.name] = Place(hosts[known.index(node.box)], count[node.box])
            count[node.box] += 1
    return tuple(devices[topology.nodes[node].name] for node in topology.ranks)


def _without_boxes(
    topology: Topology, machine: Topology, hosts: Sequence[str]
) -> tuple[Place, ...]:
    """Return a GPU on each host, or all of them on one."""
    names = [node.name for node in machine.nodes if node.kind is Kind.GPU]
    if len(hosts) not in (1, len(names)):
        raise wrong_count(len(hosts), len(names), machine.name)
    alone = len(hosts) == 1
    numbers = (names.index(topology.nodes[node].name) for node in topology.ranks)
    return tuple(Place(hosts[0], n) if alone else Place(hosts[n], 0) for n in numbers)


def require_slots(
    places: Sequence[Place], listed: Sequence[Host], *, has_topology: bool = True
) -> None:
    """Refuse a host that takes fewer processes than there are ranks on it (CS631).

    Without a topology, all hosts have as many ranks as the user says.
    """
    ranks = Counter(place.host for place in places)
    for host in listed:
        if host.slots is not None and host.slots < ranks[host.name]:
            found, asked = plural(host.slots, "slot"), plural(ranks[host.name], "rank")
            phrase = f"{host.name} has {found}, and {asked} would run on it"
            other = "choose another topology or --group" if has_topology else "--gpus-per-host"
            advice = f"correct its slots, or {other}"
            raise InputError(Diagnostic("CS631", phrase, host.at, help=advice))


def wrong_count(found: int, expected: int, name: str) -> InputError:
    """Return the refusal of a list of hosts of another length (CS631)."""
    phrase = f"{plural(found, 'host')} for {name}, which needs {expected}"
    advice = "give a host for every box, in their order, or another number of --nodes"
    return InputError(Diagnostic("CS631", phrase, help=advice))
