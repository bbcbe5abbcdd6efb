"""What a direct-connect fabric is as a graph: ports, diameter, girth, symmetry, Moore bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colsynth.kernels.shortest import distances
from colsynth.model import Topology
from colsynth.topology.graphs.digraph import Ints
from colsynth.topology.graphs.moore import moore_steps
from colsynth.topology.graphs.symmetry import is_transitive

_MOST_WORK = 2**26
"""GPUs times links up to which facts are worked out: 2048 GPUs with 16 links each."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures of the graph of a direct-connect fabric.

    Parameters
    ----------
    ports : int
        Most links that leave or enter a GPU.
    least_ports : int
        Fewest.
    duplex : bool
        Whether every link has a reverse.
    diameter : int
    girth : int or None
        Links of a shortest cycle; in a duplex fabric, of one that takes no cable twice. None
        without a cycle.
    transitive : bool or None
        Whether every GPU looks like every other; None if this was too much work to find out.
    moore : int
        Least diameter of any graph with so many GPUs and ports.
    """

    ports: int
    least_ports: int
    duplex: bool
    diameter: int
    girth: int | None
    transitive: bool | None
    moore: int

    def __str__(self) -> str:
        ports = (
            f"{self.ports}"
            if self.ports == self.least_ports
            else f"{self.least_ports} to {self.ports}"
        )
        looks = {
            True: "vertex-transitive",
            False: "not vertex-transitive",
            None: "symmetry unknown",
        }
        return (
            f"{'duplex' if self.duplex else 'simplex'} fabric: {ports} ports, diameter "
            f"{self.diameter} (Moore bound {self.moore}), girth {self.girth or 'none'}, "
            f"{looks[self.transitive]}"
        )


def facts_of(topology: Topology) -> Facts | None:
    """Return the facts of a fabric of GPUs alone; None with switches, or if it is too large."""
    size, links = topology.size, topology.links
    if not topology.is_direct:
        return None
    if size * len(links) > _MOST_WORK:
        return None
    rank = topology.rank_of
    tail = np.array([rank[link.source] for link in links], np.int64)
    head = np.array([rank[link.target] for link in links], np.int64)
    rates = {bandwidth: i for i, bandwidth in enumerate(dict.fromkeys(x.bandwidth for x in links))}
    kind = np.array([rates[link.bandwidth] for link in links], np.int64)
    order = np.argsort(head, kind="stable")
    entering, leaving = np.bincount(head, minlength=size), np.bincount(tail, minlength=size)
    first = np.concatenate(([0], np.cumsum(entering))).astype(np.int64)
    distance = distances(first, tail[order], np.arange(size))
    ports = int(max(entering.max(), leaving.max()))
    duplex = topology.is_symmetric
    return Facts(
        ports,
        int(min(entering.min(), leaving.min())),
        duplex,
        int(distance.max()),
        _girth(distance, tail, head, duplex=duplex),
        is_transitive(distance, tail, head, kind),
        moore_steps(size, ports, duplex=duplex),
    )


def _girth(distance: Ints, tail: Ints, head: Ints, *, duplex: bool) -> int | None:
    """Return the links of a shortest cycle, from distances and arcs."""
    if not duplex:  # an arc, and the way back
        return int(distance[tail, head].min()) + 1
    found = [len(distance) * 2]
    for row in distance:
        even, odd = row[tail] + 1 == row[head], row[tail] == row[head]
        if odd.any():
            found.append(2 * int(row[tail][odd].min()) + 1)
        twice = np.bincount(head[even], minlength=len(row)) > 1
        if twice.any():
            found.append(2 * int(row[twice].min()))
    return min(found) if min(found) < len(distance) * 2 else None
