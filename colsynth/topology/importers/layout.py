"""Machine -> Box: which nodes and links a node of the cluster has, and what they carry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations

from colsynth.errors import Diagnostic, InputError
from colsynth.topology.importers import rates
from colsynth.topology.importers.affinity import (
    Cluster,
    clusters,
    paired,
    simplified,
    useful_nics,
)
from colsynth.topology.importers.doubts import kind_doubts, mutual, warning
from colsynth.topology.importers.machine import SWITCHED, Gpu, Hub, Machine, Nic, Pcie
from colsynth.topology.importers.plan import Box, Group, Part, Port, Rate, Ref, Wire
from colsynth.topology.importers.speeds import Speeds, Wishes
from colsynth.units import plural


def layout(machine: Machine, wishes: Wishes) -> Box:
    """Return the box that a machine is.

    GPUs that NVLink or xGMI joins need no PCIe among each other. Where it does not join all, the
    whole PCIe tree is in the box; else only switches that several GPUs and NICs share.

    Raises
    ------
    InputError
        CS153: it has one GPU, or its links have no known bandwidth.
    """
    if len(machine.gpus) < 2:
        phrase = f"the {machine.format} shows one GPU"
        raise InputError(Diagnostic("CS153", phrase, machine.gpus[0].at))
    return _Layout(mutual(machine), wishes).run()


@dataclass
class _Layout:
    machine: Machine
    wishes: Wishes
    wires: list[Wire] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    small: Machine = field(init=False)
    speeds: Speeds = field(init=False)

    def run(self) -> Box:
        machine = self.machine
        self.speeds = Speeds(machine, self.wishes)
        members = tuple(map(_labelled, machine.gpus))
        note = f"In the order of the ranks, as {machine.file} calls them."
        self.groups.append(Group("gpu", "gpu", members, note))
        self._bonds()
        self.small, doubts = simplified(machine)
        useful, left_out = useful_nics(machine)
        self.warnings += [*doubts, *left_out]
        rated = [i for i in useful if self.speeds.of_nic(machine.nics[i]) is not None]
        if self._joined():
            ports = self._near_nics(rated)
        else:
            everything = list(range(len(machine.gpus)))
            self._tree(everything, rated, frozenset())
            ports = self._ports(rated)
        if not useful and self.wishes.nic_rate is not None:
            ports = self._assumed()
        if useful and not rated:
            phrase = "the rate of the NICs is not known, so they are left out"
            advice = "give --nic-bandwidth, such as '50 GB/s'"
            self.warnings.append(warning("W22", phrase, machine.nics[useful[0]].at, advice=advice))
        title = self._title(len(ports))
        part = Part(tuple(self.groups), tuple(self.wires))
        known = {"W15", "W16"} if self.wishes.gpu else set()
        known |= {"W05"} if self.wishes.nic_rate is not None else set()
        doubts = [x for x in machine.warnings if x.code not in known]
        doubts += kind_doubts(machine, [self.speeds.model(i) for i in range(len(machine.gpus))])
        return Box(title, part, ports, (), (*doubts, *self.warnings))

    def _title(self, nics: int) -> str:
        machine = self.machine
        entry = rates.row(machine.medium, self.speeds.model(0))
        name = entry.get("title", "") if machine.bonds else "PCIe"
        if any(bond.target == SWITCHED for bond in machine.bonds):
            name += " with switches"
        more = f", {plural(nics, 'NIC')}" if nics else ""
        return f"{len(machine.gpus)} GPUs on {name}{more}"

    def _bonds(self) -> None:
        """Add the links between GPUs, and those to the NVSwitches."""
        counts = {(bond.source, bond.target): bond for bond in self.machine.bonds}
        for (i, j), bond in sorted(counts.items()):
            note = f"links of GPUs in {self.machine.file}, from line {bond.at.line} on"
            if j == SWITCHED:
                rate = self.speeds.rate(self.machine.medium, self.speeds.link(i, i), "switched")
                self.wires.append(Wire(("gpu", i), ("nvswitch", 0), rate, bond.count, note=note))
            elif i < j:
                count = min(bond.count, counts[j, i].count)
                rate = self.speeds.rate(
                    self.machine.medium, self.speeds.link(i, j), self.machine.medium
                )
                self.wires.append(Wire(("gpu", i), ("gpu", j), rate, count, note=note))
        if any(j == SWITCHED for _, j in counts):
            powers = tuple(rates.row(self.machine.medium, self.speeds.model(0)).get("switch", ()))
            note = "All chips together: one switch that blocks nothing."
            self.groups.append(Group("nvswitch", "switch", ("",), note, powers))

    def _joined(self) -> bool:
        """Whether NVLink or xGMI joins all GPUs."""
        label = list(range(len(self.machine.gpus) + 1))  # the last one stands for the switches
        for bond in self.machine.bonds:
            ends = {label[bond.source], label[bond.target]}
            label = [min(ends) if x in ends else x for x in label]
        return len(set(label[:-1])) == 1

    def _near_nics(self, nics: list[int]) -> tuple[Port, ...]:
        """Attach each NIC to the GPUs nearest to it."""
        shared: dict[int, tuple[list[int], list[int]]] = {}
        for cluster in clusters(self.machine, nics):
            if self._is_direct(cluster):
                self._direct(cluster)
            elif self._is_tree(cluster):
                top = _common(self.small, cluster)
                both = shared.setdefault(top, ([], []))
                both[0].extend(cluster.gpus)
                both[1].extend(cluster.nics)
            else:
                self._direct(self._doubtful(cluster), "paired in order; the file does not say")
        if shared:
            gpus = [i for both in shared.values() for i in both[0]]
            ports = [i for both in shared.values() for i in both[1]]
            self._tree(sorted(gpus), sorted(ports), frozenset(shared))
        return self._ports(nics)

    def _is_direct(self, cluster: Cluster) -> bool:
        """Whether no PCIe link limits what the NICs of a cluster can carry together."""
        if len(cluster.nics) == 1:
            return True
        if len(cluster.gpus) > 1:
            return False
        own = self.small.gpus[cluster.gpus[0]]
        load: dict[int, Fraction] = {}
        for i in cluster.nics:
            hub = self.small.nics[i].hub
            load[hub] = load.get(hub, Fraction(0)) + self.speeds.nic(self.machine.nics[i]).bandwidth
        cards = load.keys() - set(self.small.path(own.hub))
        limits = {hub: self.speeds.slot(self.small.hubs[hub].uplink).value for hub in cards}
        fits = all(load[hub] <= limit for hub, limit in limits.items())
        return fits and sum(load.values()) <= self.speeds.slot(own.pcie).value

    def _is_tree(self, cluster: Cluster) -> bool:
        """Whether a PCIe switch is above all of a cluster, or a socket with one GPU."""
        kind = self.machine.hubs[cluster.hub].kind if cluster.hub >= 0 else ""
        return kind == "switch" or (kind == "root" and len(cluster.gpus) == 1)

    def _doubtful(self, cluster: Cluster) -> Cluster:
        """Pair GPUs and NICs that nothing pairs, and say so."""
        names = [self.machine.nics[i].name for i in cluster.nics]
        phrase = f"{plural(len(cluster.gpus), 'GPU')} equally far from {plural(len(names), 'NIC')}"
        by_bus = all(self.machine.nics[i].bus for i in cluster.nics)
        order = "bus ids" if by_bus else "file"
        note = f"paired in the order of the {order}"
        advice = "check with the vendor's list of affinities, and edit the links"
        at = self.machine.nics[cluster.nics[0]].at
        self.warnings.append(warning("W09", phrase, at, note, advice=advice))
        if by_bus:
            gpus = sorted(cluster.gpus, key=lambda i: self.machine.gpus[i].name)
            nics = sorted(cluster.nics, key=lambda i: self.machine.nics[i].bus)
            cluster = replace(cluster, gpus=tuple(gpus), nics=tuple(nics))
        return paired(cluster)

    def _direct(
        self, cluster: Cluster, note: str = "each NIC to the GPUs nearest to it on PCIe"
    ) -> None:
        for gpu, nic in cluster.pairs:
            card = self.small.nics[nic].pcie
            slots = [
                self.speeds.slot(self.small.gpus[gpu].pcie),
                *([self.speeds.pcie(card)] if card else []),
            ]
            slot = min(slots, key=lambda figure: figure.value)
            rate = self.speeds.nic(self.machine.nics[nic])
            if slot.value < rate.bandwidth:
                rate = self.speeds.rate("pcie", slot, "nic")
            self.wires.append(Wire(("gpu", gpu), ("nic", nic), rate, note=note))

    def _tree(self, gpus: list[int], nics: list[int], tops: frozenset[int]) -> None:
        """Add the PCIe tree above some GPUs and NICs, up to hubs of `tops`, or to all sockets."""
        small = self.small
        used: set[int] = set()
        for leaf in (*(small.gpus[i].hub for i in gpus), *(small.nics[i].hub for i in nics)):
            path = small.path(leaf)
            end = next((i for i, hub in enumerate(path) if hub in tops), len(path) - 1)
            used |= set(path[: end + 1])
        place = self._hubs(sorted(used))
        note = "the PCIe tree; every link is shared by all that is below it"
        for i in gpus:
            self._slot(("gpu", i), place.get(small.gpus[i].hub), small.gpus[i].pcie, note)
        for hub, ref in place.items():
            above = None if hub in tops else place.get(small.hubs[hub].parent)
            self._slot(ref, above, small.hubs[hub].uplink, "")
        for i in nics:
            if small.nics[i].hub in place:
                self.wires.append(Wire(place[small.nics[i].hub], ("nic", i), self._card(i)))
        roots = [hub for hub in place if small.hubs[hub].kind == "root" and not tops]
        for one, other in combinations(roots, 2):
            figure = rates.socket_rate(small.hubs[one].cpu or "other")
            rate = self.speeds.rate("socket", figure, "socket")
            self.wires.append(Wire(place[one], place[other], rate))

    def _hubs(self, used: list[int]) -> dict[int, Ref]:
        """Add the groups of PCIe switches and sockets; return the node of each hub."""
        place: dict[int, Ref] = {}
        for name, note in (("pcie", "PCIe switches."), ("cpu", "Sockets.")):
            hubs = [x for x in used if (self.small.hubs[x].kind == "root") == (name == "cpu")]
            place |= {hub: (name, i) for i, hub in enumerate(hubs)}
            names = tuple(_labelled(self.small.hubs[i]) for i in hubs)
            self.groups += [Group(name, "switch", names, note)] if hubs else []
        return place

    def _slot(self, below: Ref, above: Ref | None, link: Pcie | None, note: str) -> None:
        if above is not None:
            rate = self.speeds.rate("pcie", self.speeds.slot(link), "pcie")
            self.wires.append(Wire(below, above, rate, note=note))

    def _card(self, nic: int) -> Rate:
        """Return the rate of a NIC, or of its slot where that is slower."""
        rate, slot = self.speeds.nic(self.machine.nics[nic]), self.small.nics[nic].pcie
        if slot is not None and self.speeds.pcie(slot).value < rate.bandwidth:
            return self.speeds.rate("pcie", self.speeds.pcie(slot), "pcie")
        return rate

    def _ports(self, nics: list[int]) -> tuple[Port, ...]:
        """Add the group of the NICs, numbered anew, and return where the fabric is attached."""
        if not nics:
            return ()
        order = self._order(nics)
        place = {nic: number for number, nic in enumerate(order)}
        self.wires = [
            replace(x, source=_moved(x.source, place), target=_moved(x.target, place))
            for x in self.wires
        ]
        found = [self.machine.nics[i] for i in order]
        members = tuple(map(_labelled, found))
        self.groups.append(Group("nic", "nic", members, f"As {self.machine.file} calls them."))
        return tuple(
            Port(("nic", number), nic.name, self.speeds.nic(nic), nic.plane)
            for number, nic in enumerate(found)
        )

    def _order(self, nics: list[int]) -> list[int]:
        """Return the NICs in the order of the first GPU that each is near to."""
        first = {}
        for group in clusters(self.machine, nics):
            for nic in group.nics:
                first[nic] = min(gpu for gpu, other in group.pairs if other == nic)
        return sorted(nics, key=lambda nic: (first.get(nic, 0), nic))

    def _assumed(self) -> tuple[Port, ...]:
        """Give every GPU a NIC: the file names none, but the user gives a bandwidth.

        It hangs where the GPU does on PCIe, whose link to the GPU then carries both.
        """
        count = len(self.machine.gpus)
        phrase = f"{self.machine.file} names no NIC: one per GPU is assumed"
        note = "nvidia-smi lists RDMA devices of some kinds alone, AMD's tools none"
        self.warnings.append(warning("W22", phrase, None, note))
        rate = self.speeds.nic(Nic("", self.machine.gpus[0].at))
        self.groups.append(Group("nic", "nic", ("assumed",) * count, "One per GPU, assumed."))
        ends = [(x.source, x.target) for x in self.wires]
        hubs = {gpu: hub for gpu, hub in ends if gpu[0] == "gpu" and hub[0] in ("pcie", "cpu")}
        gpus: list[Ref] = [("gpu", i) for i in range(count)]
        self.wires += [Wire(hubs.get(gpu, gpu), ("nic", gpu[1]), rate) for gpu in gpus]
        return tuple(Port(("nic", i), "", rate) for i in range(count))


def _moved(ref: Ref, place: dict[int, int]) -> Ref:
    return ("nic", place[ref[1]]) if ref[0] == "nic" else ref


def _common(small: Machine, cluster: Cluster) -> int:
    """Return the hub of the simplified tree that is above all of a cluster."""
    leaves = [small.gpus[i].hub for i in cluster.gpus]
    leaves += [small.nics[i].hub for i in cluster.nics]
    paths = [small.path(leaf) for leaf in leaves]
    return next(hub for hub in paths[0] if all(hub in path for path in paths))


def _labelled(node: Gpu | Nic | Hub) -> str:
    return f"{node.name} (line {node.at.line})"
