"""Pass build-relays: Problem -> Forest of stars around relays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from colsynth.errors import InfeasibleError, require_least
from colsynth.model import Collective, Direction, Forest, Problem, Topology, Tree
from colsynth.model.problem import PHASES
from colsynth.runtimes.choice import Basis, Choice, Proposal
from colsynth.runtimes.selection import dividing, power_of_two
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.forests import forest_of
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.refusals import require_collective, unfit
from colsynth.synthesis.baselines.trees import edge, flow, near_tree

AUTO = "auto"

Groups = tuple[tuple[int, ...], ...]
"""Ranks in runs; a head of each serves the others."""

_RELAYS, _GROUP = "build-relays.relays", "build-relays.group"
_PARTS, _INSTANCES = "round-weights.parts", "lower-forest.instances"

_NUMBERS = (0, 4, 16)
"""Relays that are proposed beside as many as a group has GPUs, and one less."""

_MOST = 32
"""Most relays that are proposed, and most GPUs of a group in which everyone is a peer of everyone.

An allgather among 72 has 5,000 transfers, for which no runtime but MSCCL++ has threadblocks.
"""

_FEW = 4
"""Least GPUs of a group that is part of a box: fewer save hardly any peers."""

_COPIES = 4
"""Most copies that are proposed with a number of relays; later choices may raise them."""

_FINE = 5
"""Chunks of a relay, where relays are no number that divides messages.

