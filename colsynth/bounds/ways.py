"""What messages between GPUs pass, and what happens if all are sent directly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from colsynth.cost import Model
from colsynth.cost.usable import speed_of
from colsynth.model import Kind, Problem
from colsynth.topology.reach import Lengths, lengths

_FAR = float("inf")
_MOST_MESH = 256
"""GPUs of a box of which all ways are measured: 0.1 s, and ten times that for 1024."""


@dataclass(frozen=True)
class Ways:
    """The links of a problem; seconds and bytes per second as the model counts them.

    Parameters
    ----------
    problem : Problem
    model : Model
    """

    problem: Problem
    model: Model

    @cached_property
    def _latencies(self) -> tuple[Lengths, Lengths]:
        """The least latency of links between two nodes, as they point and turned around."""
        there: dict[int, dict[int, Fraction | int]] = {}
        back: dict[int, dict[int, Fraction | int]] = {}
        for link in self.problem.topology.links:
            least = min(there.get(link.source, {}).get(link.target, link.latency), link.latency)
            there.setdefault(link.source, {})[link.target] = least
            back.setdefault(link.target, {})[link.source] = least
        return there, back

    @cached_property
    def speed(self) -> tuple[float, ...]:
        """Bytes per second of every link, at the share that protocols of the wire leave."""
        topology = self.problem.topology
        return tuple(speed_of(topology, link, self.model) for link in range(len(topology.links)))

    @cached_property
    def _ends(self) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Seconds from the nearest GPU to each node, and from each node to the nearest GPU."""
        gpus = set(self.problem.topology.ranks)
        return self._lengths(gpus), self._lengths(gpus, back=True)

    def _lengths(self, sources: set[int], *, back: bool = False) -> Mapping[int, float]:
        found = lengths(sources, self._latencies[back])
        return {node: float(length) for node, length in found.items()}

    def through(self, links: Iterable[int]) -> float:
        """Return the least latency of a way from GPU to GPU over one of some links."""
        there, back = self._ends
        rows = (self.problem.topology.links[index] for index in links)
        return min(
            (
                there.get(link.source, _FAR) + float(link.latency) + back.get(link.target, _FAR)
                for link in rows
            ),
            default=0.0,
        )

    @cached_property
    def near(self) -> float:
        """The least latency between two GPUs."""
        topology, gpus = self.problem.topology, set(self.problem.topology.ranks)
        return self.through(i for i, link in enumerate(topology.links) if link.source in gpus)

    @cached_property
    def border(self) -> tuple[int, ...]:
        """The links that enter the box of the first GPU."""
        nodes, links = self.problem.topology.nodes, self.problem.topology.links
        home = nodes[self.problem.topology.ranks[0]].box
        return tuple(
            index
            for index, link in enumerate(links)
            if nodes[link.target].box == home != nodes[link.source].box
        )

    @cached_property
    def home(self) -> tuple[int, ...]:
        """The GPUs, as nodes, of the box of the first one."""
        nodes, ranks = self.problem.topology.nodes, self.problem.topology.ranks
        return tuple(node for node in ranks if nodes[node].box == nodes[ranks[0]].box)

    # If every GPU sends to each other one directly, seconds per byte that it sends to each

    @cached_property
    def entries(self) -> tuple[float, ...]:
        """Bytes per second that enter each GPU."""
        into = dict.fromkeys(self.problem.topology.ranks, 0.0)
        for link, speed in zip(self.problem.topology.links, self.speed, strict=True):
            if link.target in into:
                into[link.target] += speed
        return tuple(into.values())

    @cached_property
    def entry(self) -> float:
        """Bytes per second that enter the GPU with the least."""
        return min(self.entries)

    @cached_property
    def crowd(self) -> float:
        """Seconds per byte, of links into a GPU, or of those within a box of direct links."""
        return max((self.problem.topology.size - 1) / self.entry, self._mesh())

    @cached_property
    def entrance(self) -> float:
        """Seconds per byte that enters the box of the first GPU."""
        return 1 / sum(self.speed[index] for index in self.border)

    @cached_property
    def crowd_across(self) -> float:
        """Seconds per byte, of links into a box from others."""
        inside = len(self.home)
        return inside * (self.problem.topology.size - inside) * self.entrance

    @cached_property
    def lines_across(self) -> float:
        """Seconds per byte, likewise, where one GPU of each pair sends to, or hears of, all."""
        inside = len(self.home)
        return min(inside, self.problem.topology.size - inside) * self.entrance

    def _mesh(self) -> float:
        """Return the seconds per byte of all links within a box together.

        Each pair uses as many as the shortest way has. Leaving the box and coming back has the
        price of the longest of these, half on the links that leave and half on those that enter.
        """
        topology = self.problem.topology
        nodes, home = topology.nodes, self.home
        box = nodes[home[0]].box
        inner = {i for i, x in enumerate(nodes) if x.box == box and x.kind is not Kind.NIC}
        hops = {
            node: dict.fromkeys((after for after in ends if after in inner), 1)
            for node, ends in self._latencies[0].items()
            if node in inner
        }
        first = lengths(home[:1], hops)
        if len(home) > _MOST_MESH or len({first.get(node) for node in home[1:]}) < 2:
            return 0.0  # too many, or equally far from each other: links into a GPU prove as much
        ways = [lengths([node], hops) for node in home]
        if any(node not in way for way in ways for node in home):
            return 0.0
        most = max(way[node] for way in ways for node in home)
        room = 0.0
        for link, speed in zip(topology.links, self.speed, strict=True):
            ends = (link.source in inner) + (link.target in inner)
            room += speed * (0.0, most / 2, 1.0)[ends]
        return float(sum(way[node] for way in ways for node in home)) / room
