"""Two kinds of wire between two GPUs, such as NVLink and PCIe: the slower one is left out.

No file can choose the wire of a message; runtimes take the faster one. A bound or a forest that
counts on both would promise what no file can keep.

Wires are links from GPU to GPU, and ways through the switches of a box. NICs and the switches
outside of boxes are the network; they are not compared. Equal wires all stay, and so do switches
that may be chips of one kind: with equal latencies, and bandwidths less than twofold apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations

from colsynth.model import Kind, Link, Topology
from colsynth.text import listed
from colsynth.topology.damage import NAMED, Ends, link_labels
from colsynth.topology.reach import reached
from colsynth.topology.spare import DIRECT, Fabric, fabrics_of, spare_pairs

EVERY_WIRE = (
    "two kinds of wire join the same GPUs ('wires: all'), and no file can choose between them; "
    "bounds and schedules may count on more than files can use"
)
"""The note on a topology whose file keeps every wire."""


@dataclass(slots=True)
class _Choice:
    """What is left of the links, and what there is to say about it."""

    topology: Topology
    links: dict[Ends, Link]
    split: dict[int, list[set[Ends]]] = field(default_factory=dict)
    without: set[Ends] = field(default_factory=set)
    through: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def of(self, fabric: Fabric) -> list[Ends]:
        """Return the links of a fabric that are left."""
        return [link.ends for link in fabric.links if link.ends in self.links]

    def drop(self, ends: Iterable[Ends]) -> None:
        """Take links out."""
        for pair in ends:
            self.links.pop(pair, None)


def choose_wires(
    topology: Topology,
    rates: Mapping[Ends, Fraction] | None = None,
    group_of: Mapping[int, int] | None = None,
) -> Topology:
    """Return a topology without the slower of two kinds of wire between two GPUs.

    A switch through which other ways lead, such as to a NIC, is split into parts that join
    only what may pass. New parts follow all nodes. What was left out is in the notes; the
    topology as it was is the `whole` of the answer.

    Parameters
    ----------
    topology : Topology
    rates : mapping, optional
        By (source, target), bandwidths to compare where they are not those of the links: a
        degraded link is still the wire that the runtime takes.
    group_of : mapping, optional
        By GPU, its process group: a wire that is left out within one need not join several.
    """
    fabrics = fabrics_of(topology)
    spare = spare_pairs(topology, fabrics, rates or {})
    if not spare:
        return topology
    if group_of is not None:
        for number in spare.keys() - {DIRECT}:
            ends = permutations(fabrics[number].gpus, 2)
            spare[number] |= {(a, b) for a, b in ends if group_of[a] != group_of[b]}
    choice = _Choice(topology, {x.ends: x for x in topology.links})
    choice.without = spare.pop(DIRECT, set())
    choice.drop(choice.without)
    left = [
        number for number, pairs in spare.items() if not _separated(choice, fabrics[number], pairs)
    ]
    for number in left:
        _left_out(choice, fabrics[number])
    return _result(choice)


def choose_for_groups(topology: Topology, groups: Sequence[Sequence[int]]) -> Topology:
    """Return a topology whose wires join the GPUs of every process group without others.

    A slow wire may have been left out because GPUs reach each other through others. Where those
    are in no group or in another one, wires are chosen again, as if nobody else were there.

    Parameters
    ----------
    topology : Topology
    groups : sequence of sequence of int
        Ranks; no rank is in two.
    """
    whole = topology.whole
    if whole is None or all(_joined(topology, group) for group in groups):
        return topology
    group_of = {whole.ranks[rank]: number for number, group in enumerate(groups) for rank in group}

    def serves(link: Link) -> bool:
        ends = [end for end in link.ends if end in whole.rank_of]
        return len({group_of.get(end, -1 - end) for end in ends}) < 2 and all(
            end in group_of for end in ends
        )

    served = replace(whole, links=tuple(filter(serves, whole.links)))
    found = choose_wires(served, group_of=group_of)
    if not all(_joined(found, group) for group in groups):
        return topology
    return replace(found, whole=whole)


def _joined(topology: Topology, group: Sequence[int]) -> bool:
    """Whether GPUs reach each other without other GPUs."""
    gpus = {topology.ranks[rank] for rank in group}
    gone = topology.rank_of.keys() - gpus
    arcs = [x for x in topology.link_between if gone.isdisjoint(x)]
    return _all_reached(gpus, arcs)


def _all_reached(gpus: set[int] | frozenset[int], arcs: list[Ends]) -> bool:
    """Whether arcs lead from every GPU to every other."""
    turned = [(target, source) for source, target in arcs]
    return all(gpus <= reached(min(gpus), ways) for ways in (arcs, turned))


def _separated(choice: _Choice, fabric: Fabric, pairs: set[Ends]) -> bool:
    """Take out ways that a fabric need not offer; whether it offers none of the pairs any more."""
    parts = _parts(choice, fabric, pairs)
    if any(source in into and target in out for into, out in parts for source, target in pairs):
        return False
    if len(fabric.switches) > 1 and len(parts) > 1:
        return False  # inner links cannot be divided
    _keep_parts(choice, fabric, parts)
    return True


def _left_out(choice: _Choice, fabric: Fabric) -> None:
    """Leave a slow fabric out between all GPUs if they can do without it, else keep it."""
    pairs = {(a, b) for a in fabric.gpus for b in fabric.gpus if a != b}
    parts = _parts(choice, fabric, pairs)
    needed = any(a in into and b in out for into, out in parts for a, b in pairs)
    if needed or (len(fabric.switches) > 1 and parts) or not _joined_without(choice, fabric):
        choice.kept += sorted(fabric.switches)
    else:
        _keep_parts(choice, fabric, parts)


def _parts(choice: _Choice, fabric: Fabric, pairs: set[Ends]) -> list[tuple[set[int], set[int]]]:
    """Return groups of (neighbours that send, neighbours that receive), apart from each other.

    Neighbours are together where one may send to the other. NICs and other switches send to
    GPUs alone: nothing passes a box from NIC to NIC.
    """
    gpus = choice.topology.rank_of
    border = [ends for ends in choice.of(fabric) if fabric.is_border(ends)]
    into = sorted({ends[0] for ends in border} - fabric.switches)
    out = sorted({ends[1] for ends in border} - fabric.switches)
    parts: list[tuple[set[int], set[int]]] = []
    for source in into:
        reached = {
            target
            for target in out
            if target != source
            and (source, target) not in pairs
            and (source in gpus or target in gpus)
        }
        if not reached:
            continue
        senders = {source}
        for part in [part for part in parts if part[1] & reached]:
            parts.remove(part)
            senders |= part[0]
            reached |= part[1]
        parts.append((senders, reached))
    return parts


def _keep_parts(choice: _Choice, fabric: Fabric, parts: list[tuple[set[int], set[int]]]) -> None:
    """Keep the links of parts alone; a switch of several parts is split."""
    choice.through += sorted(fabric.switches)
    senders = {node for into, _ in parts for node in into}
    receivers = {node for _, out in parts for node in out}
    border = [ends for ends in choice.of(fabric) if fabric.is_border(ends)]
    choice.drop(x for x in border if x[0] not in fabric.switches | senders)
    choice.drop(x for x in border if x[1] not in fabric.switches | receivers)
    if not parts:
        choice.drop(choice.of(fabric))
    elif len(parts) > 1:
        (switch,) = fabric.switches
        choice.split[switch] = [
            {*((node, switch) for node in into), *((switch, node) for node in out)}
            for into, out in parts
        ]


def _joined_without(choice: _Choice, fabric: Fabric) -> bool:
    """Whether the GPUs of a fabric reach each other over what else there is but the network."""
    nodes = choice.topology.nodes
    boxed = any(nodes[gpu].box is not None for gpu in fabric.gpus)
    gone = set(fabric.switches)
    gone |= {i for i, x in enumerate(nodes) if x.kind is Kind.NIC or (boxed and x.box is None)}
    arcs = [ends for ends in choice.links if gone.isdisjoint(ends)]
    return _all_reached(fabric.gpus, arcs)


def _result(choice: _Choice) -> Topology:
    """Return the topology of the links that are left, switches split."""
    topology = choice.topology
    nodes = list(topology.nodes)
    names = {node.name for node in nodes}
    moved: dict[Ends, Ends] = {}
    for switch, parts in sorted(choice.split.items()):
        for number, part in enumerate(parts[1:], 2):
            name = f"{nodes[switch].name} part {number}"
            while name in names:
                name += "'"
            names.add(name)
            place = len(nodes)
            nodes.append(replace(nodes[switch], name=name))
            for source, target in part:
                new = place if source == switch else source, place if target == switch else target
                moved[source, target] = new
    links = []
    for ends, link in choice.links.items():
        source, target = moved.get(ends, ends)
        links.append(replace(link, source=source, target=target))
    return replace(
        topology,
        nodes=tuple(nodes),
        links=tuple(sorted(links, key=lambda link: link.ends)),
        notes=(*topology.notes, *_notes(choice)),
        whole=topology,
    )


def _notes(choice: _Choice) -> Iterator[str]:
    topology = choice.topology
    names = [node.name for node in topology.nodes]
    parts = list(link_labels(topology, dict.fromkeys(choice.without)).values())
    without = [listed(parts, NAMED)] if parts else []
    if choice.through:
        switches = listed((names[i] for i in choice.through), NAMED)
        without.append(f"the ways between GPUs through {switches}")
    if without:
        yield (
            "no file can choose between two kinds of wire, and runtimes take the faster; left out: "
            f"{', and '.join(without)} ('wires: all' in the file keeps them)"
        )
    if choice.kept:
        kept = listed((names[i] for i in choice.kept), NAMED)
        yield (
            f"two kinds of wire: {kept} cannot be left out, other "
            "ways need it; the bound may count on more than files can use"
        )
