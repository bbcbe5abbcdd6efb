"""Box + Fabric -> Plan: which port of which host is on which switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.text import listed
from colsynth.topology.importers import rates
from colsynth.topology.importers.cluster import repeated
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.fabric import Cable, Fabric, Host, HostPort
from colsynth.topology.importers.plan import (
    Box,
    Group,
    Part,
    Plan,
    Port,
    Rate,
    Ref,
    Wire,
    free_name,
    merged,
)
from colsynth.topology.importers.rates import Figure
from colsynth.units import plural

_TIERS = ("leaf", "spine", "core")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which hosts of a fabric are wanted, and how its uplinks are tapered."""

    hosts: tuple[str, ...] = ()
    boxes: int | None = None
    oversubscription: Fraction = Fraction(1)


def joined(name: str, box: Box, fabric: Fabric, choice: Choice) -> tuple[Plan, list[Diagnostic]]:
    """Return a cluster of equal boxes on the switches of a fabric, and what is odd about it.

    Raises
    ------
    InputError
        CS153: the box has no NIC; CS155: a host is not in the fabric, or there are too few.
    """
    if not box.ports:
        advice = "give --nic-bandwidth, such as '50 GB/s'"
        raise InputError(Diagnostic("CS153", "the box has no NIC with a known rate", help=advice))
    hosts = _chosen(fabric, choice)
    if fabric.domains:
        return _domains(name, box, fabric, hosts)
    found = _Joined(box, fabric, hosts, choice.oversubscription)
    return found.plan(name), found.warnings


def _chosen(fabric: Fabric, choice: Choice) -> list[Host]:
    known = {host.name: host for host in fabric.hosts}
    for name in choice.hosts:
        if name not in known:
            phrase = f"host {name!r} is not in {fabric.file}"
            raise InputError(Diagnostic("CS155", phrase, help=did_you_mean(name, known)))
    hosts = [known[name] for name in choice.hosts] or list(fabric.hosts)
    if choice.boxes is not None and choice.boxes > len(hosts):
        phrase = f"--boxes {choice.boxes}: there are {plural(len(hosts), 'host')}"
        raise InputError(Diagnostic("CS155", phrase, hosts[0].at))
    return hosts[: choice.boxes]


def _domains(
    name: str, box: Box, fabric: Fabric, hosts: list[Host]
) -> tuple[Plan, list[Diagnostic]]:
    """Return NVLink domains of several hosts as boxes; the switch of the box is that of them all.

    Raises
    ------
    InputError
        CS155: the box has no such switch, or the domains differ in size.
    """
    wanted = {host.name for host in hosts}
    domains = [[name for name in domain if name in wanted] for domain in fabric.domains]
    domains = [domain for domain in domains if domain]
    size = len(domains[0])
    uneven = next((domain for domain in domains if len(domain) != size), None)
    if uneven is not None:
        phrase = f"NVLink domains of {size} and of {plural(len(uneven), 'host')}"
        raise InputError(Diagnostic("CS155", phrase, help="choose hosts of equal domains"))
    shared = _shared_switch(box.part)
    if shared is None:
        phrase = "the GPUs of the box are on no common switch, so it cannot be part of a domain"
        advice = "give a box with an NVSwitch, such as --box dgx-h100"
        raise InputError(Diagnostic("CS155", phrase, fabric.hosts[0].at, help=advice))
    sizes = {group.name: len(group.members) for group in box.part.groups}

    def moved(ref: Ref, k: int) -> Ref:
        return ref if ref[0] == shared else (ref[0], ref[1] + k * sizes[ref[0]])

    groups = tuple(
        group if group.name == shared else replace(group, members=group.members * size)
        for group in box.part.groups
    )
    wires = tuple(
        replace(x, source=moved(x.source, k), target=moved(x.target, k))
        for k in range(size)
        for x in box.part.wires
    )
    ports = tuple(replace(x, node=moved(x.node, k)) for k in range(size) for x in box.ports)
    title = f"{plural(size, 'host')} in an NVLink domain; {box.title}"
    whole = Box(title, Part(groups, wires), ports, box.notes)
    names = tuple(" ".join(domain) for domain in domains)
    return repeated(name, whole, len(domains), names), []


def _shared_switch(part: Part) -> str | None:
    """Return the group of one switch to which every GPU of a box is linked."""
    gpus = {(g.name, i) for g in part.groups if g.kind == "gpu" for i in range(len(g.members))}
    for group in part.groups:
        ends = {x.source for x in part.wires if x.target[0] == group.name}
        ends |= {x.target for x in part.wires if x.source[0] == group.name}
        if group.kind == "switch" and len(group.members) == 1 and gpus <= ends:
            return group.name
    return None


