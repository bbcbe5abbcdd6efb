"""Pass build-ring: Problem -> Forest of rings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from colsynth.cost import model_of
from colsynth.errors import require_least
from colsynth.model import Direction, Forest, Problem, Tree, TreeEdge
from colsynth.model.problem import PHASES
from colsynth.runtimes.choice import Basis, Choice, Proposal
from colsynth.runtimes.selection import dividing
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.channel_rate import channel_rate, most_rings, require_channels
from colsynth.synthesis.baselines.forests import forest_of
from colsynth.synthesis.baselines.refusals import require_collective, unfit
from colsynth.synthesis.baselines.rings import Ring, find_rings
from colsynth.synthesis.baselines.unequal import spread

_MOST = 2
"""Chunks of a GPU on a ring where shares differ, but for one GPU of each ring, which has fewer.

FIFOs must hold so many calls. If all were full, every GPU would wait for the next one to take
something, and for the one before it, in one step: nothing would move.
"""


_NUMBERS = (0, 1, 2, 4, 8, 16)
"""Of rings; 0 takes as many as fill the links."""


def _numbers(basis: Basis) -> Iterator[Proposal]:
    """Yield the most rings, where they share sums, and where everything is tried, all numbers."""
    name = "build-ring.channels"
    if basis.thorough or basis.shape.rises:
        for number in _NUMBERS if basis.thorough else _NUMBERS[-1:]:
            if number != basis.values[name]:
                yield ({name: number},)


@dataclass(frozen=True, slots=True)
class BuildRing:
    """Send everything around rings of all GPUs.

    Rings lead through each box along its least busy ways and from box to box in their order,
    each through other NICs than those before it: the rings of NCCL (Patarasuk and Yuan 2009).
    A root's shard walks all of each ring, a part of it on every one. Where ranks do not divide the
    message of an allreduce that the program is for, these parts differ by a chunk.

    Parameters
    ----------
    channels : int
        Number of rings, each a channel; 0 takes as many as fill the links, given what a
        threadblock can move.
    """

    channels: int = 0

    name: ClassVar[str] = "build-ring"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    choices: ClassVar[tuple[Choice, ...]] = (Choice("channels", propose=_numbers),)

    def __post_init__(self) -> None:
        require_least("channels", self.channels, 0)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return one path per root and ring.

        Raises
        ------
        InputError
            CS311: rings do not serve the collective. CS312: no ring was found.
        LimitError
            CS402: the runtime has fewer channels.
        """
        require_collective("ring", value, tuple(PHASES))
        profile, size, phases = target.profile, value.topology.size, PHASES[value.collective]
        require_channels(self.channels, profile)
        most, crowded = most_rings(profile, size, len(phases))
        # Steps of several chunks may wait for each other in a circle, so shares differ only where
        # files have no room for as many rings as would be equal.
        chunks = (profile.max_offset + 1) // size if crowded else 1
        rate, parts = channel_rate(target), target.parts(value, len(value.roots))
        short = profile.fifo_calls[target.protocol] < _MOST
        loose = 0 if short else target.loose_parts(value, len(value.roots))
        wanted = None if loose else parts
        rings = find_rings(value.topology, self.channels, rate, most, chunks, wanted)
        if not rings:
            note = "every GPU must have a way to the next one through no third"
            raise unfit("ring", value.topology, "no ring through all GPUs was found", note)
        shares = [(share,) * size for _, share in rings]
        if loose:
            room = min(profile.max_offset + 1, (_MOST * size - 1) * len(rings))
            whole = dividing(loose, room, size)
            rings = rings[: max(1, whole // size)]
            shares = spread(whole, len(rings), size)
        known = [ring for ring, _ in rings]
        grown = {way: tuple(_paths(known, shares, value.roots, way)) for way in phases}
        return forest_of(value, grown)


def _paths(
    rings: Sequence[Ring],
    shares: Sequence[Sequence[int]],
    roots: Sequence[int],
    direction: Direction,
) -> Iterator[Tree]:
    """Yield every ring as a path from each root; data takes it in the same sense either way.

    The paths of a ring share its edges.
    """
    known = [_edges(ring, direction) for ring in rings]
    for root in roots:
        for ring, share, edges in zip(rings, shares, known, strict=True):
            place = ring.ranks.index(root)
            whole = edges[place:] + edges[:place]
            if direction is Direction.IN:
                whole.reverse()
            yield Tree(root, share[place], tuple(whole[:-1]))  # the last edge leads back


def _edges(ring: Ring, direction: Direction) -> list[TreeEdge]:
    """Return the edge from each rank of a ring to the next one, from parent to child."""
    pairs = zip(ring.ranks, (*ring.ranks[1:], *ring.ranks[:1]), ring.routes, strict=True)
    if direction is Direction.OUT:
        return [TreeEdge(here, after, route) for here, after, route in pairs]
    return [TreeEdge(after, here, route) for here, after, route in pairs]


def least_seconds(problem: Problem, target: Target, sizes: Sequence[int]) -> list[float]:
    """Return seconds that the program takes at least, for messages of these sizes in bytes.

    However small they are, all ranks of a ring send them on, one after the other.
    """
    model, protocol = model_of(target), target.protocol
    hops = len(PHASES.get(problem.collective, ())) * (len(problem.members[0]) - 1)
    each = model.step[protocol] + min(model.hop[protocol], model.network_hop[protocol])
    return [(model.launch[protocol] + hops * each) / 1e6] * len(sizes)