Seven relays then have 5, 5, 5, 5, 4, 4 and 4 of 32, and none much more than a seventh.
"""


def _proposals(basis: Basis) -> Iterator[Proposal]:
    """Yield numbers of relays with sizes of groups, in one copy and in some for threadblocks."""
    problem, size = basis.problem, basis.problem.topology.size
    room = 0 if basis.profile.rounds else basis.profile.usable_threadblocks
    for group in (0, *_sizes(problem.topology)):
        near, members = group or _home(problem), group or size
        peers = members - 1 + (-(-size // members) - 1)
        copies = power_of_two(min(max(room // peers, 1), _COPIES))
        most = min(size, _MOST) if members <= _MOST else 0
        for relays in sorted(number for number in {*_NUMBERS, near - 1, near} if number <= most):
            shape = {_RELAYS: relays, _GROUP: group, _PARTS: _parts(basis, relays)}
            for number in sorted({1, copies}):
                yield ({**shape, _INSTANCES: number}, shape)


def _parts(basis: Basis, relays: int) -> str | int:
    """Return what the shares of relays add up to: ``"auto"`` if their number divides messages."""
    parts, number = basis.parts_of(1), max(relays, 1)
    return AUTO if dividing(parts, number) == number else dividing(parts, _FINE * number)


def fewer_peers(problem: Problem) -> Iterator[dict[str, int]]:
    """Yield options with which a GPU has ever fewer peers; at last only the root has any."""
    for group in _sizes(problem.topology):
        yield {_RELAYS: group, _GROUP: group}
    yield {_RELAYS: 0, _GROUP: 0}


@dataclass(frozen=True, slots=True)
class BuildRelays:
    """Give each relay its share of the message, which it sends to everyone.

    A broadcast is a scatter and an allgather at once, so every GPU sends about as much as it
    receives, in few hops (van de Geijn's broadcast; Thakur, Rabenseifner, Gropp, "Optimization of
    Collective Communication Operations in MPICH", 2005). Without relays, the root sends everything
    to everyone in one hop. A reduce is the same backwards. Pairs without a way through no third
    GPU go through as few as can be.

    Parameters
    ----------
    relays : str or int
        GPUs that the root has a way to: first others of its group, then the root itself, then GPUs
        elsewhere. 0: only the root. ``"auto"``: the group, without the root if it is all there is.
    group : str or int
        GPUs of a box that one of them serves, another for each relay: relays send to these heads
        alone, on rails between boxes. 0: relays serve everyone. ``"auto"``: the root's box, or a
        quarter of a large one; 0 where that is everyone.
    """

    relays: Literal["auto"] | int = "auto"
    group: Literal["auto"] | int = "auto"

    name: ClassVar[str] = "build-relays"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("relays", propose=_proposals),)

    def __post_init__(self) -> None:
        for name, value in (("relays", self.relays), ("group", self.group)):
            if isinstance(value, int):
                require_least(name, value, 0)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return one tree per relay.

        Raises
        ------
        InputError
            CS311: relays do not serve the collective. CS312: a relay, or the heads of groups, reach
            the others only through the root or through GPUs of other groups.
        """
        require_collective("relays", value, (Collective.BROADCAST, Collective.REDUCE))
        (root,), (direction,) = value.roots, PHASES[value.collective]
        number, size = _shape(value, self.relays, self.group)
        groups = _groups(value.topology, size)
        ways = LoadedRoutes(value.topology)
        relays = _relays(ways, root, direction, groups)[:number] or [root]
        try:
            trees = tuple(_tree(ways, root, relay, direction, groups) for relay in relays)
        except InfeasibleError as refusal:
            reason = f"relays={number} group={size}: not all ways lead past the root"
            note = "a relay reaches heads of groups, and a head its group, without other GPUs"
            raise unfit("relays", value.topology, reason, note) from refusal
        return forest_of(value, {direction: trees})


def _home(problem: Problem) -> int:
    """Return the number of GPUs in the root's box."""
    (root,) = problem.roots
    return next(len(ranks) for ranks in problem.topology.ranks_by_box if root in ranks)


def _sizes(topology: Topology) -> list[int]:
    """Return sizes of groups, the largest first: that of boxes, a quarter and an eighth of it."""
    boxes = topology.ranks_by_box
    most = max(map(len, boxes))
    found = dict.fromkeys((most, most // 4, most // 8))
    return [size for size in found if size < topology.size and (size == most or size >= _FEW)]


def _shape(problem: Problem, relays: Any, group: Any) -> tuple[int, int]:
    """Return the number of relays and the size of groups, ``"auto"`` resolved."""
    home, size = _home(problem), problem.topology.size
    if group == AUTO:
        part = home // 4 if home > _MOST else home
        group = part if part < size else 0
    if relays == AUTO:
        relays = group or size - 1
    return relays, group


def _groups(topology: Topology, size: int) -> Groups:
    """Return the ranks of every box in runs of a size; all ranks as one for 0."""
    if not size:
        return (tuple(range(topology.size)),)
    boxes = topology.ranks_by_box
    return tuple(box[at : at + size] for box in boxes for at in range(0, len(box), size))


def _relays(ways: LoadedRoutes, root: int, direction: Direction, groups: Groups) -> list[int]:
    """Return the ranks that may be relays, in order of preference."""
    size = ways.topology.size
    home = next(group for group in groups if root in group)
    around = [(root + step) % size for step in range(1, size)]
    near = [rank for rank in around if rank in home]
    far = [rank for rank in around if rank not in home]
    order = (*near, root, *far)
    return [r for r in order if r == root or ways.joins(*flow(root, r, direction))]


def _tree(ways: LoadedRoutes, root: int, relay: int, direction: Direction, groups: Groups) -> Tree:
    """Return the tree of a relay: to it, to the heads of groups, and inside each.

    The root serves its group if the relay is elsewhere.
    """
    edges = [] if relay == root else [edge(ways, root, relay, direction)]
    place = next(group.index(relay) for group in groups if relay in group)
    heads = [
        relay if relay in group else root if root in group else group[place % len(group)]
        for group in groups
    ]
    far = [head for head in heads if head != root]
    edges += near_tree(ways, relay, direction, far).edges
    for group, head in zip(groups, heads, strict=True):
        rest = [rank for rank in group if rank != root]
        edges += near_tree(ways, head, direction, rest).edges
    return Tree(root, 1, tuple(edges))
