"""``nvidia-smi nvlink -s`` and ``nvidia-smi -L``: the names of GPUs and their active NVLinks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from colsynth.errors import Diagnostic, Span
from colsynth.topology.importers.doubts import kind_of, warning
from colsynth.topology.importers.machine import NUMBERED, Bond, Machine, Source, refusal
from colsynth.topology.importers.rates import generation, link_rate

_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PRODUCT = re.compile(r"\s*GPU\s+([0-9]+):\s+(.*?)\s*(?:\(UUID:.*)?$")
_SUMMARY = re.compile(
    r"\|\s+([0-9]+)\s+((?:NVIDIA|Tesla|GeForce|Quadro)\s?\S.*?)\s+(?:On|Off)\s+\|"
)
_LINK = re.compile(r"\s*Link\s+[0-9]+:\s*(.*?)\s*$")
_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) *GB")
_NEAR = Fraction(5, 4)
"""nvidia-smi prints up to 6 % more than the payload rate: 26.562 GB/s for the 25 of H100."""


@dataclass
class Product:
    """A GPU of a listing.

    Parameters
    ----------
    name : str
    number : str
        What nvidia-smi calls it: 2 is GPU2 of the matrix.
    at : Span
    active : int or None
        Its active links; None where the listing shows no links.
    speeds : list of (Fraction, Span)
        Of the active links: GB/s, and where each stands.
    """

    name: str
    number: str
    at: Span
    active: int | None = None
    speeds: list[tuple[Fraction, Span]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Products:
    """What ``nvidia-smi nvlink -s``, ``-L`` or no option says."""

    file: str
    gpus: tuple[Product, ...]


def clean(text: str) -> str:
    """Return a text without the escapes of terminals."""
    return _CONTROL.sub("", text)


def sniff(text: str) -> bool:
    """Whether a text lists GPUs, as ``nvidia-smi -L`` and ``nvidia-smi nvlink -s`` do."""
    first = next((line for line in clean(text).split("\n") if line.strip()), "")
    return _PRODUCT.match(first) is not None


def parse(source: Source) -> Products:
    """Return the products that a listing names."""
    found: list[Product] = []
    for number, line in enumerate(clean(source.text).split("\n"), 1):
        if product := _PRODUCT.match(line) or _SUMMARY.match(line):
            found.append(Product(product[2], product[1], source.span(number)))
        elif (link := _LINK.match(line)) and found:
            gpu, rate = found[-1], _RATE.match(link[1])
            gpu.active = (gpu.active or 0) + (rate is not None)
            if rate is not None:
                at = source.span(number, link.start(1) + 1)
                gpu.speeds.append((Fraction(rate[1]), at))
    return Products(source.file, tuple(found))


def with_products(machine: Machine, products: Products) -> Machine:
    """Return a machine whose GPUs have the generations of a listing, and no longer a guess.

    Raises
    ------
    InputError
        CS155: there are not as many GPUs, or their numbers are not those of a matrix.
    """
    if len(products.gpus) != len(machine.gpus):
        phrase = f"{products.file} lists {len(products.gpus)} GPUs"
        note = f"{machine.file} has {len(machine.gpus)}"
        raise refusal(phrase, machine.gpus[0].at, note, code="CS155")
    for gpu, product in zip(machine.gpus, products.gpus, strict=True):
        if NUMBERED.fullmatch(gpu.name) and gpu.name != f"GPU{product.number}":
            other = f"GPU {product.number}"
            phrase = f"{products.file} lists {other} where {machine.file} has {gpu.name}"
            raise refusal(phrase, product.at, code="CS155", advice="list the same GPUs in both")
    models = [generation(product.name) for product in products.gpus]
    gpus = [
        replace(gpu, model=model or gpu.model)
        for gpu, model in zip(machine.gpus, models, strict=True)
    ]
    doubts = [x for x in machine.warnings if x.code != "W16" or not all(models)]
    bonds, lost = _active(machine, products)
    doubts += [*lost, *_other_speeds(products, models)]
    return replace(machine, gpus=tuple(gpus), bonds=tuple(bonds), warnings=tuple(doubts))


def _active(machine: Machine, products: Products) -> tuple[list[Bond], list[Diagnostic]]:
    """Return the links without inactive ones, as far as the listing tells where these lead."""
    bonds, doubts = list(machine.bonds), []
    totals = machine.links_of()
    for i, product in enumerate(products.gpus):
        total, active, gpu = totals[i], product.active, machine.gpus[i]
        if active is None or active == total:
            continue
        phrase = f"{gpu.name} has {total} NVLinks, of which {active} are active"
        note, advice = f"{products.file} says so; inactive links are not counted", None
        mine = [bond for bond in bonds if bond.source == i]
        if active > total:
            phrase = f"{gpu.name} has {total} NVLinks, but {products.file} shows {active} active"
            note = f"the topology has the links of {machine.file}"
        elif len(mine) == 1 or not active:
            bonds = [x for x in bonds if x.source != i]
            bonds += [replace(x, count=active) for x in mine if active]
        else:
            note = f"{products.file} does not say to which GPUs they lead, so all are counted"
            advice = "look at nvidia-smi nvlink -R, and edit the counts in the topology"
        doubts.append(warning("W12", phrase, gpu.at, note, advice=advice))
    return bonds, doubts


def _other_speeds(products: Products, models: list[str]) -> Iterator[Diagnostic]:
    """Name links that are faster or slower than those of the GPU that the listing names."""
    for i, (product, model) in enumerate(zip(products.gpus, models, strict=True)):
        usual = link_rate("nvlink", model, "spec")
        if usual is None:
            continue
        known = usual.value / 10**9
        for speed, at in product.speeds:
            if not known / _NEAR <= speed <= known * _NEAR:
                phrase = (
                    f"GPU {i} has a link of {float(speed):g} GB/s, but {kind_of('nvlink', model)}"
                )
                note = "links have what their kind has, or that of --gpu"
                yield warning("W28", f"{phrase} has {float(known):g} GB/s", at, note)
