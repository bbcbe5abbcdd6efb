"""Topology -> YAML in the flat form."""

from __future__ import annotations

from typing import Any

import yaml

from colsynth.model import Link, Node, Topology
from colsynth.topology.scalars import plain_scalar
from colsynth.topology.schema import VERSION
from colsynth.topology.trunks import as_used
from colsynth.units import spell_bandwidth, spell_duration


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes what YAML 1.2 would not read as text, beside what YAML 1.1 would not."""


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if _is_text(text) else "'")


def _is_text(text: str) -> bool:
    try:
        return plain_scalar(text) == text
    except ValueError:
        return False


_Dumper.add_representer(str, _text)


def export_flat(topology: Topology) -> str:
    """Return the topology as YAML in the flat form; reading it gives an equal topology."""
    # Flow style for leaves: one line per node and per link, however long.
    text: str = yaml.dump(
        flat_form(topology),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        allow_unicode=True,
        width=2**30,
    )
    return text


def flat_form(topology: Topology) -> dict[str, Any]:
    """Return the topology as plain data in the flat form, slower wires included."""
    data: dict[str, Any] = {"version": VERSION, "name": topology.name}
    if topology.whole is not None:
        topology = topology.whole
    elif as_used(topology) is not topology:
        data["wires"] = "all"
    names = [node.name for node in topology.nodes]
    if list(topology.ranks) != sorted(topology.ranks):
        data["ranks"] = [names[node] for node in topology.ranks]
    data["nodes"] = [_node(node) for node in topology.nodes]
    data["links"] = _links(topology, names)
    return data


def _node(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": node.name, "kind": str(node.kind)}
    if node.box is not None:
        entry["box"] = node.box
    if node.capabilities:
        entry["capabilities"] = list(node.capabilities)
    return entry


def _links(topology: Topology, names: list[str]) -> list[dict[str, Any]]:
    entries = []
    for link in topology.links:
        back = topology.link_between.get((link.target, link.source))
        paired = back is not None and _like(topology.links[back], link)
        if paired and link.source > link.target:
            continue  # written with its reverse
        entry: dict[str, Any] = {
            "from": names[link.source],
            "to": names[link.target],
            "bandwidth": spell_bandwidth(link.bandwidth),
        }
        if link.latency:
            entry["latency"] = spell_duration(link.latency)
        if not paired:
            entry["one-way"] = True
        entries.append(entry)
    return entries


def _like(one: Link, other: Link) -> bool:
    return one.bandwidth == other.bandwidth and one.latency == other.latency
