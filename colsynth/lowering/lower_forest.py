"""Pass lower-forest: Forest -> ChunkProgram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar

from colsynth.errors import Diagnostic, LimitError, require_least
from colsynth.lowering.copies import copies
from colsynth.lowering.refusals import over_limit
from colsynth.model import ChunkProgram, Direction, Forest, Origin, Phase, Transfer, Tree
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class LowerForest:
    """Turn every tree edge into a transfer of the tree's chunks.

    A tree of weight w carries w adjacent chunks of its root's shard. OUT phases copy from
    parent to child, IN phases reduce from child to parent; a later phase starts at a root
    once everything the earlier one sends there has arrived.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of every shard.
    apart : bool
        Whether the first trees of all roots, the second ones and so on have channels of
        their own, as parallel copies do.
    abreast : bool
        Whether all trees advance level by level, an order that later passes keep.
    fill : bool
        Whether one copy becomes several where threadblocks need them to fill the links.
    """

    instances: int = 1
    apart: bool = False
    abreast: bool = False
    fill: bool = False

    name: ClassVar[str] = "lower-forest"
    takes: ClassVar[type] = Forest
    gives: ClassVar[type] = ChunkProgram

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 1)

    def run(self, value: Forest, target: Target) -> ChunkProgram:
        """Return the transfers of a forest, phase by phase, level by level.

        Raises
        ------
        LimitError
            CS402: more chunks than the runtime can count; CS323: trees branch at switches.
        """
        if value.in_network:
            raise _unspeakable(target.profile.name)
        if self.fill and self.instances == 1:
            return replace(self, instances=copies(value, target), fill=False).run(value, target)
        chunks = value.chunks * self.instances
        most = target.profile.max_offset + 1
        if chunks > most:
            raise over_limit("chunks per buffer", chunks, most, target.profile)
        transfers: list[Transfer] = []
        arrived: dict[tuple[int, int], list[int]] = {}
        for number, phase in enumerate(value.phases):
            ready, arrived = arrived, {}
            for piece in self._pieces(value, phase, number, target.profile.max_count):
                _lower_tree(piece, transfers, ready, arrived)
        order = _by_level(transfers)
        return ChunkProgram(value.problem, chunks, order, ordered=self.abreast)

    def _pieces(self, forest: Forest, phase: Phase, number: int, most: int) -> Iterator[_Piece]:
        """Yield every tree with its chunks, at most `most` chunks at a time."""
        weight = dict(zip(forest.problem.roots, forest.weights, strict=True))
        before = accumulate(weight.values(), initial=0)
        first = {root: at * self.instances for root, at in zip(weight, before, strict=False)}
        for instance in range(self.instances):
            used = {root: instance * held for root, held in weight.items()}
            for tree_id, tree in enumerate(phase.trees):
                place = used[tree.root]
                used[tree.root] += tree.weight
                lane = place if self.apart else instance
                for done in range(0, tree.weight, most):
                    origin = Origin(number, phase.direction, tree_id, lane)
                    chunk = first[tree.root] + place + done
                    yield _Piece(tree, origin, chunk, min(most, tree.weight - done))


def _unspeakable(runtime: str) -> LimitError:
    phrase = f"a file for {runtime} cannot say that a switch multicasts or reduces"
    note = "its steps send from GPU to GPU"
    advice = "-a forest packs trees for switches that only forward"
    return LimitError(Diagnostic("CS323", phrase, notes=(note,), help=advice))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A tree with the adjacent chunks it carries."""

    tree: Tree
    origin: Origin
    chunk: int
    count: int


def _lower_tree(
    piece: _Piece,
    transfers: list[Transfer],
    ready: dict[tuple[int, int], list[int]],
    arrived: dict[tuple[int, int], list[int]],
) -> None:
    """Append the transfers of one tree; `arrived` collects what reaches (root, chunk)."""
    chunks = range(piece.chunk, piece.chunk + piece.count)
    root = piece.tree.root
    into: dict[int, list[int]] = {
        root: sorted({t for c in chunks for t in ready.get((root, c), ())})
    }
    inwards = piece.origin.direction is Direction.IN
    if inwards:
        into = {}
    for edge in reversed(piece.tree.edges) if inwards else piece.tree.edges:
        source, target = (edge.child, edge.parent) if inwards else (edge.parent, edge.child)
        after = tuple(into.get(source, ()))
        into.setdefault(target, []).append(len(transfers))
        transfers.append(
            Transfer(source, target, piece.chunk, piece.count, inwards, after, piece.origin)
        )
    if inwards:
        for chunk in chunks:
            arrived.setdefault((root, chunk), []).extend(into.get(root, ()))


def _by_level(transfers: list[Transfer]) -> tuple[Transfer, ...]:
    """Sort by length of the longest chain of prerequisites; renumber `after`."""
    level: list[int] = []
    for transfer in transfers:
        level.append(1 + max((level[t] for t in transfer.after), default=-1))
    order = sorted(range(len(transfers)), key=lambda t: (level[t], t))
    return reordered(transfers, order)


def reordered(transfers: list[Transfer], order: list[int]) -> tuple[Transfer, ...]:
    """Return the transfers in a new order, with `after` renumbered to match."""
    place = {old: new for new, old in enumerate(order)}
    return tuple(
        _renumbered(transfers[old], tuple(sorted(place[t] for t in transfers[old].after)))
        for old in order
    )


def _renumbered(transfer: Transfer, after: tuple[int, ...]) -> Transfer:
    return Transfer(
        transfer.source,
        transfer.target,
        transfer.chunk,
        transfer.count,
        transfer.reduces,
        after,
        transfer.origin,
    )
