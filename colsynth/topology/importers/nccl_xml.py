"""Topology XML of NCCL and RCCL: dumps (NCCL_TOPO_DUMP_FILE) and hints (NCCL_TOPO_FILE).

The grammar is that of src/graph/xml.cc: cpus hold pci elements, these hold others, GPUs with their
links, and NICs with their nets. A hint holds PCI functions alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from colsynth.errors import Span
from colsynth.topology.importers.doubts import bond_doubts, similar_presets
from colsynth.topology.importers.machine import (
    Gpu,
    Hub,
    Machine,
    Nic,
    Pcie,
    Source,
    limited,
    refusal,
)
from colsynth.topology.importers.nccl_gpus import Seen, model, ranked, usually_linked
from colsynth.topology.importers.nccl_gpus import bonds as bonds_of
from colsynth.topology.importers.xml_text import XmlReader, children, parse_xml, root_name

if TYPE_CHECKING:
    from lxml.etree import _Element

_GPU_CLASSES, _NIC_CLASSES = ("0x03", "0x12"), ("0x02",)
_EMULATED = ("0x104c", "0x8232")
"""QEMU's PCIe switch: it says 2.5 GT/s x1, and limits nothing."""

_BROADCOM = {("0x1000", "0xc010"), ("0x1000", "0xc030")}
"""Switches that appear as two levels; NCCL takes them for one (ncclTopoFlattenBcmSwitches)."""

_VIRTUAL = re.compile(r"br-|veth|docker|cali|tunl|lo$|virbr|flannel|cni|vxlan|bonding_masters")
_MOST_SPEED = 10**7
"""Mb/s; no port has 10 Tb/s, but one plugin writes kb/s."""

_LEAST_SPEED = 1000
"""Mb/s; RDMA NICs are faster, so less was probably meant in Gb/s."""

_FULL_NODE = 8
"""GPUs of a node that has NVLink, if its chips can have it."""


def sniff(text: str) -> bool:
    """Whether a text is such a file."""
    return root_name(text) == "system"


def parse(source: Source) -> Machine:
    """Return the node that a dump or a hint describes."""
    root = parse_xml(source)
    reader = _Reader(source)
    version = root.get("version", "")
    if version not in ("1", "2"):
        phrase = f"version {version!r} of the topology XML is not known"
        raise refusal(phrase, reader.at(root, "version"), "NCCL writes 1, RCCL's models have 2")
    for cpu in children(root):
        if cpu.tag == "cpu":
            reader.read_cpu(cpu)
    return reader.machine()


