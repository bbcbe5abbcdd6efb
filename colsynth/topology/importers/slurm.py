"""Slurm's ``topology.conf`` and ``topology.yaml``: trees of switches, and blocks.

They hold no bandwidth, no rails and no number of cables. A block is an NVLink domain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.topology.document import Wording, parse_document
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.fabric import Cable, Fabric, Host, HostPort
from colsynth.topology.importers.hostlist import expand
from colsynth.topology.importers.machine import Source, refusal

_CONF = re.compile(r"(?im)^\s*(SwitchName|BlockName|RingName|BlockSizes)\s*=")
_YAML = re.compile(r"(?m)^\s*(?:-\s*)?(tree|block|flat|ring|torus3d):|^\s*-\s*topology:")
_PAIR = re.compile(r"([A-Za-z]+)\s*=\s*(\S+)")
_WORDING = Wording(
    "topology.yaml of Slurm",
    "a list of topologies under one key",
    "see `man topology.yaml`",
    "give a topology.conf or topology.yaml",
)


@dataclass
class _Tree:
    """Switches with what hangs on them, and blocks, as the lines name them."""

    switches: dict[str, tuple[list[str], list[str], Span]] = field(default_factory=dict)
    blocks: dict[str, tuple[list[str], Span]] = field(default_factory=dict)

    def add_switch(self, name: str, nodes: list[str], below: list[str], at: Span) -> None:
        if name in self.switches:
            raise refusal(f"switch {name!r} is there twice", at)
        self.switches[name] = (nodes, below, at)

    def add_block(self, name: str, nodes: list[str], at: Span) -> None:
        if name in self.blocks:
            raise refusal(f"block {name!r} is there twice", at)
        self.blocks[name] = (nodes, at)


def sniff(text: str) -> bool:
    """Whether a text is a topology.conf."""
    return _CONF.search(text) is not None and not text.lstrip().startswith(("<", "{", "["))


def sniff_yaml(text: str) -> bool:
    """Whether a text is a topology.yaml."""
    return _YAML.search(text) is not None and not text.lstrip().startswith(("<", "{", "["))


def parse(source: Source) -> Fabric:
    """Return the fabric of a topology.conf."""
    tree = _Tree()
    for number, line in enumerate(source.text.split("\n"), 1):
        plain = line.partition("#")[0]
        pairs = {key.lower(): (value, m.start(2) + 1) for m in _PAIR.finditer(plain)
                 for key, value in [m.groups()]}  # fmt: skip
        if not plain.strip():
            continue
        first = next(iter(pairs), "")
        if first == "switchname":
            nodes, below = (_list(source, pairs, key, number) for key in ("nodes", "switches"))
            for name in expand(pairs[first][0], source.span(number, pairs[first][1])):
                tree.add_switch(name, nodes, below, source.span(number))
        elif first == "blockname":
            nodes = _list(source, pairs, "nodes", number)
            tree.add_block(pairs[first][0], nodes, source.span(number))
        elif first == "ringname":
            raise refusal("rings of Slurm are not known here", source.span(number))
        elif first not in ("blocksizes", "topologyparam"):
            phrase = f"{plain.strip()[:40]!r} begins with no key of a topology.conf"
            raise refusal(phrase, source.span(number))
    return _fabric(source, tree)


def _list(source: Source, pairs: dict[str, tuple[str, int]], key: str, number: int) -> list[str]:
    if key not in pairs:
        return []
    text, column = pairs[key]
    return expand(text, source.span(number, column))


def parse_yaml(source: Source) -> Fabric:
    """Return the fabric of a topology.yaml: of its entries, the default, or else the first."""
    entries = _listed(source)
    if isinstance(entries, dict):  # some versions have a key of their own above the list
        entries = next(iter(entries.values()), None) if len(entries) == 1 else [entries]
    if not isinstance(entries, list) or not all(isinstance(x, dict) for x in entries):
        raise refusal("expected a list of topologies", source.span(1))
    chosen = next((x for x in entries if x.get("cluster_default")), entries[0] if entries else {})
    tree = _Tree()
    if isinstance(chosen.get("tree"), dict):
        _read_tree(tree, chosen["tree"].get("switches"), source)
    elif isinstance(chosen.get("block"), dict):
        _read_blocks(tree, chosen["block"].get("blocks"), source)
    else:
        kinds = ", ".join(key for key in chosen if key not in ("topology", "cluster_default"))
        phrase = f"topologies of kind {kinds or 'flat'} are not known here"
        raise refusal(phrase, source.span(1), "expected tree or block")
    return _fabric(source, tree)


def _listed(source: Source) -> Any:
    """Return the list that a topology.yaml is; our reader wants a key above it."""
    body = re.sub(r"(?m)^(---|\.\.\.).*$", "", source.text)
    try:
        return parse_document(f"topologies:\n{body}", source.file, _WORDING).data["topologies"]
    except InputError as fault:
        found = fault.diagnostic
        if found.span is None or found.span.line is None:
            raise
        line = max(found.span.line - 1, 1)
        raise InputError(replace(found, span=replace(found.span, line=line))) from None


def _read_tree(tree: _Tree, switches: Any, source: Source) -> None:
    for entry in _entries(switches, "switch", source):
        at = source.find(str(entry["switch"]))
        nodes, below = (expand(str(entry.get(key) or ""), at) for key in ("nodes", "children"))
        tree.add_switch(str(entry["switch"]), nodes, below, at)


def _read_blocks(tree: _Tree, blocks: Any, source: Source) -> None:
    for entry in _entries(blocks, "block", source):
        at = source.find(str(entry["block"]))
        tree.add_block(str(entry["block"]), expand(str(entry.get("nodes") or ""), at), at)


def _entries(value: Any, key: str, source: Source) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(x, dict) and key in x for x in value):
        raise refusal(f"expected a list of entries with the key {key!r}", source.span(1))
    return value


def _fabric(source: Source, tree: _Tree) -> Fabric:
    warnings: list[Diagnostic] = []
    at = source.span(1)
    if tree.blocks and not tree.switches:
        return _blocks(source, tree)
    index = {name: i for i, name in enumerate(tree.switches)}
    cables, hosts = [], {}
    parents: dict[str, str] = {}
    for name, (nodes, below, place) in tree.switches.items():
        for node in nodes:
            if node in hosts:
                raise refusal(f"host {node!r} is on two switches", place)
            hosts[node] = Host(node, place, (HostPort("", index[name]),))
        for child in below:
            if child not in index:
                raise refusal(f"switch {child!r} is nowhere described", place)
            if child in parents or child == name:
                raise refusal(f"switch {child!r} is below two switches", place)
            parents[child] = name
            cables.append(Cable(index[child], index[name], 1, None))
    _refuse_circles(parents, tree)
    if not hosts:
        raise refusal("no switch has nodes", at)
    phrase = "Slurm's file has no bandwidth: uplinks carry all that is below them"
    note = "each host is on one switch, which stands for all rails"
    advice = "give --oversubscription where uplinks are tapered"
    warnings.append(warning("W23", phrase, at, note, advice=advice))
    told = tuple(warnings)
    return Fabric(source.file, tuple(index), tuple(cables), tuple(hosts.values()), (), told)


def _refuse_circles(parents: dict[str, str], tree: _Tree) -> None:
    safe: set[str] = set()
    for name in parents:
        way = [name]
        while way[-1] in parents and parents[way[-1]] not in safe:
            way.append(parents[way[-1]])
            if len(way) > len(parents) + 1:
                phrase = f"switch {way[-1]!r} is above itself"
                raise refusal(phrase, tree.switches[way[-1]][2])
        safe |= set(way)


def _blocks(source: Source, tree: _Tree) -> Fabric:
    hosts: dict[str, Host] = {}
    for nodes, place in tree.blocks.values():
        for node in nodes:
            if node in hosts:
                raise refusal(f"host {node!r} is in two blocks", place)
            hosts[node] = Host(node, place, (HostPort("", 0),))
    if not hosts:
        raise refusal("no block has nodes", source.span(1))
    sizes = {len(nodes) for nodes, _ in tree.blocks.values()}
    if len(sizes) > 1:
        phrase = "the blocks have different numbers of hosts"
        raise refusal(phrase, source.span(1), f"found {sorted(sizes)}", code="CS155")
    phrase = "blocks are taken for NVLink domains, joined by one switch that blocks nothing"
    found = warning("W23", phrase, source.span(1), "Slurm's file has no bandwidth")
    domains = tuple(tuple(nodes) for nodes, _ in tree.blocks.values())
    return Fabric(source.file, ("fabric",), (), tuple(hosts.values()), domains, (found,))
