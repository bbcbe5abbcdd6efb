"""Which GPUs of different boxes work on the same shard: those of a rail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from colsynth.errors import InputError
from colsynth.model import Collective, Problem, Topology
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import LARGE, power_of_two, shares_may_differ
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes, connections
from colsynth.synthesis.baselines.refusals import equal_boxes, require_ways, unfit


@dataclass(frozen=True, slots=True)
class Rails:
    """The GPUs of every box, those on rails first.

    Parameters
    ----------
    boxes : tuple of tuple of int
        The ranks of each box. Those in the same place of the first `count` are a rail: ways join
        all pairs of them. Others have no part in what passes between boxes.
    count : int
        Rails.
    """

    boxes: tuple[tuple[int, ...], ...]
    count: int

    @property
    def places(self) -> int:
        """GPUs of the largest box."""
        return max(map(len, self.boxes))

    def aimed(self, problem: Problem, target: Target) -> Target:
        """Return the target of a large message where rails divide none of a usual size.

        Shards of an allreduce have to differ then, whatever the number of ranks.
        """
        divides_none = self.count != power_of_two(self.count) and shares_may_differ(problem)
        return replace(target, size=LARGE) if target.size is None and divides_none else target

    @property
    def turns(self) -> int:
        """Shards of a box that one GPU of another adds up at most."""
        return -(-self.places // self.count)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """Yield the ranks of every rail, by box."""
        return zip(*(box[: self.count] for box in self.boxes), strict=True)


def rails_of(name: str, topology: Topology, profile: Profile) -> Rails:
    """Return the rails of a topology: GPUs in the same place, or where some are not joined, others.

    Connections may pass other GPUs as far as the runtime has them (`Profile.passes_on`). Where GPUs
    in the same place are not joined, a NIC or a GPU may be missing. Each box is matched to the
    smallest one then, along the shortest ways through no third GPU, and GPUs without such ways are
    on no rail.

    Raises
    ------
    InputError
        CS312: GPUs of a box are not joined, or boxes have no rail.
    """
    boxes = topology.ranks_by_box
    require_ways(name, topology, _pairs(boxes), profile=profile)
    if len({len(box) for box in boxes}) == 1:
        across = _pairs(tuple(zip(*boxes, strict=True)))
        joined = connections(topology, profile, across)
        if all(joined.joins(*pair) for pair in across):
            return Rails(boxes, len(boxes[0]))
    ways = LoadedRoutes(topology)
    least = min(boxes, key=len)
    partners = [_matched(ways, least, box) for box in boxes]
    matched = [rank for rank in least if all(rank in found for found in partners)]
    lines = [tuple(found[rank] for found in partners) for rank in matched]
    rails = [line for line in lines if all(ways.joins(*pair) for pair in permutations(line, 2))]
    if not rails:
        raise unfit(name, topology, "no GPU of a box has a way to one of each other box")
    on_rails = {rank for rail in rails for rank in rail}
    return Rails(
        tuple(
            (*along, *(rank for rank in box if rank not in on_rails))
            for along, box in zip(zip(*rails, strict=True), boxes, strict=True)
        ),
        len(rails),
    )


def meets(problem: Problem) -> bool:
    """Return whether a GPU has shards of its own to send while sums of others change boxes."""
    return is_between(problem, Collective.REDUCE_SCATTER)


def is_between(problem: Problem, collective: Collective) -> bool:
    """Return whether a problem is a collective between several boxes."""
    return problem.collective is collective and len(problem.topology.ranks_by_box) > 1


def divides(problem: Problem, profile: Profile) -> bool:
    """Return whether each GPU may have a shard of its own in an allreduce between boxes."""
    if not is_between(problem, Collective.ALLREDUCE):
        return False
    topology = problem.topology
    try:
        require_whole("rails", topology, rails_of("rails", topology, profile))
    except InputError:
        return False
    return True


def require_whole(name: str, topology: Topology, rails: Rails) -> None:
    """Refuse rails that some GPUs are not on (CS312)."""
    equal_boxes(name, topology)
    if left := rails.boxes[0][rails.count :]:
        gpu = topology.gpu_names[left[0]]
        raise unfit(name, topology, f"{gpu} has no way to a GPU of each other box on its rail")


def _pairs(groups: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return [(a, b) for group in groups for a, b in product(group, group) if a != b]


def _matched(ways: LoadedRoutes, least: Sequence[int], box: Sequence[int]) -> dict[int, int]:
    """Return the partner in a box of each GPU of the smallest: most pairs, by shortest ways.

    Among equal ways, those between equal places are taken, or near ones.
    """
    if least == box:
        return {rank: rank for rank in box}
    import networkx as nx

    graph = nx.Graph()
    for (place, rank), (far, other) in product(enumerate(least), enumerate(box)):
        if ways.joins(rank, other) and ways.joins(other, rank):
            apart = ways.length(rank, other) * len(box) ** 2 + abs(place - far)
            graph.add_edge(rank, other, weight=-apart)
    found = nx.max_weight_matching(graph, maxcardinality=True)
    return dict(pair if pair[0] in least else pair[::-1] for pair in sorted(found))
