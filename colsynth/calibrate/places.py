"""Which GPUs of a topology a run was on: hosts are boxes in order, devices their GPUs."""

from __future__ import annotations

from colsynth.errors import Diagnostic, InputError
from colsynth.logs import Log
from colsynth.model import Collective, Problem, Topology
from colsynth.synthesis.baselines.loaded_routes import ranks_by_box
from colsynth.topology.communicator import communicators
from colsynth.units import plural


def members_of(log: Log, topology: Topology) -> tuple[int, ...]:
    """Return the rank of the topology that each rank of a run had; all where none is known.

    Raises
    ------
    InputError
        CS623: the run had hosts or devices that the topology does not have.
    """
    devices, name = log.devices, log.name
    if not devices and log.least_ranks > topology.size:
        found = f"{plural(log.least_ranks, 'GPU')} at least; {topology.name} has {topology.size}"
        raise _elsewhere(name, found, "choose the topology of that machine")
    if not devices:
        return tuple(range(topology.size))
    boxes = ranks_by_box(topology)
    hosts = tuple(dict.fromkeys(device.host for device in devices))
    if len(hosts) > len(boxes):
        found = f"{plural(len(hosts), 'host')}; boxes of {topology.name}: {len(boxes)}"
        raise _elsewhere(name, found, f"give --nodes {len(hosts)}")
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
