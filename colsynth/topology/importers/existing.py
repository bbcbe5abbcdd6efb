"""A preset or a topology file as the box of an import."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Node, Topology
from colsynth.topology.compact import expand
from colsynth.topology.decode import decode
from colsynth.topology.document import decode_document, read_document
from colsynth.topology.flat import read_flat
from colsynth.topology.importers.json_text import looks_like_json
from colsynth.topology.importers.machine import Source
from colsynth.topology.importers.plan import Box, Group, Part, Port, Rate, Ref, Wire, unit_of
from colsynth.topology.load import find_file, is_generator
from colsynth.topology.schema import Flat

_STEM = re.compile(r"([A-Za-z](?:[\w-]*[A-Za-z_-])?)[0-9.]*", re.ASCII)
_FORM = re.compile(r"(?m)^(version|box|nodes):")

_MOST_COUNT = 36
"""Links of a pair of nodes; more are no machine's."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A topology file, which needs no import; it can be the box of one."""

    file: str
    text: str


def sniff(text: str) -> bool:
    """Whether a text is a topology file, in YAML or JSON."""
    if looks_like_json(text, '"version"', '"name"'):
        return '"nodes"' in text or '"box"' in text
    keys = set(_FORM.findall(text))
    return "version" in keys and len(keys) > 1


def parse(source: Source) -> Ready:
    """Return a topology file as it is."""
    return Ready(source.file, source.text)


def box_of(
    spec: str,
    data: bytes | None = None,
    settings: dict[str, str] | None = None,
    file: str | None = None,
) -> Box:
    """Return one box of a topology.

    Parameters
    ----------
    spec : str
        A preset, or a YAML file.
    data : bytes, optional
        Of a file that is not to be opened.
    settings : dict, optional
        Parameters of a preset.
    file : str, optional
        Where the settings come from.

    Raises
    ------
    InputError
        CS124: a generator, which makes no boxes. Whatever is wrong with the file, at its place.
    """
    if data is None and is_generator(spec):
        phrase = f"--box {spec}: a generator makes no box"
        raise InputError(Diagnostic("CS124", phrase, help="name a preset or a YAML file"))
    document = read_document(find_file(spec)) if data is None else decode_document(data, spec)
    form = decode(document)
    if isinstance(form, Flat):
        whole = read_flat(document, form)
    else:
        boxes = 1 if form.fabric is None else 2
        whole = expand(document, form, boxes, settings or {})
    changed = [f"{name}={value}" for name, value in (settings or {}).items()]
    origin = f"{spec} with {', '.join(changed)} of {file}" if changed else spec
    return _box(whole.whole or whole, form.title or form.name, origin)


def _box(topology: Topology, title: str, spec: str) -> Box:
    number = topology.nodes[topology.ranks[0]].box
    inside = [i for i, node in enumerate(topology.nodes) if node.box == number]
    gpus = [i for i in topology.ranks if topology.nodes[i].box == number]
    order = gpus + [i for i in inside if i not in topology.rank_of]
    groups, place = _groups(order, topology, spec)
    wires, out = [], dict.fromkeys(order, Fraction(0))
    delays: dict[int, Fraction] = {}
    for link in topology.links:
        if link.source in place and link.target in place:
            back = topology.link_between.get((link.target, link.source))
            both = back is not None and _carries(topology, back) == (link.bandwidth, link.latency)
            if both and link.source > link.target:
                continue
            ends = place[link.source], place[link.target]
            rate = _rate(ends, link.bandwidth, link.latency, spec)
            wires.append(Wire(*ends, rate, one_way=not both))
        elif link.source in place:
            out[link.source] += link.bandwidth
            delays[link.source] = link.latency
    ports = tuple(
        Port(
            place[i],
            topology.nodes[i].name,
            _rate((place[i], ("fabric", 0)), out[i], delays[i], spec),
        )
        for i in order
        if out[i]
    )
    return Box(title, Part(groups, _counted(wires)), ports)


def _counted(wires: Sequence[Wire]) -> tuple[Wire, ...]:
    """Return the wires with counts, where those of two groups are small multiples of a link."""
    alike: dict[tuple[str, str, Fraction], set[Fraction]] = {}
    for wire in wires:
        key = wire.source[0], wire.target[0], wire.rate.latency
        alike.setdefault(key, set()).add(wire.rate.bandwidth)
    found = []
    for wire in wires:
        speeds = alike[wire.source[0], wire.target[0], wire.rate.latency]
        unit = unit_of(speeds)
        if len(speeds) == 1 or max(speeds) / unit > _MOST_COUNT:
            found.append(wire)
            continue
        count = int(wire.rate.bandwidth / unit)
        found.append(replace(wire, rate=replace(wire.rate, bandwidth=unit), count=count))
    return tuple(found)


def _groups(
    order: Sequence[int], topology: Topology, spec: str
) -> tuple[tuple[Group, ...], dict[int, Ref]]:
    """Return the groups of a box, and the new name of each node."""
    members: dict[str, list[int]] = {}
    first: dict[str, Node] = {}
    for i in order:
        node = topology.nodes[i]
        found = _STEM.fullmatch(node.name)
        stem = found[1] if found else str(node.kind)
        while stem in first and _kind(first[stem]) != _kind(node):
            stem += "-x"
        first.setdefault(stem, node)
        members.setdefault(stem, []).append(i)
    groups = tuple(
        Group(
            stem, str(first[stem].kind), ("",) * len(nodes), f"As in {spec}.",
            first[stem].capabilities,
        )
        for stem, nodes in members.items()
    )  # fmt: skip
    return groups, {i: (stem, k) for stem, nodes in members.items() for k, i in enumerate(nodes)}


def _kind(node: Node) -> tuple[object, ...]:
    return node.kind, node.capabilities


def _carries(topology: Topology, link: int) -> tuple[Fraction, Fraction]:
    return topology.links[link].bandwidth, topology.links[link].latency


def _rate(ends: tuple[Ref, Ref], bandwidth: Fraction, latency: Fraction, spec: str) -> Rate:
    name = "-".join(dict.fromkeys(group for group, _ in ends))
    return Rate(name, bandwidth, f"as in {spec}", name, latency, f"as in {spec}")
