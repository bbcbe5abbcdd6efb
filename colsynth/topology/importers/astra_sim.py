"""Analytical networks of ASTRA-sim: one dimension after the other, innermost first.

Their gigabyte has 2**30 bytes. A ring has links both ways; a switch counts the latency twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.topology.document import Document, Wording, parse_document
from colsynth.topology.importers.machine import Source, refusal
from colsynth.topology.importers.plan import Group, Part, Plan, Rate, Ref, Wire

_KINDS = ("Ring", "FullyConnected", "Switch")
_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_WORDING = Wording(
    "network file of ASTRA-sim",
    "a mapping with topology, npus_count, bandwidth and latency",
    "see inputs/network of ASTRA-sim",
    "give an analytical network",
)
_MOST_GPUS, _MOST_LINKS = 2**14, 2**18
_MOST = 10**7
"""GB/s, and ns of a link."""


@dataclass(frozen=True, slots=True)
class _Dimension:
    kind: str
    size: int
    rate: Rate


def sniff(text: str) -> bool:
    """Whether a text has the keys of such a file."""
    return all(re.search(rf"(?m)^{key}\s*:", text) for key in _KEYS[:2])


def parse(source: Source) -> Plan:
    """Return the network; where its first dimension is a switch or a clique, this is the box.

    Raises
    ------
    InputError
        CS152: a value is missing or a word such as tbd; CS125: the network is too large.
    """
    document = parse_document(source.text, source.file, _WORDING)
    dimensions = _dimensions(document)
    sizes = [x.size for x in dimensions]
    gpus = prod(sizes)
    if gpus > _MOST_GPUS:
        raise refusal(f"{gpus} GPUs are too many", document.at("npus_count"), code="CS125")
    groups = [Group("gpu", "gpu", ("",) * gpus)]
    wires: list[Wire] = []
    places: dict[Ref, int] = {}
    boxed = len(sizes) > 1 and dimensions[0].kind != "Ring"
    for level, dimension in enumerate(dimensions):
        name = f"switch{'-x' * level}"
        lines = list(_lines(sizes, level))
        if dimension.kind == "Switch":
            groups.append(Group(name, "switch", ("",) * len(lines), f"Of dimension {level}."))
        for number, line in enumerate(lines):
            wires += _wires(dimension, line, (name, number))
            if len(wires) > _MOST_LINKS:
                raise refusal("too many links", document.at("npus_count"), code="CS125")
            if boxed and level == 0:
                ends = [("gpu", i) for i in line] + [(name, number)]
                places |= dict.fromkeys(ends, number)
    words = " x ".join(f"{x.kind} of {x.size}" for x in dimensions)
    title = f"{words}, {gpus} GPUs"
    part = Part(tuple(groups), tuple(wires))
    return Plan("astra-sim", title, (), part, boxed=False, places=tuple(places.items()))


def _dimensions(document: Document) -> list[_Dimension]:
    columns = [_column(document, key) for key in _KEYS]
    if len({len(column) for column in columns}) > 1:
        note = ", ".join(f"{key} {len(x)}" for key, x in zip(_KEYS, columns, strict=True))
        raise refusal("the lists differ in length", document.at("topology"), note)
    found = []
    for i, (kind, size, bandwidth, latency) in enumerate(zip(*columns, strict=True)):
        if kind not in _KINDS:
            phrase = f"dimension {str(kind)[:40]!r} is not known"
            help_ = did_you_mean(str(kind)[:40], _KINDS)
            at = document.at("topology", i)
            raise InputError(Diagnostic("CS152", phrase, at, help=help_))
        if not isinstance(size, int) or isinstance(size, bool) or size < 2:
            phrase = f"a dimension of {str(size)[:40]!r} GPUs"
            raise refusal(phrase, document.at("npus_count", i), "expected a number from 2 on")
        speed = _number(document, "bandwidth", i, bandwidth)
        delay = _number(document, "latency", i, latency)
        if not speed:
            raise refusal("a bandwidth of zero", document.at("bandwidth", i))
        source = f"dimension {i} of {document.file}; its GB are GiB"
        text = f"{bandwidth} GiB/s"
        name = f"dimension-{i}"
        note = f"dimension {i} of {document.file}"
        rate = Rate(name, speed * 2**30, source, name, delay / 10**9, note, text)
        found.append(_Dimension(str(kind), size, rate))
    return found


def _column(document: Document, key: str) -> list[Any]:
    if key not in document.data:
        raise refusal(f"key {key!r} is missing", document.at())
    value = document.data[key]
    if not isinstance(value, list) or not 0 < len(value) <= 16:
        raise refusal(f"{key} is no list of 1 to 16 dimensions", document.at(key))
    return value


def _number(document: Document, key: str, i: int, value: Any) -> Fraction:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not (value == 0 or 1 / _MOST <= value <= _MOST):
        phrase = f"{key} {str(value)[:40]!r} is no number"
        advice = "fill in the value" if isinstance(value, str) else None
        raise refusal(phrase, document.at(key, i), advice=advice)
    return Fraction(str(value))


def _lines(sizes: list[int], level: int) -> Iterator[list[int]]:
    """Yield the GPUs that differ in one dimension alone."""
    step = prod(sizes[:level])
    for first in range(prod(sizes)):
        if first // step % sizes[level] == 0:
            yield [first + k * step for k in range(sizes[level])]


def _wires(dimension: _Dimension, line: list[int], switch: Ref) -> list[Wire]:
    if dimension.kind == "Switch":
        return [Wire(("gpu", i), switch, dimension.rate) for i in line]
    if dimension.kind == "FullyConnected" or len(line) == 2:
        pairs = list(combinations(line, 2))
    else:
        pairs = list(zip(line, [*line[1:], line[0]], strict=True))
    return [Wire(("gpu", i), ("gpu", j), dimension.rate) for i, j in pairs]
