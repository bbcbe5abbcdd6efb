"""The compact form: a box, how many of them, and the fabric between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology.builder import MAX_NODES, Builder
from colsynth.topology.document import Document
from colsynth.topology.joins import joined
from colsynth.topology.parameters import Parameters, Value, refuse_unused, set_parameters
from colsynth.topology.schema import Compact, Group, LinkRule

_GROUP = re.compile(r"[A-Za-z]([\w-]*[A-Za-z_-])?", re.ASCII)
_MEMBER = re.compile(r"(?P<group>.*?)(?P<index>0|[1-9]\d{0,8})", re.ASCII)

Where = str | int
Groups = dict[str, list[int]]
"""Node indices by group name, of one box or of the fabric."""


def expand(
    document: Document, form: Compact, boxes: int | None, settings: Mapping[str, str]
) -> Topology:
    """Return the topology of a compact file.

    Parameters
    ----------
    document, form
        The file, and what it says.
    boxes : int, optional
        Overrides the file's own number.
    settings : mapping
        Override declared parameters.

    Notes
    -----
    With one box there is nothing to reach outside it: NICs and the fabric are left out
    (after they have been checked). An optimum inside the box is the same with them,
    because data that leaves a NIC could only come back over another NIC.

    Raises
    ------
    InputError
        Whatever is wrong with the file or the settings, at its place.
    """
    places = {name: document.inside("parameters", name) for name in form.parameters}
    parameters = set_parameters(form.parameters, places, settings)
    number = form.boxes if boxes is None else boxes
    if number > 1 and form.fabric is None:
        raise InputError(
            Diagnostic(
                "CS119",
                f"nothing joins the {number} boxes of {form.name!r}",
                document.at("boxes"),
                help="describe the fabric under the key 'fabric'",
            )
        )
    if number > MAX_NODES:
        phrase = f"{number} boxes are too many"
        limit = f"the limit is {MAX_NODES} nodes"
        span = document.at("boxes") if boxes is None else Span("--nodes")
        raise InputError(Diagnostic("CS125", phrase, span, (limit,)))
    builder = _Expansion(document, form, parameters).run(number)
    keys = {name: document.key("parameters", name) for name in form.parameters}
    refuse_unused(form.parameters, keys, _expressions(form))
    name = " ".join((form.name, f"x{number}", *parameters.changed))
    span = document.at("box")
    if number == 1:
        builder = builder.keeping(lambda node: node.box is not None and node.kind is not Kind.NIC)
    return builder.finish(name, span, every_wire=form.wires == "all")


def _expressions(form: Compact) -> Iterator[Value]:
    """Yield everything in a file that may use parameters."""
    for part in (form.box, form.fabric):
        for group in () if part is None else part.nodes:
            yield from () if group.count is None else (group.count,)
        for rule in () if part is None else part.links:
            yield from (rule.bandwidth, rule.latency, rule.count)


@dataclass(frozen=True, slots=True)
class _Expansion:
    document: Document
    form: Compact
    parameters: Parameters

    def run(self, boxes: int) -> Builder:
        builder = Builder()
        inner = [self._add(builder, ("box",), self.form.box.nodes, box) for box in range(boxes)]
        fabric = self.form.fabric
        outer: Groups = {} if fabric is None else self._fabric(builder, fabric.nodes, inner[0])
        for groups in inner:
            for i, rule in enumerate(self.form.box.links):
                self._link(builder, ("box", "links", i), rule, groups)
        for i, rule in enumerate(() if fabric is None else fabric.links):
            self._fabric_link(builder, i, rule, inner, outer)
        return builder

    def _fabric(self, builder: Builder, nodes: Sequence[Group], box: Groups) -> Groups:
        for i, group in enumerate(nodes):
            span = self.document.at("fabric", "nodes", i, "name")
            if group.name in box:
                phrase = f"group {group.name!r} is declared in the box already"
                raise InputError(Diagnostic("CS113", phrase, span))
            if group.kind != "switch":
                span = self.document.at("fabric", "nodes", i, "kind")
                phrase = f"a {group.kind} sits in a box, only switches in the fabric"
                raise InputError(Diagnostic("CS108", phrase, span))
        return self._add(builder, ("fabric",), nodes, None)

    def _add(
        self, builder: Builder, path: tuple[Where, ...], nodes: Sequence[Group], box: int | None
    ) -> Groups:
        groups: Groups = {}
        for i, group in enumerate(nodes):
            at = self.document.at(*path, "nodes", i, "name")
            if not _GROUP.fullmatch(group.name):
                phrase = f"group name {group.name!r} must be a word that ends with a letter"
                raise InputError(Diagnostic("CS108", phrase, at, ("numbers name its nodes",)))
            if group.name in groups:
                phrase = f"group {group.name!r} is declared twice"
                raise InputError(Diagnostic("CS113", phrase, at))
            where = self.document.inside(*path, "nodes", i, "count")
            count = None if group.count is None else self.parameters.count(group.count, where)
            groups[group.name] = [
                builder.add_node(
                    Node(name, Kind(group.kind), box, tuple(sorted(set(group.capabilities)))), at
                )
                for name in _names(group.name, count, box)
            ]
        return groups

    def _fabric_link(
        self, builder: Builder, i: int, rule: LinkRule, inner: list[Groups], outer: Groups
    ) -> None:
        """Apply a rule of the fabric: once per box, or once if no box is involved."""
        path: tuple[Where, ...] = ("fabric", "links", i)
        ends = [self._select(path, key, rule, {**inner[0], **outer}) for key in ("from", "to")]
        in_fabric = [{*end} <= {x for group in outer.values() for x in group} for end in ends]
        if not any(in_fabric):
            phrase = "a link of the fabric needs an end in the fabric"
            note = "links inside a box belong under 'box'"
            raise InputError(Diagnostic("CS118", phrase, self.document.at(*path), (note,)))
        for groups in inner[:1] if all(in_fabric) else inner:
            self._link(builder, path, rule, {**groups, **outer})

    def _link(
        self, builder: Builder, path: tuple[Where, ...], rule: LinkRule, groups: Groups
    ) -> None:
        at = self.document.at
        sources = self._select(path, "from", rule, groups)
        targets = self._select(path, "to", rule, groups)
        inside = self.document.inside
        bandwidth = self.parameters.bandwidth(rule.bandwidth, inside(*path, "bandwidth"))
        latency = self.parameters.latency(rule.latency, inside(*path, "latency"))
        count = self.parameters.count(rule.count, inside(*path, "count"))
        one_way = rule.one_way or (rule.counts is not None and sources == targets)
        where = partial(at, *path)
        for i, j, parallel in joined(rule, len(sources), len(targets), sources == targets, where):
            link = Link(sources[i], targets[j], bandwidth * count * parallel, latency)
            builder.add_link(link, at(*path), one_way=one_way)

    def _select(
        self, path: tuple[Where, ...], key: str, rule: LinkRule, groups: Groups
    ) -> list[int]:
        """Return the node indices that `from` or `to` of a rule means."""
        selection = rule.source if key == "from" else rule.target
        if isinstance(selection, str):
            return _members(selection, groups, self.document.at(*path, key))
        spans = [self.document.at(*path, key, i) for i in range(len(selection))]
        found = [_members(word, groups, s) for word, s in zip(selection, spans, strict=True)]
        return [node for nodes in found for node in nodes]


def _names(group: str, count: int | None, box: int | None) -> Iterator[str]:
    """Yield ``gpu0.3`` for the fourth GPU of box 0, ``ib1`` for the second fabric switch."""
    stem = group if box is None else f"{group}{box}"
    if count is None:
        yield stem
    else:  # lazily: the builder stops a count that is a slip of the finger
        yield from (f"{stem}{'' if box is None else '.'}{i}" for i in range(count))


def _members(word: str, groups: Groups, span: Span) -> list[int]:
    if word in groups:
        return groups[word]
    member = _MEMBER.fullmatch(word)
    if member is not None and member["group"] in groups:
        nodes = groups[member["group"]]
        if int(member["index"]) < len(nodes):
            return [nodes[int(member["index"])]]
        note = f"group {member['group']!r} has {len(nodes)}, numbered from 0"
        raise InputError(Diagnostic("CS112", f"unknown node {word!r}", span, (note,)))
    hint = did_you_mean(word, groups)
    raise InputError(Diagnostic("CS112", f"unknown node {word!r}", span, help=hint))
