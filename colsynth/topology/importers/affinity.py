"""Which NICs belong to which GPUs: by PCIe distance; and what the PCIe tree limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from colsynth.errors import Diagnostic
from colsynth.text import listed
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.machine import Hub, Machine, Pcie
from colsynth.topology.reach import joined

SAME_SWITCH, SAME_HOST, SAME_ROOT, FAR = range(4)
"""How a GPU reaches a NIC; nvidia-smi's words are PIX or PXB, PHB, NODE and SYS."""

_REACH = {"switch": SAME_SWITCH, "emulated": SAME_SWITCH, "host": SAME_HOST, "root": SAME_ROOT}

Distance = tuple[int, int]
"""One of these, and how many hubs lie above the GPU up to the common one."""

_BOGUS = 8
"""A bridge that claims to be as many times slower than what is below it is emulated."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """GPUs and NICs that belong together, by index, and the hub above all of them; -1: none.

    `pairs` are those that are joined directly; empty where the tree below `hub` joins them.
    """

    gpus: tuple[int, ...]
    nics: tuple[int, ...]
    hub: int
    pairs: tuple[tuple[int, int], ...]


def distances(machine: Machine, nics: list[int]) -> list[dict[int, Distance]]:
    """Return, for each GPU, how far each of some NICs is."""
    above = {hub: set(machine.path(hub)) for hub in {machine.nics[i].hub for i in nics}}
    rows: dict[int, dict[int, Distance]] = {}
    for gpu in machine.gpus:
        if gpu.hub not in rows:
            far = {hub: _distance(machine, gpu.hub, hubs) for hub, hubs in above.items()}
            rows[gpu.hub] = {nic: far[machine.nics[nic].hub] for nic in nics}
    return [rows[gpu.hub] for gpu in machine.gpus]


def _distance(machine: Machine, gpu_hub: int, above: set[int]) -> Distance:
    steps = 0
    for hub in machine.path(gpu_hub):
        if machine.hubs[hub].flat:
            continue  # the switch above is the same one
        if hub in above:
            return _REACH[machine.hubs[hub].kind], steps
        steps += 1
    return FAR, 0


def useful_nics(machine: Machine) -> tuple[list[int], list[Diagnostic]]:
    """Return the NICs that serve GPUs, and warnings on those that are left out."""
    warnings = []
    real = [i for i, nic in enumerate(machine.nics) if not nic.virtual]
    for nic in machine.nics:
        if nic.virtual:
            phrase = f"NIC {nic.name or '(no name)'} is virtual, or no RDMA device"
            warnings.append(warning("W07", phrase, nic.at, "it is left out"))
    bonded = [i for i in real if "bond" in machine.nics[i].name]
    if len(bonded) < len(real):
        for i in bonded:
            phrase = f"NIC {machine.nics[i].name} is a bond of front-end ports"
            warnings.append(warning("W08", phrase, machine.nics[i].at, "it is left out"))
        real = [i for i in real if i not in bonded]
    near: set[int] = set()
    for far in distances(machine, real):
        best = min(far.values(), default=(FAR, 0))
        if best[0] == SAME_SWITCH:
            near |= {nic for nic in real if far[nic] == best}
    rest = [machine.nics[i] for i in real if near and i not in near]
    if rest:
        names = listed([nic.name for nic in rest])
        phrase = f"no GPU is nearest to {names}: front-end or storage"
        warnings.append(warning("W08", phrase, rest[0].at, "they are left out"))
    return [i for i in real if not near or i in near], warnings


def clusters(machine: Machine, nics: list[int]) -> list[Cluster]:
    """Return the GPUs and NICs that belong together, in the order of the GPUs."""
    pairs: list[tuple[int, int]] = []
    every = distances(machine, nics)
    nearest = {nic: min(row[nic][0] for row in every) for nic in nics}
    for gpu, row in enumerate(every):
        best = min(row.values(), default=(FAR, 0))
        mine = [nic for nic in nics if row[nic] == best and nearest[nic] == best[0]]
        pairs += [(gpu, nic) for nic in mine]
    served = {nic for _, nic in pairs}
    for nic in nics:  # nobody's nearest: its own nearest GPUs
        if nic not in served:
            best = min(row[nic] for row in every)
            pairs += [(gpu, nic) for gpu, row in enumerate(every) if row[nic] == best]
    return [_cluster(machine, group) for group in _components(sorted(pairs))]


def _components(pairs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return the pairs in order, those together that share a GPU or a NIC."""
    parts = joined((gpu for gpu, _ in pairs), ((gpu, -1 - nic) for gpu, nic in pairs))
    return [[pair for pair in pairs if pair[0] in part] for part in parts]


