"""Topology <-> networkx, for notebooks and for graphs that other programs build."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology.builder import Builder
from colsynth.units import parse_bandwidth, parse_duration

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(topology: Topology) -> nx.DiGraph:
    """Return the topology as a directed graph.

    Returns
    -------
    networkx.DiGraph
        Nodes by name, in order, with ``kind``, ``box``, ``capabilities`` and, on GPUs,
        ``rank``. Edges with ``bandwidth`` (Fraction, bytes per second) and ``latency``
        (Fraction, seconds).

    Examples
    --------
    >>> from colsynth.topology import load
    >>> graph = to_networkx(load("ring:4"))
    >>> graph.edges["gpu0", "gpu1"]["bandwidth"]
    Fraction(50000000000, 1)
    """
    import networkx as nx

    graph = nx.DiGraph(name=topology.name)
    for index, node in enumerate(topology.nodes):
        known = {"kind": str(node.kind), "box": node.box, "capabilities": node.capabilities}
        rank = topology.rank_of.get(index)
        graph.add_node(node.name, **known, **({} if rank is None else {"rank": rank}))
    names = [node.name for node in topology.nodes]
    for link in topology.links:
        ends = names[link.source], names[link.target]
        graph.add_edge(*ends, bandwidth=link.bandwidth, latency=link.latency)
    return graph


def from_networkx(graph: nx.DiGraph, name: str | None = None) -> Topology:
    """Return the topology of a directed graph; each direction of a link is an edge.

    Parameters
    ----------
    graph : networkx.DiGraph
        Attributes as `to_networkx` gives them; ``box``, ``capabilities``, ``latency`` and
        ``rank`` may be left out (ranks on all GPUs or on none). Bandwidths and latencies
        may also be texts with units.
    name : str, optional
        The graph's own name unless given.

    Raises
    ------
    InputError
        CS129 for an attribute that is missing or wrong; else as for files.
    """
    builder = Builder()
    order = list(graph.nodes)
    place = {}
    for label in order:
        known = graph.nodes[label]
        kind = _kind(label, known.get("kind"))
        capabilities = tuple(sorted(known.get("capabilities", ())))
        place[label] = builder.add_node(Node(str(label), kind, known.get("box"), capabilities))
    for source, target, known in graph.edges(data=True):
        where = f"edge {source!r} -> {target!r}"
        bandwidth = _quantity(where, "bandwidth", known.get("bandwidth"), parse_bandwidth)
        latency = _quantity(where, "latency", known.get("latency", 0), parse_duration)
        if bandwidth <= 0 or latency < 0:
            raise _wrong(f"{where} needs a bandwidth above zero and no negative latency")
        link = Link(place[source], place[target], bandwidth, latency)
        builder.add_link(link, one_way=True)
    title = name or graph.graph.get("name") or "graph"
    return builder.finish(title, ranks=_ranks(graph, place))


def _kind(label: Any, kind: Any) -> Kind:
    kinds = [item.value for item in Kind]
    if kind not in kinds:
        raise _wrong(f"node {label!r} has kind {kind!r}", did_you_mean(str(kind), kinds))
    return Kind(kind)


def _quantity(where: str, what: str, value: Any, parse: Any) -> Fraction:
    try:
        exact = parse(value) if isinstance(value, str) else Fraction(value)
    except (TypeError, ValueError) as error:
        raise _wrong(f"{where} has {what} {value!r}", str(error)) from None
    return Fraction(exact)


def _ranks(graph: nx.DiGraph, place: dict[Any, int]) -> list[int] | None:
    """Return node indices by rank, None where no GPU has a rank."""
    gpus = [label for label in graph.nodes if graph.nodes[label]["kind"] == Kind.GPU]
    ranks = {label: graph.nodes[label].get("rank") for label in gpus}
    if all(rank is None for rank in ranks.values()):
        return None
    if sorted(ranks.values(), key=str) != sorted(range(len(gpus)), key=str):
        raise _wrong(f"ranks must be 0 to {len(gpus) - 1}, each on one GPU")
    return [place[label] for label in sorted(gpus, key=lambda label: ranks[label])]


def _wrong(phrase: str, advice: str | None = None) -> InputError:
    return InputError(Diagnostic("CS129", phrase, help=advice))
