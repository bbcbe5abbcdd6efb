"""``rocm-smi --showtopo`` (and ``--shownodesbw``), ``amd-smi topology``: tables of pairs of GPUs.

The weight tells which GPUs are joined directly, not by how many links; the range of bandwidths
does: its upper end over its lower one. Hops tell nothing of xGMI. No table names the GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

from colsynth.errors import Diagnostic, Span
from colsynth.topology.importers.doubts import bond_doubts, warning
from colsynth.topology.importers.json_text import looks_like_json, parse_json
from colsynth.topology.importers.machine import (
    Bond,
    Gpu,
    Hub,
    Machine,
    Source,
    limited,
    refusal,
)

_SECTIONS = {
    "weight": re.compile(r"=*\s*Weight between two GPUs\s*=*|WEIGHT TABLE:"),
    "hops": re.compile(r"=*\s*Hops between two GPUs\s*=*|HOPS TABLE:"),
    "type": re.compile(r"=*\s*Link Type between two GPUs\s*=*|LINK TYPE TABLE:"),
    "range": re.compile(r"=+\s*Bandwidth.*|(NUMA )?BW TABLE:|BANDWIDTH TABLE:"),
    "other": re.compile(r"[A-Z][A-Z -]* TABLE:|=+.*"),
}
_NAME = re.compile(r"GPU[0-9]{1,4}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_NUMA = re.compile(r"GPU\[([0-9]{1,4})\]\s*:\s*\(Topology\) Numa Node:\s*(-?[0-9]+)")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_PAIR = re.compile(
    r"\(Topology\) (Weight|Hops|Link type) between DRM devices ([0-9]+) and ([0-9]+)"
)
_DIRECT = ("13", "15", "41")
"""Weights of GPUs that a link joins, as RCCL takes them."""

_MISSING = ("N/A", "XXXX", "UNKNOWN", "")
_FAILED = re.compile(r"\s*(ERROR|Exception|Traceback|rsmi_|AMDSMI_STATUS)")

Cells = dict[tuple[int, int], str]


@dataclass
class Tables:
    """Cells by section and pair of GPUs, and where the last row and the ranges of a GPU stand."""

    names: list[str] = field(default_factory=list)
    places: list[Span] = field(default_factory=list)
    cells: dict[str, Cells] = field(default_factory=dict)
    ranges: dict[int, Span] = field(default_factory=dict)
    numa: dict[int, str] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)


def sniff(text: str) -> bool:
    """Whether a text holds such tables, or such JSON."""
    if looks_like_json(text):
        return '"link_type"' in text or "between DRM devices" in text
    kinds = [_SECTIONS[key] for key in ("weight", "type", "range")]
    lines = [line.strip() for line in text[:200_000].split("\n")]
    if not any(kind.fullmatch(line) for line in lines for kind in kinds):
        return False
    return any(_NAME.match(line) for line in lines)


def parse(source: Source) -> Machine:
    """Return the node that the tables describe."""
    is_json = looks_like_json(source.text)
    tables = _from_json(source) if is_json else _from_text(source)
    if len(tables.names) < 2:
        raise refusal("the tables show fewer than two GPUs", source.span(1))
    if not any(tables.cells.get(key) for key in ("type", "weight", "range")):
        raise refusal("neither link types nor weights are there", source.span(1))
    return _machine(source, tables)


def _from_text(source: Source) -> Tables:
    tables = Tables()
    section, header = "other", None
    for number, line in enumerate(source.text.split("\n"), 1):
        words = line.split()
        numa = _NUMA.search(line)
        if numa is not None:
            tables.numa[int(numa[1])] = numa[2]
        elif _FAILED.match(line):
            at = source.span(number)
            tables.warnings.append(warning("W11", f"the tool failed: {line.strip()[:80]}", at))
        elif found := next((k for k, v in _SECTIONS.items() if v.fullmatch(line.strip())), None):
            section, header = found, None
        elif section == "other" or not words:
            continue
        elif header is None:
            if all(map(_NAME.fullmatch, words)):
                header = words
                _check_names(tables, header, source.span(number))
        elif words[0] in header:
            _row(tables, section, words, source, number)
    return tables


def _check_names(tables: Tables, header: list[str], at: Span) -> None:
    limited(header, "GPUs", at)
    if tables.names and header != tables.names:
        raise refusal("the tables name different GPUs", at, "import one output at a time")
    if len(set(header)) < len(header):
        raise refusal("a GPU is there twice", at)
    if not tables.names:
        tables.names = header
        tables.places = [at] * len(header)


def _row(tables: Tables, section: str, words: list[str], source: Source, number: int) -> None:
    i = tables.names.index(words[0])
    line = source.text.split("\n")[number - 1] if len(words) <= len(tables.names) else ""
    if len(words) <= len(tables.names):
        at = source.span(number, len(line.rstrip()) + 1)
        raise refusal(f"the row of {words[0]} is cut off", at)
    tables.places[i] = source.span(number)
    if section == "range":
        tables.ranges[i] = tables.places[i]
    cells = tables.cells.setdefault(section, {})
    for j, cell in enumerate(words[1 : len(tables.names) + 1]):
        cells[i, j] = cell


def _from_json(source: Source) -> Tables:
    data = parse_json(source)
    flat = _drm_pairs(data)
    if flat:
        return _from_pairs(source, flat)
    if isinstance(data, dict):  # some versions put the list under a key
        data = next((x for x in data.values() if isinstance(x, list)), data)
    if not isinstance(data, list) or not all(isinstance(x, dict) for x in data):
        raise refusal("expected a list with an object for each GPU", source.span(1))
    limited(data, "GPUs", source.span(1))
    tables = Tables()
    for entry in data:
        tables.names.append(str(entry.get("bdf") or f"gpu_{entry.get('gpu')}"))
        tables.places.append(source.find(f'"{tables.names[-1]}"'))
    numbers = {str(entry.get("gpu")): i for i, entry in enumerate(data)}
    for i, entry in enumerate(data):
        links = entry.get("links")
        if isinstance(links, list):
            _new_schema(tables, i, links, numbers)
        else:
            _old_schema(tables, i, entry, numbers)
    return tables


def _new_schema(tables: Tables, i: int, links: list[object], numbers: Mapping[str, int]) -> None:
    for link in links:
        if isinstance(link, dict) and str(link.get("gpu")) in numbers:
            j = numbers[str(link.get("gpu"))]
            words = ("weight", "num_hops", "link_type", "bandwidth")
            for key, word in zip(("weight", "hops", "type", "range"), words, strict=True):
                if word in link:
                    tables.cells.setdefault(key, {})[i, j] = str(link[word])


def _old_schema(
    tables: Tables, i: int, entry: Mapping[str, object], numbers: Mapping[str, int]
) -> None:
    words = ("weight", "hops", "link_type", "numa_bandwidth")
    for key, word in zip(("weight", "hops", "type", "range"), words, strict=True):
        row = entry.get(word)
        for name, value in row.items() if isinstance(row, dict) else ():
            number = str(name).removeprefix("gpu_")
            if number in numbers:
                tables.cells.setdefault(key, {})[i, numbers[number]] = str(value)


def _drm_pairs(data: object) -> list[tuple[str, int, int, str]]:
    """Return what ``rocm-smi --showtopo --json`` says: (section, GPU, GPU, value)."""
    groups = [data, *data.values()] if isinstance(data, dict) else []
    found = []
    for group in groups:
        for key, value in group.items() if isinstance(group, dict) else ():
            if (pair := _PAIR.match(str(key))) and max(len(pair[2]), len(pair[3])) < 5:
                section = {"Weight": "weight", "Hops": "hops", "Link type": "type"}[pair[1]]
                found.append((section, int(pair[2]), int(pair[3]), str(value)))
    return found


def _from_pairs(source: Source, pairs: Iterable[tuple[str, int, int, str]]) -> Tables:
    every = list(pairs)
    numbers = sorted({x for _, i, j, _ in every for x in (i, j)})
    place = {number: i for i, number in enumerate(numbers)}
    limited(numbers, "GPUs", source.span(1))
    tables = Tables([f"GPU{x}" for x in numbers], [source.span(1)] * len(numbers))
    for section, i, j, value in every:
        cells = tables.cells.setdefault(section, {})
        cells[place[i], place[j]] = cells[place[j], place[i]] = value  # the upper triangle alone
    return tables


def _machine(source: Source, tables: Tables) -> Machine:
    if _says_nothing(tables):
        del tables.cells["range"]
    bonds, lost = _bonds(tables)
    if lost:
        i, j = lost[0]
        phrase = f"{len(lost)} pairs of GPUs have no value, such as {tables.names[i]}"
        note = f"and {tables.names[j]}; they count as not linked"
        tables.warnings.append(warning("W11", phrase, tables.places[i], note))
    model = _guess(len(tables.names), bonds)
    if bonds:
        phrase = f"the tables do not name the GPU: taken for {model}"
        advice = "give --gpu, such as mi300x or mi250"
        note = "its generation decides the bandwidth of a link"
        tables.warnings.append(warning("W16", phrase, tables.places[0], note, advice=advice))
    if bonds and not tables.cells.get("range"):
        phrase = "the tables do not tell how many links join two GPUs"
        note = "taken for one; on MI250, pairs have 4, 2 or 1"
        advice = "import amd-smi topology, or add the output of rocm-smi --shownodesbw"
        tables.warnings.append(warning("W21", phrase, tables.places[0], note, advice=advice))
    if not bonds:
        phrase = "the tables do not tell the speed of PCIe"
        note = "taken for 8 GT/s"
        advice = "give --gpu, or import a dump of RCCL, which tells it"
        tables.warnings.append(warning("W15", phrase, tables.places[0], note, advice=advice))
    hubs, above = _roots(tables)
    gpus = tuple(
        Gpu(name, tables.places[i], above[i], None, model if bonds else "")
        for i, name in enumerate(tables.names)
    )
    found = Machine("table of AMD's tools", source.file, gpus, (), hubs, tuple(bonds), "xgmi")
    return replace(found, warnings=(*tables.warnings, *bond_doubts(found)))


def _says_nothing(tables: Tables) -> bool:
    """Whether all ranges are empty where the other tables tell who is joined."""
    ranges = [text for (i, j), text in tables.cells.get("range", {}).items() if i != j]
    others = tables.cells.keys() & {"type", "weight"}
    return bool(ranges and others) and all(_count(text) == (0, True) for text in ranges)


def _bonds(tables: Tables) -> tuple[list[Bond], list[tuple[int, int]]]:
    """Return the direct xGMI links, and the pairs of which nothing is known."""
    kinds, weights = tables.cells.get("type", {}), tables.cells.get("weight", {})
    ranges = tables.cells.get("range", {})
    if not kinds and not weights:  # the range alone tells who is joined
        kinds = {pair: "XGMI" if _RANGE.fullmatch(x) else "PCIE" for pair, x in ranges.items()}
    bonds, lost = [], []
    for i, j in permutations(range(len(tables.names)), 2):
        kind, weight = kinds.get((i, j)), weights.get((i, j))
        if (kind or weight or "").upper() in _MISSING:
            lost.append((i, j))
            continue
        joined = weight in _DIRECT if kind is None else kind == "XGMI"
        if joined and weight is not None and weight not in (*_DIRECT, *_MISSING):
            joined = False  # a way over other GPUs
        count, exact = _count(ranges.get((i, j)))
        if joined and count:
            bonds.append(Bond(i, j, count, tables.places[i]))
        if joined and ranges and not exact:
            tables.warnings.append(_rounded(tables, i, j, count))
    return bonds, lost


def _count(text: str | None) -> tuple[int, bool]:
    """Return the number of links that a range of bandwidths means, and whether it says so.

    Where it says nothing, one link is taken; a fraction is rounded.
    """
    found = _RANGE.fullmatch(text or "")
    if found is None:
        return 1, False
    low, high = int(found[1]), int(found[2])
    if not high:
        return 0, not low
    return (max(1, min(round(high / low), 64)), high % low == 0) if low else (1, False)


def _rounded(tables: Tables, i: int, j: int, count: int) -> Diagnostic:
    seen = tables.cells["range"].get((i, j), "missing")[:30]
    pair = f"{tables.names[i]} and {tables.names[j]}"
    phrase = f"the bandwidth range of {pair} is {seen}: no whole number of links, taken for {count}"
    note = "the upper end over the lower one is the number of links"
    advice = "import a dump of RCCL, which counts links, or edit the counts in the topology"
    return warning("W21", phrase, tables.ranges.get(i, tables.places[i]), note, advice=advice)


def _guess(gpus: int, bonds: list[Bond]) -> str:
    """Return the generation whose boards have such links."""
    if len(bonds) == gpus * (gpus - 1) and gpus > 2:
        return "gfx942"
    per_gpu = set(Counter(x.source for x in bonds).values())
    return "gfx908" if per_gpu == {3} and all(x.count == 1 for x in bonds) else "gfx90a"


def _roots(tables: Tables) -> tuple[tuple[Hub, ...], list[int]]:
    """Return a socket for each NUMA node, or for GPUs that two hops join."""
    count = len(tables.names)
    if len(tables.numa) == count and set(tables.numa) == set(range(count)):
        keys = [f"NUMA node {tables.numa[i]}" for i in range(count)]
    else:
        hops = tables.cells.get("hops", {})
        first = list(range(count))
        for i in range(count):
            near = (j for j in range(i) if hops.get((i, j), "2") in ("0", "1", "2"))
            first[i] = first[next(near, i)]
        keys = [f"socket of {tables.names[i]}" for i in first]
    names = list(dict.fromkeys(keys))
    hubs = tuple(Hub(name, "root", -1, None, tables.places[0], "unknown") for name in names)
    return hubs, [names.index(key) for key in keys]
