"""Nodes and links, added one by one and checked, become a Topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology.boxes import infer_boxes
from colsynth.topology.nics import require_one_port
from colsynth.topology.reach import reached
from colsynth.topology.trunks import as_used
from colsynth.topology.wires import EVERY_WIRE, choose_wires

MAX_NODES = 2**17
MAX_LINKS = 2**22
"""Beyond these sizes an input is taken for a slip of the finger, not for a machine."""

_OF_NICS = ("store-and-forward",)
"""Capabilities that NICs can have; those of switches are the schema's."""


class Builder:
    """Collects a topology and refuses what makes no sense, at the place that said it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._spans: list[Span | None] = []
        self._index: dict[str, int] = {}
        self._links: dict[tuple[int, int], tuple[Link, Span | None]] = {}
        self._implied: set[tuple[int, int]] = set()

    def add_node(self, node: Node, span: Span | None = None) -> int:
        """Add a node and return its index.

        Raises
        ------
        InputError
            The name is taken or unprintable, or a GPU or NIC claims what only others can.
        """
        if not node.name.isprintable() or node.name != node.name.strip():
            raise _error("CS108", f"node name {node.name!r} is not plain printable text", span)
        if node.name in self._index:
            first = self._spans[self._index[node.name]]
            notes = () if first is None else (f"first declared at {first}",)
            raise _error("CS113", f"node {node.name!r} is declared twice", span, notes)
        self._check_capabilities(node, span)
        if len(self.nodes) == MAX_NODES:
            raise _error("CS125", f"more than {MAX_NODES} nodes", span)
        self._index[node.name] = len(self.nodes)
        self.nodes.append(node)
        self._spans.append(span)
        return len(self.nodes) - 1

    @staticmethod
    def _check_capabilities(node: Node, span: Span | None) -> None:
        beyond = [word for word in node.capabilities if word not in _OF_NICS]
        if node.kind is Kind.GPU and node.capabilities:
            raise _error(
                "CS108", f"only switches and NICs have capabilities, not {node.name!r}", span
            )
        if node.kind is Kind.NIC and beyond:
            phrase = f"only switches can {beyond[0]}, not NIC {node.name!r}"
            raise _error("CS108", phrase, span, (f"a NIC can have {', '.join(_OF_NICS)}",))

    def find(self, name: str, span: Span | None) -> int:
        """Return the index of a node by name.

        Raises
        ------
        InputError
            No node has this name.
        """
        if name not in self._index:
            raise _error(
                "CS112", f"unknown node {name!r}", span, hint=did_you_mean(name, self._index)
            )
        return self._index[name]

    def add_link(self, link: Link, span: Span | None = None, *, one_way: bool = False) -> None:
        """Add a link, and its reverse unless it is one-way.

        Raises
        ------
        InputError
            The link is there already, or ends where it starts.
        """
        if link.source == link.target:
            name = self.nodes[link.source].name
            raise _error("CS115", f"node {name!r} is linked to itself", span)
        self._put(link, span)
        if not one_way:
            back = Link(link.target, link.source, link.bandwidth, link.latency)
            self._put(back, span, implied=True)
            self._implied.add((link.target, link.source))

    def _put(self, link: Link, span: Span | None, *, implied: bool = False) -> None:
        pair = link.ends
        if pair in self._links:
            first = self._links[pair][1]
            names = " -> ".join(repr(self.nodes[end].name) for end in pair)
            hint = "give equal parallel links a count; of two kinds of wire, keep the faster"
            if implied != (pair in self._implied):  # the entries are of opposite directions
                hint = "an entry goes both ways: keep one, or give both 'one-way: true'"
            notes = () if first is None else (f"first given at {first}",)
            raise _error("CS114", f"link {names} is given twice", span, notes, hint)
        if len(self._links) == MAX_LINKS:
            raise _error("CS125", f"more than {MAX_LINKS} links", span)
        self._links[pair] = (link, span)

    def keeping(self, keep: Callable[[Node], bool]) -> Builder:
        """Return a builder that holds only some nodes, and the links among them."""
        kept = Builder()
        places = {
            i: kept.add_node(node, self._spans[i])
            for i, node in enumerate(self.nodes)
            if keep(node)
        }
        for (source, target), (link, span) in self._links.items():
            if source in places and target in places:
                moved = replace(link, source=places[source], target=places[target])
                kept.add_link(moved, span, one_way=True)
        return kept

    def finish(
        self,
        name: str,
        span: Span | None = None,
        ranks: Iterable[int] | None = None,
        *,
        every_wire: bool = False,
    ) -> Topology:
        """Return the topology.

        Parameters
        ----------
        name : str
        span : Span, optional
            Where the whole topology is described.
        ranks : iterable of int, optional
            Node indices of the GPUs; in the order of the nodes when left out.
        every_wire : bool
            Whether slower wires between GPUs stay beside faster ones of another kind, and parallel
            switches apart.

        Raises
        ------
        InputError
            Fewer than two GPUs, a GPU that another one cannot reach, GPUs without a box that may
            be in one or in two, or a NIC between networks.
        """
        gpus = [i for i, node in enumerate(self.nodes) if node.kind is Kind.GPU]
        if len(gpus) < 2:
            found = "one" if gpus else "none"
            raise _error("CS117", "a collective needs two GPUs or more", span, (f"found {found}",))
        links = tuple(link for _, (link, _) in sorted(self._links.items(), key=lambda x: x[0]))
        order = tuple(gpus if ranks is None else ranks)
        topology = Topology(name, tuple(self.nodes), links, order)
        self._check_reach(topology, span)
        topology = infer_boxes(topology, self._spans)
        require_one_port(topology, self._spans)
        if not every_wire:
            return as_used(topology)
        if choose_wires(topology) is topology:
            return topology
        return replace(topology, notes=(*topology.notes, EVERY_WIRE))

    def _check_reach(self, topology: Topology, span: Span | None) -> None:
        first = topology.ranks[0]
        onwards = reached(first, topology.link_between)
        back = reached(first, ((x.target, x.source) for x in topology.links))
        for gpu in topology.ranks:
            if gpu in onwards and gpu in back:
                continue
            source, target = (first, gpu) if gpu not in onwards else (gpu, first)
            raise _error(
                "CS116",
                f"GPU {self.nodes[target].name!r} cannot be reached from "
                f"GPU {self.nodes[source].name!r}",
                self._spans[gpu] or span,
                ("every GPU must reach every other over links, switches and other GPUs",),
                "add the missing link, or check the direction of one-way links",
            )


def _error(
    code: str,
    phrase: str,
    span: Span | None,
    notes: tuple[str, ...] = (),
    hint: str | None = None,
) -> InputError:
    return InputError(Diagnostic(code, phrase, span, notes, hint))