@dataclass
class _Reader(XmlReader):
    hubs: list[Hub] = field(default_factory=list)
    known: dict[tuple[int, str], int] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)
    bare: list[Gpu | Nic] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    nameless_speeds: list[Span] = field(default_factory=list)
    host: str = ""
    devices: dict[tuple[str, str], Span] = field(default_factory=dict)
    """Bus ids of GPUs and names of NICs, by host: hosts of one NVLink domain have the same."""

    def read_cpu(self, cpu: _Element) -> None:
        """Read a CPU and, without recursion, everything below it."""
        host, numa = cpu.get("host_hash", ""), cpu.get("numaid", "-1")
        self.host = host
        self.hosts |= {host} - {""}
        name = f"NUMA node {numa}" + (f" of host {host}" if len(self.hosts) > 1 else "")
        self.hubs.append(Hub(name, "root", -1, None, self.at(cpu), _cpu_kind(cpu)))
        waiting = [(child, len(self.hubs) - 1) for child in children(cpu)]
        while waiting:
            element, hub = waiting.pop(0)
            if element.tag == "nic":
                self._nets(element, hub, None, virtual=True)
            elif element.tag == "pci":
                inner = self._pci(element, hub)
                waiting[:0] = [(child, inner) for child in children(element) if inner >= 0]

    def _pci(self, pci: _Element, hub: int) -> int:
        """Read a PCI function; return the hub that holds what is below it, -1 for devices."""
        link = self._link(pci)
        bus = pci.get("busid", "").lower()
        if not bus:
            raise refusal("a pci element has no busid", self.at(pci))
        gpus = [child for child in children(pci) if child.tag == "gpu"]
        nics = [child for child in children(pci) if child.tag == "nic"]
        kind = pci.get("class", "").lower()
        is_gpu = bool(gpus) or kind.startswith(_GPU_CLASSES)
        first = self._first(bus, self.at(pci, "busid")) if is_gpu else None
        if first is not None:
            note = f"the first is at line {first.line}"
            raise refusal(f"two GPUs have the bus id {bus}", self.at(pci, "busid"), note)
        for gpu in gpus:
            value = Gpu(bus, self.at(gpu), hub, link, model(gpu))
            self.seen.append(Seen(value, bus, gpu, len(gpus)))
        for nic in nics:
            self._nets(nic, hub, link, virtual=False)
        if gpus or nics:
            limited(self.seen, "GPUs", self.at(pci))
            limited(self.nics, "NICs", self.at(pci))
            return -1
        if kind.startswith(_GPU_CLASSES):
            self.bare.append(Gpu(bus, self.at(pci), hub, link))
            return -1
        if kind.startswith(_NIC_CLASSES):
            self.bare.append(Nic(bus, self.at(pci), hub, link, bus=bus))
            return -1
        return self._hub(pci, bus, hub, link)

    def _first(self, name: str, at: Span) -> Span | None:
        """Return where a GPU or NIC of the same host has the same name; None where none has."""
        first = self.devices.setdefault((self.host, name), at)
        return first if first != at else None

    def _hub(self, pci: _Element, bus: str, above: int, link: Pcie | None) -> int:
        ids = _ids(pci)
        emulated = ids == _EMULATED
        if emulated:
            note = "it claims 2.5 GT/s x1; its place is kept, its bandwidth is not"
            self.warn("W14", f"PCIe switch {bus} is emulated by QEMU", self.at(pci), note)
        up = pci.getparent()
        flat = ids in _BROADCOM and up is not None and up.tag == "pci" and _ids(up) == ids
        kind = "emulated" if emulated else "switch"
        if (above, bus) in self.known:  # some dumps repeat a switch for each device below it
            return self.known[above, bus]
        self.known[above, bus] = len(self.hubs)
        limited(self.hubs, "PCIe switches", self.at(pci))
        self.hubs.append(Hub(bus, kind, above, link, self.at(pci), flat=flat))
        return len(self.hubs) - 1

    def _link(self, pci: _Element) -> Pcie | None:
        """Return the PCIe link of a function; the number counts, not its spelling."""
        found = re.match(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*GT/s", pci.get("link_speed", ""))
        width = self.number(pci, "link_width", "0", 0, 64)
        speed = Fraction(found[1]) if found else Fraction(0)
        if not speed or not width:
            self.nameless_speeds.append(self.at(pci, "link_speed"))
        return Pcie(speed, width or 16) if speed else None

    def _nets(self, nic: _Element, hub: int, link: Pcie | None, virtual: bool) -> None:
        nets = [net for net in children(nic) if net.tag == "net" and net.get("net", "1") != "0"]
        names = list(dict.fromkeys(net.get("name", "") for net in nets))
        if len(names) > 1 and link is not None:  # ports that share the slot of their card
            self.hubs.append(Hub(f"card of {names[0]}", "switch", hub, link, self.at(nic)))
            hub, link = len(self.hubs) - 1, None
        for name in names:  # older dumps repeat a NIC for collnet
            net = next(net for net in nets if net.get("name", "") == name)
            unreal = virtual or _VIRTUAL.match(name) is not None
            if unreal and any(x.virtual and x.name == name for x in self.nics):
                continue  # a socket interface stands under every CPU
            plane = next((net.get(key) for key in ("plane", "rail") if net.get(key)), None)
            number = int(plane) if plane and re.fullmatch(r"[0-9]{1,3}", plane) else None
            rate = self._speed(net, name)
            first = None if unreal or not name else self._first(name, self.at(net, "name"))
            if first is not None:
                note = f"the first is at line {first.line}; ports of a fabric are paired in order"
                self.warn("W29", f"two NICs are called {name!r}", self.at(net, "name"), note)
            bus = nic.getparent().get("busid", "").lower()  # type: ignore[union-attr]
            self.nics.append(Nic(name, self.at(net), hub, link, rate, unreal, number, bus))
            if not unreal and net.get("gdr") == "0":
                phrase = f"NIC {name} works without GPUDirect RDMA"
                note = "its data go through the memory of the CPU, which is not modelled"
                self.warn("W20", phrase, self.at(net, "gdr"), note)

    def _speed(self, net: _Element, name: str) -> Fraction | None:
        speed = self.number(net, "speed", "0", -(10**12), 10**12)
        at = self.at(net, "speed")
        if speed <= 0:
            note, advice = "a NIC without a speed is left out", "give --nic-bandwidth"
            phrase = f"the speed of NIC {name} is unknown ({speed})"
            self.warn("W05", phrase, at, note, advice=advice)
            return None
        if speed < _LEAST_SPEED:
            note = f"taken for {speed / 1000:g} Gb/s, as NCCL does: the unit is Mb/s"
            advice = f"if it has {speed} Gb/s, write {speed * 1000}, or give --nic-bandwidth"
            self.warn("W05", f"NIC {name} has {speed} Mb/s", at, note, advice=advice)
        if speed > _MOST_SPEED:
            note = f"taken for {speed / 10**6:g} Gb/s: the unit is Mb/s, and a plugin wrote kb/s"
            advice = "check the rate, or give --nic-bandwidth"
            self.warn("W05", f"NIC {name} cannot have {speed} Mb/s", at, note, advice=advice)
            return Fraction(speed * 1000, 8)
        return Fraction(speed * 10**6, 8)

    def machine(self) -> Machine:
        """Return what was read."""
        whole = self.source.find("<system")
        hint = not self.seen
        kind, medium, bonds = "topology hint", "nvlink", []
        if hint:
            gpus, nics = self._from_hint(whole)
        else:
            nics = self.nics
            kind = "topology dump"
            bare = [x for x in self.bare if isinstance(x, Gpu)]
            seen = ranked(self, self.seen, bare)
            gpus = [x.gpu for x in seen]
            xgmi = any(x.element.get("gcn") for x in seen)
            medium, bonds = ("xgmi" if xgmi else "nvlink"), bonds_of(self, seen)
        library = "RCCL" if medium == "xgmi" else "NCCL"
        if self.nameless_speeds:
            phrase = f"{len(self.nameless_speeds)} PCIe links have no speed or width"
            note = "taken for 16 lanes, and for the PCIe of the GPUs' generation"
            self.warn("W15", phrase, self.nameless_speeds[0], note)
        if len(self.hosts) > 1:
            phrase = f"the dump shows {len(self.hosts)} hosts of one NVLink domain"
            self.warn("W17", phrase, whole, "they are taken for one box")
        values = tuple(gpus), tuple(nics), tuple(self.hubs), tuple(bonds)
        found = Machine(f"{library} {kind}", self.source.file, *values, medium)
        doubts = () if hint else bond_doubts(found)
        if not hint and not bonds and len(gpus) == _FULL_NODE and usually_linked(self.seen):
            phrase = f"{_FULL_NODE} GPUs of data centres without any NVLink"
            note = "the file may have been a hint, or NVLink is off"
            self.warn("W01", phrase, whole, note, advice="look at nvidia-smi topo -m")
        return Machine(found.format, found.file, *values, medium, (*self.warnings, *doubts))

    def _from_hint(self, whole: Span) -> tuple[list[Gpu], list[Nic]]:
        gpus = [x for x in self.bare if isinstance(x, Gpu)]
        nics = [x for x in self.bare if isinstance(x, Nic)]
        if not gpus:
            raise refusal("the file shows no GPU", whole, "expected <gpu>, or class 0x03...")
        dump = "NCCL_TOPO_DUMP_FILE=topo.xml ./all_reduce_perf -b 8 -e 8 -g 8 writes a dump"
        similar = similar_presets(len(gpus), len(nics))
        advice = f"{dump}; presets with as many GPUs and NICs: {similar}" if similar else dump
        phrase = "this is a hint for NCCL, not a dump: it holds no NVLink"
        self.warn("W01", phrase, whole, "only PCIe is imported", advice=advice)
        return gpus, nics


def _ids(pci: _Element) -> tuple[str, str]:
    return pci.get("vendor", "").lower(), pci.get("device", "").lower()


def _cpu_kind(cpu: _Element) -> str:
    """Return the key of the table of links between sockets."""
    vendor, arch = cpu.get("vendor", ""), cpu.get("arch", "")
    if arch == "ppc64":
        return "power"
    if arch.startswith(("arm", "aarch")):
        return "arm"
    if vendor == "AuthenticAMD":
        return "amd"
    if vendor != "GenuineIntel":
        return "other"
    text = cpu.get("modelid", "0")
    model = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0
    return "intel-207" if model >= 0xCF else "intel-143" if model >= 0x8F else "intel"
