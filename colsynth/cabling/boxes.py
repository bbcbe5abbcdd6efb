"""Fabrics whose nodes are boxes: the NICs of a chassis are its ports."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from colsynth.cabling.panels import Cable
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Kind, Link, Topology
from colsynth.topology.builder import Builder
from colsynth.topology.load import load


def ports_of(preset: str) -> tuple[int, Fraction]:
    """Return the NICs of a box of a preset, and the bandwidth of the narrowest, bytes per second.

    Raises
    ------
    InputError
        There is no such preset, or its boxes have no NICs.
    """
    topology = _loaded(preset, 2)
    nics = [i for i, node in enumerate(topology.nodes) if node.kind is Kind.NIC and node.box == 0]
    if not nics:
        phrase = f"the boxes of {preset!r} have no NICs"
        raise InputError(Diagnostic("CS126", phrase, help="cable its GPUs, without --box"))
    out = [x for x in topology.links if x.source in nics and topology.nodes[x.target].box is None]
    return len(nics), min(link.bandwidth for link in out)


def gpus_of(preset: str) -> int:
    """Return the GPUs of a box of a preset."""
    return _loaded(preset, 1).size


def _loaded(preset: str, boxes: int) -> Topology:
    """Return some boxes of a preset; refuse a topology that has none (CS126)."""
    try:
        return load(preset, nodes=boxes)
    except InputError as fault:
        if fault.diagnostic.code != "CS124":
            raise
    phrase = f"--box {preset}: this topology has no boxes"
    raise InputError(Diagnostic("CS126", phrase, help="cable its GPUs, without --box"))


def wired(preset: str, boxes: int, cables: tuple[Cable, ...], name: str) -> Topology:
    """Return boxes of a preset whose NICs are joined by cables instead of switches.

    Cable k of a box goes through its NIC k; its bandwidth is that of the NIC's narrowest link.
    """
    whole = load(preset, nodes=boxes)
    builder = Builder()
    kept: dict[int, int] = {}
    nics: dict[int, list[int]] = {}
    for place, node in enumerate(whole.nodes):
        if node.box is not None:
            kept[place] = builder.add_node(node)
            if node.kind is Kind.NIC:
                nics.setdefault(node.box, []).append(place)
    for link in whole.links:
        if link.source in kept and link.target in kept:
            moved = replace(link, source=kept[link.source], target=kept[link.target])
            builder.add_link(moved, one_way=True)
    into = {link.source: link for link in whole.links if link.target not in kept}
    step = 2 if cables and cables[0].both_ways else 1
    for cable in cables:
        if cable.source == cable.target:
            continue
        out_nic = nics[cable.source][step * cable.panel]
        in_nic = nics[cable.target][step * cable.panel + (step - 1)]
        rate = min(into[out_nic].bandwidth, into[in_nic].bandwidth)
        delay = into[out_nic].latency * 2
        joined = Link(kept[out_nic], kept[in_nic], rate, delay)
        builder.add_link(joined, one_way=not cable.both_ways)
    return builder.finish(name)
