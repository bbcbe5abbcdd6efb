"""The GPUs of a dump of NCCL or RCCL: their order, their generation, and the links between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colsynth.topology.importers.machine import SWITCHED, Bond, Gpu, refusal
from colsynth.topology.importers.rates import generation
from colsynth.topology.importers.xml_text import XmlReader, children

if TYPE_CHECKING:
    from lxml.etree import _Element

_NVSWITCH, _CPU = "0x0680", "0x068001"
_MOST_LINKS = 10**4
"""Of one count; more are a slip."""

_LINKED = {"70", "80", "90", "100", "103"}
"""Chips that stand on boards with NVLink, by sm."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A GPU as it stands in the file, with the number of GPUs of the same device."""

    gpu: Gpu
    bus: str
    element: _Element
    shared: int


def ranked(reader: XmlReader, every: list[Seen], bare: list[Gpu]) -> list[Seen]:
    """Return the GPUs in the order of their ranks; those without one stand aside."""
    numbered = [x for x in every if x.element.get("rank") is not None]
    rest = [x for x in every if x.element.get("rank") is None] if numbered else []
    unused = [*(x.gpu for x in rest), *bare]
    for gpu in unused:
        phrase = f"GPU {gpu.name} has no rank and is left out"
        reader.warn("W19", phrase, gpu.at, "it was not in the communicator that wrote the dump")
    key = "rank" if numbered else "dev"
    kept = numbered or every
    numbers = [reader.number(x.element, key, "0", 0, 10**6) for x in kept]
    twice = next((n for n, count in Counter(numbers).items() if count > 1), None)
    if twice is not None and numbered:
        at = kept[len(numbers) - 1 - numbers[::-1].index(twice)].element
        raise refusal(f"two GPUs have rank {twice}", reader.at(at, "rank"))
    order = sorted(range(len(kept)), key=lambda i: numbers[i])
    for i in order if numbered else ():
        device = kept[i].element.get("dev", str(numbers[i]))
        if device != str(numbers[i]):
            phrase = f"rank {numbers[i]} is device {device}: ranks and devices differ"
            advice = "number the ranks of the job as the topology does"
            reader.warn("W04", phrase, reader.at(kept[i].element, "dev"), advice=advice)
            break
    return [kept[i] for i in order]


def bonds(reader: XmlReader, seen: list[Seen]) -> list[Bond]:
    """Return the links of all GPUs; those to several chips of switches are one bond."""
    index: dict[str, int] = {}
    for i, x in enumerate(seen):
        index.setdefault(x.bus, i)
    totals: dict[tuple[int, int], Bond] = {}
    for i, x in enumerate(seen):
        if x.shared > 1 and index[x.bus] == i:
            phrase = f"{x.shared} GPUs share device {x.bus}"
            reader.warn("W18", phrase, x.gpu.at, "its links are divided among them")
        for link in children(x.element):
            if link.tag in ("nvlink", "xgmi"):
                target = _target(reader, link, x, index)
                if target is None:
                    continue
                count = reader.number(link, "count", "1", 1, _MOST_LINKS)
                before = totals.get((i, target))
                share = max(count // x.shared, 1)
                total = share + (before.count if before else 0)
                totals[i, target] = Bond(i, target, total, reader.at(link))
    return list(totals.values())


def _target(reader: XmlReader, link: _Element, seen: Seen, index: dict[str, int]) -> int | None:
    """Return the GPU that a link leads to, SWITCHED, or None where it does not count."""
    target, kind = link.get("target", "").lower(), link.get("tclass", "").lower()
    if target == seen.bus:
        phrase = f"GPU {seen.bus} is linked to itself"
        reader.warn("W02", phrase, reader.at(link, "target"), "the link is left out")
        return None
    if target in index:
        return index[target]
    if kind.startswith(_NVSWITCH) and kind != _CPU:
        if target.startswith("ffff") and not any(x.code == "W06" for x in reader.warnings):
            phrase = "the NVSwitches are hidden (a container, a VM, or Blackwell)"
            reader.warn("W06", phrase, reader.at(link, "target"), "taken for one switch")
        return SWITCHED
    if kind != _CPU and not any(x.code == "W19" for x in reader.warnings):
        phrase = f"links lead to {target or 'nowhere'}, which is not in the file"
        note = "it was not in the communicator; such links are left out"
        reader.warn("W19", phrase, reader.at(link, "target"), note)
    return None


def usually_linked(seen: list[Seen]) -> bool:
    """Whether the GPUs are of chips that stand on boards with NVLink."""
    chips = {x.element.get("sm") for x in seen if x.element.get("gcn") is None}
    return chips <= _LINKED and bool(chips)


def model(gpu: _Element) -> str:
    """Return the generation of a GPU: RCCL's sm is the number of its CUs, gcn its generation."""
    arch = gpu.get("gcn")
    if arch is None:
        return generation(f"sm{gpu.get('sm', '')}")
    return generation({"910": "gfx90a"}.get(arch, arch if arch.startswith("gfx") else f"gfx{arch}"))
