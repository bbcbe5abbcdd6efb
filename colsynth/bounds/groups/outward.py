"""Cuts and bounds found on a group's own machine, told of the whole one."""

from __future__ import annotations

from dataclasses import replace

from colsynth.model import Bound, Cut, FlowBound, Limit, RootedBound, Topology
from colsynth.topology.communicator import Communicator


class Outward:
    """Cuts and bounds of one group.

    Parameters
    ----------
    whole : Topology
    group : Communicator
    """

    def __init__(self, whole: Topology, group: Communicator) -> None:
        self._whole, self._group = whole, group

    def cut(self, cut: Cut) -> Cut:
        """Return a cut; its GPUs are all that are inside, relays too."""
        nodes = self._nodes(cut.nodes)
        gpus = (rank for rank, node in enumerate(self._whole.ranks) if node in set(nodes))
        links = tuple(self._group.links[i] for i in cut.links)
        return replace(cut, nodes=nodes, gpus=tuple(gpus), links=links)

    def bound(self, found: Bound) -> Bound:
        """Return the bound of trees."""
        return replace(found, cuts=tuple(self.cut(cut) for cut in found.cuts))

    def flow_bound(self, found: FlowBound) -> FlowBound:
        """Return the bound of a collective of pairs."""
        prices: tuple[int, ...] = ()
        if found.prices:
            of_link = dict(zip(self._group.links, found.prices, strict=True))
            prices = tuple(of_link.get(i, 0) for i in range(len(self._whole.links)))
        return replace(found, cut=self.cut(found.cut), prices=prices)

    def rooted(self, found: RootedBound, *, in_network: bool) -> RootedBound:
        """Return the bound of an allreduce with free roots."""
        cuts = tuple(replace(cut, nodes=self._nodes(cut.nodes)) for cut in found.cuts)
        refunds = tuple((way, self._group.nodes[v], value) for way, v, value in found.potentials)
        return replace(found, cuts=cuts, potentials=refunds, in_network=in_network)

    def limit(self, found: Limit) -> Limit:
        """Return the bound of any allreduce."""
        return replace(found, parts=tuple(self._nodes(part) for part in found.parts))

    def _nodes(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self._group.nodes[node] for node in nodes)
