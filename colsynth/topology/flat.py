"""The flat form: every node and every link."""

from __future__ import annotations

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology.builder import Builder
from colsynth.topology.document import Document, Watch, silent
from colsynth.topology.quantities import read_bandwidth, read_latency
from colsynth.topology.schema import Flat

_OFTEN = 4096
"""Links from one report of progress to the next."""


def read_flat(document: Document, form: Flat, watch: Watch = silent) -> Topology:
    """Return the topology of a flat file; `watch` is told the link.

    Raises
    ------
    InputError
        Whatever is wrong with it, at its place.
    """
    builder = Builder()
    at = document.at
    for i, node in enumerate(form.nodes):
        capabilities = tuple(sorted(set(node.capabilities)))
        value = Node(node.name, Kind(node.kind), node.box, capabilities)
        builder.add_node(value, at("nodes", i, "name"))
    for i, link in enumerate(form.links):
        if i % _OFTEN == _OFTEN - 1:
            watch(f"link of {document.file}", i, len(form.links))
        source = builder.find(link.source, at("links", i, "from"))
        target = builder.find(link.target, at("links", i, "to"))
        bandwidth = read_bandwidth(link.bandwidth, at("links", i, "bandwidth"))
        latency = read_latency(link.latency, at("links", i, "latency"))
        value_ = Link(source, target, bandwidth * link.count, latency)
        builder.add_link(value_, at("links", i), one_way=link.one_way)
    ranks = _ranks(document, form, builder)
    return builder.finish(form.name, at("nodes"), ranks, every_wire=form.wires == "all")


def _ranks(document: Document, form: Flat, builder: Builder) -> list[int] | None:
    if form.ranks is None:
        return None
    gpus = {i: node.name for i, node in enumerate(builder.nodes) if node.kind is Kind.GPU}
    ranks: dict[int, int] = {}
    for i, name in enumerate(form.ranks):
        span = document.at("ranks", i)
        node = builder.find(name, span)
        if node not in gpus:
            hint = did_you_mean(name, gpus.values())
            raise InputError(Diagnostic("CS127", f"{name!r} is no GPU", span, help=hint))
        if node in ranks:
            first = f"it is rank {ranks[node]} already"
            raise InputError(Diagnostic("CS127", f"{name!r} is a rank twice", span, (first,)))
        ranks[node] = i
    missing = [name for node, name in gpus.items() if node not in ranks]
    if missing:
        phrase = f"GPU {missing[0]!r} is no rank"
        note = "'ranks' names every GPU once; leave it out for the order of the nodes"
        raise InputError(Diagnostic("CS127", phrase, document.at("ranks"), (note,)))
    return list(ranks)
