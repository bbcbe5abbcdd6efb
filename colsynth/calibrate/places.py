"""Which GPUs of a topology a run was on: hosts are boxes in order, devices their GPUs."""

from __future__ import annotations

import re

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.logs import Log
from colsynth.model import Collective, Problem, Topology
from colsynth.topology.communicator import communicators
from colsynth.units import plural

_GENERATION = re.compile(
    r"(?<![a-z])G?(MI\d(?=\d[05](?!\d))|[ABHV](?=[1238]00(?!\d)))", re.IGNORECASE
)
"""What names of GPUs of one generation share: A100 and A800, H100 and H200, B200 and GB200."""


def members_of(log: Log, topology: Topology) -> tuple[int, ...]:
    """Return the rank of the topology that each rank of a run had; all where none is known.

    Raises
    ------
    InputError
        CS623: the run had hosts or devices that the topology does not have.
    """
    devices, name = log.devices, log.name
    if not devices:
        _require_all(log, topology)
        return tuple(range(topology.size))
    boxes = topology.ranks_by_box
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


def _require_all(log: Log, topology: Topology) -> None:
    """Raise CS623 if a run without a list of devices cannot have been on all GPUs."""
    size, started = topology.size, log.started
    if started is not None and started.ranks != size:
        found = f"{plural(started.ranks, 'GPU')} (line {started.line}); {topology.name} has {size}"
        advice = "choose the topology of that machine, with --nodes for its boxes"
        if started.ranks < size:
            advice = (
                "give the log with its list of devices ('Rank 0 ... on host device 0'), which "
                "says which GPUs took part"
            )
        raise _elsewhere(log.name, found, advice)
    if log.least_ranks > size:
        found = f"{plural(log.least_ranks, 'GPU')} at least; {topology.name} has {size}"
        raise _elsewhere(log.name, found, "choose the topology of that machine")


def other_gpus(log: Log, topology: Topology) -> tuple[Diagnostic, ...]:
    """Return a warning if a log lists GPUs of another generation than a topology is named for."""
    ours = _GENERATION.search(topology.name)
    for device in log.devices:
        theirs = _GENERATION.search(device.name)
        if ours and theirs and ours[1].lower() != theirs[1].lower():
            phrase = f"the log lists GPUs called {device.name}; the topology is {topology.name}"
            notes = ("constants of one machine do not hold for another",)
            advice = "choose the topology of the machine that was measured"
            return (
                Diagnostic("CS629", phrase, Span(log.path, device.line or None), notes, advice),
            )
    return ()


def machine_of(topology: Topology, members: tuple[int, ...]) -> Topology:
    """Return the members of a run as a topology of their own, in their order."""
    if members == tuple(range(topology.size)):
        return topology
    problem = Problem(topology, Collective.ALLREDUCE, groups=(members,))
    return communicators(problem)[0].problem.topology


def _elsewhere(name: str, found: str, advice: str) -> InputError:
    phrase = f"{name}: the run was on {found}"
    return InputError(Diagnostic("CS623", phrase, help=advice))
