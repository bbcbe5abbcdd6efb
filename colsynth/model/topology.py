"""A cluster as a directed graph of GPUs, NICs and switches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property


class Kind(StrEnum):
    """What a node is. Only GPUs hold data; NICs and switches forward it."""

    GPU = "gpu"
    SWITCH = "switch"
    NIC = "nic"


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex of the topology.

    Parameters
    ----------
    name : str
        Unique within the topology.
    kind : Kind
    box : int or None
        The chassis the node sits in; None for the fabric between boxes.
    capabilities : tuple of str
        Of a switch: ``"multicast"``, sending what it receives once on several links;
        ``"reduce"``, adding up what it receives on several. Of a switch or a NIC:
        ``"store-and-forward"``, sending a chunk on only when all of it is there.
    """

    name: str
    kind: Kind
    box: int | None = None
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link; at most one joins a given ordered pair of nodes.

    Parameters
    ----------
    source, target : int
        Indices into `Topology.nodes`.
    bandwidth : Fraction
        Bytes per second, above zero.
    latency : Fraction
        Seconds, zero or more.
    """

    source: int
    target: int
    bandwidth: Fraction
    latency: Fraction = Fraction(0)

    @property
    def ends(self) -> tuple[int, int]:
        """Source and target."""
        return self.source, self.target


@dataclass(frozen=True)
class Topology:
    """Nodes, links, and the order of the ranks.

    Parameters
    ----------
    name : str
        What messages and JSON call it, such as ``"dgx-a100 x2"``.
    nodes : tuple of Node
    links : tuple of Link
        Sorted by (source, target).
    ranks : tuple of int
        Node index of rank 0, 1, ...; every GPU exactly once.
    notes : tuple of str
        What was concluded about it and its user should know; no part of what it is.
    whole : Topology or None
        The same as its file describes it, with slower wires that were left out and parallel
        switches apart; no part of what it is.
    """

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    ranks: tuple[int, ...]
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    whole: Topology | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @cached_property
    def rank_of(self) -> dict[int, int]:
        """Rank of each GPU's node index."""
        return {node: rank for rank, node in enumerate(self.ranks)}

    @cached_property
    def gpu_names(self) -> tuple[str, ...]:
        """Name of each rank's GPU."""
        return tuple(self.nodes[node].name for node in self.ranks)

    @cached_property
    def gpu_boxes(self) -> tuple[int, ...]:
        """Box of each rank's GPU; -1 where it is in none."""
        boxes = (self.nodes[node].box for node in self.ranks)
        return tuple(-1 if box is None else box for box in boxes)

    @cached_property
    def ranks_by_box(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of every box; GPUs outside all boxes come last, as one."""
        found: dict[int, list[int]] = {}
        for rank, box in enumerate(self.gpu_boxes):
            found.setdefault(box, []).append(rank)
        return tuple(tuple(found[box]) for box in sorted(found, key=lambda box: (box == -1, box)))

    @cached_property
    def link_between(self) -> dict[tuple[int, int], int]:
        """Index of the link from one node index to another."""
        return {link.ends: i for i, link in enumerate(self.links)}

    @cached_property
    def boxes(self) -> tuple[int, ...]:
        """The distinct boxes that hold GPUs, ascending."""
        found = {self.nodes[node].box for node in self.ranks}
        return tuple(sorted(box for box in found if box is not None))

    @cached_property
    def network(self) -> frozenset[int]:
        """The links that end at a NIC, leave their box, or join switches of the fabric."""
        near = self._near()
        return frozenset(
            index
            for index, link in enumerate(self.links)
            if self.nodes[link.source].box != self.nodes[link.target].box
            or not near.issuperset(link.ends)
        )

    def _near(self) -> set[int]:
        """Return the nodes that a GPU of their box reaches inside it without NICs."""
        beside: dict[int, list[int]] = {}
        for link in self.links:
            ends = self.nodes[link.source], self.nodes[link.target]
            if ends[0].box == ends[1].box and all(end.kind is not Kind.NIC for end in ends):
                beside.setdefault(link.source, []).append(link.target)
                beside.setdefault(link.target, []).append(link.source)
        found = set(self.ranks)
        waiting = list(found)
        while waiting:
            fresh = set(beside.get(waiting.pop(), ())) - found
            found |= fresh
            waiting += fresh
        return found

    @property
    def is_direct(self) -> bool:
        """Whether every link leads from a GPU to a GPU."""
        return len(self.nodes) == self.size

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every link has a reverse link of the same bandwidth."""
        reverse = self.link_between
        return all(
            (link.target, link.source) in reverse
            and self.links[reverse[link.target, link.source]].bandwidth == link.bandwidth
            for link in self.links
        )

    def reversed(self) -> Topology:
        """Return the topology with every link turned around."""
        turned = (replace(x, source=x.target, target=x.source) for x in self.links)
        links = tuple(sorted(turned, key=lambda link: link.ends))
        return replace(self, links=links, whole=None)

    def link_name(self, index: int) -> str:
        """Return ``"source -> target"`` with the names of the nodes."""
        link = self.links[index]
        return f"{self.nodes[link.source].name} -> {self.nodes[link.target].name}"