def _cluster(machine: Machine, pairs: list[tuple[int, int]]) -> Cluster:
    gpus = tuple(sorted({gpu for gpu, _ in pairs}))
    nics = tuple(sorted({nic for _, nic in pairs}))
    leaves = [*(machine.gpus[i].hub for i in gpus), *(machine.nics[i].hub for i in nics)]
    paths = [machine.path(hub) for hub in leaves]
    hub = next((h for h in paths[0] if all(h in path for path in paths)), -1)
    return Cluster(gpus, nics, hub, tuple(pairs))


def paired(cluster: Cluster) -> Cluster:
    """Return a cluster whose GPUs have NICs of their own as far as there are enough, in order."""
    m, n = len(cluster.gpus), len(cluster.nics)
    pairs = tuple(
        (gpu, nic)
        for i, gpu in enumerate(cluster.gpus)
        for j, nic in enumerate(cluster.nics)
        if j * m // n == i or i * n // m == j
    )
    return replace(cluster, pairs=pairs)


def simplified(machine: Machine) -> tuple[Machine, list[Diagnostic]]:
    """Return the machine with a tree that holds only what limits bandwidth.

    Hubs that are part of another one vanish, and those with one branch: its link then is the
    slowest on the way.
    """
    warnings = []
    hubs: list[Hub | None] = list(machine.hubs)
    gpus, nics = list(machine.gpus), list(machine.nics)
    for index in range(len(hubs) - 1, -1, -1):  # children come after their parents
        hub = hubs[index]
        if hub is None or hub.kind == "root":
            continue
        inner = [i for i, x in enumerate(hubs) if x is not None and x.parent == index]
        mine = [i for i, x in enumerate(gpus) if x.hub == index]
        ports = [i for i, x in enumerate(nics) if x.hub == index]
        below = [*(hubs[i].uplink for i in inner if hubs[i]), *(gpus[i].pcie for i in mine)]  # type: ignore[union-attr]
        slow = hub.kind == "switch" and _is_bogus(hub.uplink, below)
        if slow and not hub.flat:
            phrase = f"PCIe bridge {hub.name} claims to be slower than all that is below it"
            warnings.append(warning("W14", phrase, hub.at, "its bandwidth is not taken over"))
        single = len(inner) + len(mine) + len(ports) <= 1
        free = hub.flat or slow or hub.kind != "switch"
        if not (free or single):
            continue
        limit = None if free else hub.uplink
        for i in inner:
            child = hubs[i]
            if child is not None:
                hubs[i] = replace(child, parent=hub.parent, uplink=slower(child.uplink, limit))
        for i in mine:
            gpus[i] = replace(gpus[i], hub=hub.parent, pcie=slower(gpus[i].pcie, limit))
        for i in ports:
            nics[i] = replace(nics[i], hub=hub.parent, pcie=slower(nics[i].pcie, limit))
        hubs[index] = None
    return _renumbered(machine, hubs, gpus, nics), warnings


def _renumbered(machine: Machine, hubs: Iterable[Hub | None], gpus: list, nics: list) -> Machine:  # type: ignore[type-arg]
    """Return the machine without the hubs that are None."""
    kept = [(i, hub) for i, hub in enumerate(hubs) if hub is not None]
    place = {old: new for new, (old, _) in enumerate(kept)} | {-1: -1}
    return replace(
        machine,
        hubs=tuple(replace(hub, parent=place[hub.parent]) for _, hub in kept),
        gpus=tuple(replace(x, hub=place[x.hub]) for x in gpus),
        nics=tuple(replace(x, hub=place[x.hub]) for x in nics),
    )


def _is_bogus(uplink: Pcie | None, below: list[Pcie | None]) -> bool:
    known = [link.raw for link in below if link is not None]
    return uplink is not None and bool(known) and uplink.raw * _BOGUS < min(known)


def slower(one: Pcie | None, other: Pcie | None) -> Pcie | None:
    """Return the slower of two links; None limits nothing."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda link: link.raw)
