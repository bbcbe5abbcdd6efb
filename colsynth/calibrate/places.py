"""Which GPUs of a topology a run was on: hosts are boxes in order, devices their GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.errors import Diagnostic, InputError
from colsynth.logs import Device
from colsynth.model import Collective, Problem, Topology
from colsynth.topology.communicator import communicators
from colsynth.units import plural


def ranks_of_boxes(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of every box in order; GPUs outside all boxes are one box, the last."""
    found: dict[tuple[bool, int], list[int]] = {}
    for rank, node in enumerate(topology.ranks):
        box = topology.nodes[node].box
        found.setdefault((box is None, box or 0), []).append(rank)
    return tuple(tuple(found[key]) for key in sorted(found))


def members_of(devices: Sequence[Device], topology: Topology, name: str) -> tuple[int, ...]:
    """Return the rank of the topology that each rank of a run had; all where none is known.

    Raises
    ------
    InputError
        CS623: the run had hosts or devices that the topology does not have.
    """
    if not devices:
        return tuple(range(topology.size))
    boxes = ranks_of_boxes(topology)
    hosts = tuple(dict.fromkeys(device.host for device in devices))
    if len(hosts) > len(boxes):
        found = f"{plural(len(hosts), 'host')}, {topology.name} has {plural(len(boxes), 'box')}"
        raise _elsewhere(name, found.replace("boxs", "boxes"), f"give --nodes {len(hosts)}")
    members = []
    for place, device in enumerate(devices):
        box = boxes[hosts.index(device.host)]
        own = [other.device for other in devices if other.host == device.host]
        # With CUDA_VISIBLE_DEVICES each process calls its GPU 0: then their order tells.
        before = sum(other.host == device.host for other in devices[:place])
        number = device.device if len(set(own)) == len(own) else before
        if number >= len(box):
            found = f"device {number} of {device.host}, boxes have {plural(len(box), 'GPU')}"
            raise _elsewhere(name, found, "choose the topology of that machine")
        members.append(box[number])
    return tuple(members)


def machine_of(topology: Topology, members: tuple[int, ...]) -> Topology:
    """Return the members of a run as a topology of their own, in their order."""
    if members == tuple(range(topology.size)):
        return topology
    problem = Problem(topology, Collective.ALLREDUCE, groups=(members,))
    return communicators(problem)[0].problem.topology


def _elsewhere(name: str, found: str, advice: str) -> InputError:
    phrase = f"{name}: the run was on {found}"
    return InputError(Diagnostic("CS623", phrase, help=advice))