@dataclass
class _Joined:
    box: Box
    fabric: Fabric
    hosts: list[Host]
    oversubscription: Fraction
    warnings: list[Diagnostic] = field(default_factory=list)

    def plan(self, name: str) -> Plan:
        fabric = self.fabric
        kept = self._kept()
        groups, place = self._groups(kept)
        matched = [self._matched(host) for host in self.hosts]
        uplinks = tuple(
            merged(
                Wire(port.node, place[end.switch], self._uplink(port, end)) for port, end in pairs
            )
            for pairs in matched
        )
        cables = [x for x in fabric.cables if x.source in kept and x.target in kept]
        below = self._below(cables, matched)
        note = f"cables of {fabric.file}"
        wires = merged(
            Wire(place[x.source], place[x.target], self._cable(x, below), x.count, note=note)
            for x in cables
        )
        title = f"{plural(len(self.hosts), 'host')} of {fabric.file}; {self.box.title}"
        names = tuple(host.name for host in self.hosts)
        part = Part(tuple(groups), wires)
        return Plan(name, title, self.box.notes, self.box.part, names, part, uplinks)

    def _near(self) -> dict[int, set[int]]:
        """Return the switches that cables join each switch to."""
        near: dict[int, set[int]] = {i: set() for i in range(len(self.fabric.switches))}
        for cable in self.fabric.cables:
            near[cable.source].add(cable.target)
            near[cable.target].add(cable.source)
        return near

    def _kept(self) -> set[int]:
        """Return the switches that lead from a host to another one."""
        used = {port.switch for host in self.hosts for port in host.ports}
        near = self._near()
        kept = set(near)
        waiting = sorted(kept - used)
        while waiting:
            switch = waiting.pop()
            if switch in kept and switch not in used and len(near[switch]) < 2:
                kept.remove(switch)
                for other in near[switch]:
                    near[other].discard(switch)
                    waiting.append(other)
        return kept

    def _groups(self, kept: set[int]) -> tuple[list[Group], dict[int, Ref]]:
        """Return the tiers of switches, and the name of each."""
        tier = {port.switch: 0 for host in self.hosts for port in host.ports}
        front = list(tier)
        near = self._near()
        for switch in front:
            for other in sorted(near[switch] & kept - tier.keys()):
                tier[other] = tier[switch] + 1
                front.append(other)
        groups: list[Group] = []
        place: dict[int, Ref] = {}
        for level in sorted({tier[i] for i in tier}):
            members = [i for i in sorted(tier) if tier[i] == level]
            name = _TIERS[level] if level < len(_TIERS) else f"tier{'-x' * level}"
            name = free_name(name, self.box.part)
            labels = tuple(self.fabric.switches[i] for i in members)
            groups.append(Group(name, "switch", labels, f"Switches of {self.fabric.file}."))
            place |= {i: (name, k) for k, i in enumerate(members)}
        return groups, place

    def _matched(self, host: Host) -> list[tuple[Port, HostPort]]:
        """Return which port of the box each port of a host is: by name, or else by order."""
        box = self.box.ports
        if [port.label for port in host.ports] == [""]:
            return [(port, host.ports[0]) for port in box]
        labels = {port.label: port for port in box}
        names = [end.label for end in host.ports]
        unique = len(labels) == len(box) and len(set(names)) == len(names)
        named = unique and labels.keys() >= set(names)
        if len(box) != len(host.ports):
            phrase = f"{host.name} has {plural(len(host.ports), 'port')}, the box {len(box)}"
            note = "paired in order; what is left over is left out"
            if named:
                without = labels.keys() - set(names)
                note = f"without a cable: {listed(sorted(without))}"
            advice = "run ibnetdiscover on every subnet, or choose another --box"
            self.warnings.append(warning("W25", phrase, host.at, note, advice=advice))
        if named:
            return [(labels[end.label], end) for end in host.ports]
        return list(zip(box, host.ports, strict=False))

    def _slower(self, port: Port, end: HostPort) -> Fraction:
        speed = port.rate.bandwidth if end.rate is None else end.rate
        if speed != port.rate.bandwidth:
            phrase = f"{self.fabric.file} has {float(speed / 10**9):g} GB/s at a port"
            note = f"a NIC of the box has {float(port.rate.bandwidth / 10**9):g}; the slower counts"
            self.warnings.append(warning("W25", phrase, end.at or self.hosts[0].at, note))
        return min(speed, port.rate.bandwidth)

    def _below(
        self, cables: Sequence[Cable], matched: Sequence[Sequence[tuple[Port, HostPort]]]
    ) -> dict[int, Fraction]:
        """Return the bandwidth of all NICs below each switch of a tree."""
        below = dict.fromkeys(range(len(self.fabric.switches)), Fraction(0))
        parents = {cable.source: cable.target for cable in cables}
        for pairs in matched:
            for port, end in pairs:
                switch: int | None = end.switch
                while switch is not None:
                    below[switch] += port.rate.bandwidth
                    switch = parents.get(switch) if end.rate is None else None
        return below

    def _cable(self, cable: Cable, below: dict[int, Fraction]) -> Rate:
        if cable.rate is not None:
            return self._rate(cable.rate, "link")
        return self._rate(below[cable.source] / self.oversubscription, "uplink")

    def _uplink(self, port: Port, end: HostPort) -> Rate:
        delay = Figure(port.rate.latency, port.rate.latency_source)
        return self._rate(self._slower(port, end), "link", delay if delay.value else None)

    def _rate(self, speed: Fraction, kind: str, delay: Figure | None = None) -> Rate:
        delay = delay or rates.latency("fabric")
        source = f"speed of ports in {self.fabric.file}"
        if kind == "uplink":
            source = f"all NICs below, oversubscription {self.oversubscription}"
        return Rate(kind, speed, source, kind, delay.value, delay.source)
