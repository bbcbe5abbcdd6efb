"""Whether a permutation of the GPUs maps the logical topology to itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from colsynth.model import Sketch, Topology

Way = tuple[int, int, Sequence[int]]


class Logical:
    """The ways that a sketch leaves, as symmetries have to keep them.

    A permutation of the ranks is a symmetry where every pair of GPUs has the same ways as its
    image (equal bandwidths and latencies, link by link), and where the pairs that share a link
    are mapped to pairs that share an equal one. So the image of a schedule is a schedule.

    Parameters
    ----------
    topology : Topology
    sketch : Sketch
    ways : sequence of (int, int, links)
        See `colsynth.sketches.logical.ways_of`.
    """

    def __init__(self, topology: Topology, sketch: Sketch, ways: Sequence[Way]) -> None:
        self.topology, self.sketch = topology, sketch
        users: dict[int, list[tuple[int, int]]] = {}
        pairs: dict[tuple[int, int], list[Any]] = {}
        for source, target, route in ways:
            pairs.setdefault((source, target), []).append(tuple(map(self._kind, route)))
            for link in route:
                users.setdefault(link, []).append((source, target))
        self._pairs = {ends: sorted(found) for ends, found in pairs.items()}
        self._users = [(link, self._kind(link), sorted(x)) for link, x in sorted(users.items())]
        self._shared = Counter((kind, tuple(found)) for _, kind, found in self._users)

    def _kind(self, link: int) -> tuple[Any, ...]:
        found = self.topology.links[link]
        return found.bandwidth, found.latency, self.topology.nodes[found.source].capabilities

    def fault(self, image: Sequence[int]) -> str | None:
        """Return why a permutation of the ranks is no symmetry; None where it is one."""
        for ends, found in self._pairs.items():
            other = image[ends[0]], image[ends[1]]
            if self._pairs.get(other) != found:
                lacks = "which is no link of the sketch" if other not in self._pairs else None
                return f"{self._told(*ends)} becomes {self._told(*other)}, " + (
                    lacks or "which is not as fast"
                )
        for link, kind, found in self._users:
            there = tuple(sorted((image[source], image[target]) for source, target in found))
            if (kind, there) not in self._shared:
                pair, other = found[0], (image[found[0][0]], image[found[0][1]])
                name = self.topology.link_name(link)
                return (
                    f"{self._told(*pair)} becomes {self._told(*other)}, which does not share its "
                    f"links as {name} is shared"
                )
        for rank, senders in enumerate(self.sketch.leave):
            if sorted(image[x] for x in senders) != sorted(self.sketch.leave[image[rank]]):
                return f"the senders for {self._name(rank)} are not those for its image"
        return None

    def _name(self, rank: int) -> str:
        return self.topology.gpu_names[rank]

    def _told(self, source: int, target: int) -> str:
        return f"{self._name(source)} -> {self._name(target)}"


def turned(offset: int, size: int, ranks: int) -> tuple[int, ...]:
    """Return the permutation that turns every block of `size` ranks by `offset`.

    Raises
    ------
    ValueError
        Blocks of that size do not divide the ranks.
    """
    if not 1 <= size <= ranks or ranks % size:
        raise ValueError(f"blocks of {size} do not divide {ranks} GPUs")
    return tuple(rank // size * size + (rank % size + offset) % size for rank in range(ranks))
