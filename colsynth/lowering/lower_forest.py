"""Pass lower-forest: Forest -> ChunkProgram."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar

from msgspec import Struct, structs

from colsynth.errors import Diagnostic, InputError, LimitError, require_least
from colsynth.lowering.proposals import smaller_transfers
from colsynth.lowering.refusals import over_limit
from colsynth.lowering.replicas import replicas
from colsynth.lowering.segmentations import ALONE, halves, segmentations
from colsynth.lowering.uneven import carriers, chunks_of_weight, left_out
from colsynth.model import ChunkProgram, Direction, Forest, Ordering, Origin, Phase, Transfer, Tree
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target

_RUN = r"(?:([1-9][0-9]{0,3})x)?([1-9][0-9]{0,4})"
"""A size of segments, or how many of it."""
_Move = tuple[int, int, int, int, bool, Sequence[int], Origin]
"""A transfer before its prerequisites are numbered: its first fields, in order."""


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
    lockstep : bool
        Whether trees advance in lockstep, as parallel rings do: level by level, in an order
        that later passes keep (`Ordering.LOCKSTEP`). The first trees of all roots then have
        channels of their own, as have the second ones and so on.
    fill : bool
        Whether a single instance becomes as many as threadblocks need to fill the links.
    segments : str
        Sizes of the segments that every tree carries one after the other on the same channels,
        in chunks per unit of its weight: ``"1-1-2"`` cuts a shard into four times as many chunks
        and sends a quarter, a quarter, a half. A GPU that passes data on begins when it has the
        first segment and ends soon after the last. Small segments shorten both, and cost steps.
        ``"6x1-2"`` stands for six segments of 1 and one of 2.
        Where equal shares do not divide the message that the program is for, some roots have a
        chunk less in the largest segment (`uneven`), and ``"1"`` stands for several chunks.
    most : int
        Chunks of a tree in one transfer; a tree of a larger weight, or a larger segment, is cut
        into segments of so many. 0 takes the runtime's largest ``cnt``.
    """

    instances: int = 1
    lockstep: bool = False
    fill: bool = False
    segments: str = "1"
    most: int = 0

    name: ClassVar[str] = "lower-forest"
    takes: ClassVar[type] = Forest
    gives: ClassVar[type] = ChunkProgram
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("instances", (1, 2, 4, 8, 16, 32), ladder=True, cuts=True),
        Choice("most", propose=smaller_transfers),
        Choice("segments", propose=segmentations, anchor=ALONE),
        Choice("segments", propose=halves, label="halves"),
    )

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 1)
        require_least("most", self.most, 0)
        object.__setattr__(self, "segments", _written_out(self.segments))

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
            return replace(self, instances=replicas(value, target), fill=False).run(value, target)
        sizes = tuple(map(int, self.segments.split("-")))
        less = 0
        if not self.lockstep:
            if sizes == (1,):
                alone = self.most == 1
                sizes = (chunks_of_weight(value, target, self.instances, alone=alone),)
            less = left_out(value, target, self.instances, value.chunks * sum(sizes))
        chunks = (value.chunks * sum(sizes) - less) * self.instances
        room = target.profile.max_offset + 1
        if chunks > room:
            raise over_limit("chunks per buffer", chunks, room, target.profile)
        most = min(self.most or target.profile.max_count, target.profile.max_count)
        moves: list[_Move] = []
        arrived: dict[tuple[int, int], list[int]] = {}
        for number, phase in enumerate(value.phases):
            ready, arrived = arrived, {}
            cuts = _cuts(phase, sizes, most)
            for segment in self._segments(value, phase, number, sizes, less):
                for part in _cut(segment, most, cuts):
                    _lower_tree(part, moves, ready, arrived)
        order = _by_level(moves)
        ordering = Ordering.LOCKSTEP if self.lockstep else Ordering.FREE
        return ChunkProgram(value.problem, chunks, order, ordering=ordering)

    def _segments(
        self, forest: Forest, phase: Phase, number: int, sizes: tuple[int, ...], less: int
    ) -> Iterator[_Segment]:
        """Yield every tree with the chunks of every segment, segment by segment.

        The last `less` roots have a chunk less in the largest segment, of their last tree.
        """
        weight = dict(zip(forest.problem.roots, forest.weights, strict=True))
        with_trees = carriers(forest)
        short = set(with_trees[len(with_trees) - less :])
        largest = sizes.index(max(sizes))
        own_chunks = (weight[root] * sum(sizes) - (root in short) for root in weight)
        before = accumulate(own_chunks, initial=0)
        first = {root: at * self.instances for root, at in zip(weight, before, strict=False)}
        of_root = Counter(tree.root for tree in phase.trees)
        for instance in range(self.instances):
            for part, size in enumerate(sizes):
                used = dict.fromkeys(weight, 0)
                grown: Counter[int] = Counter()
                for tree_id, tree in enumerate(phase.trees):
                    place = used[tree.root]
                    used[tree.root] += tree.weight
                    own = instance * of_root[tree.root] + grown[tree.root]
                    grown[tree.root] += 1
                    origin = Origin(
                        number, phase.direction, tree_id, own if self.lockstep else instance, part
                    )
                    chunk, count = first[tree.root] + place * size, tree.weight * size
                    last = used[tree.root] == weight[tree.root]
                    count -= last and part == largest and tree.root in short
                    if count:
                        yield _Segment(tree, origin, chunk, count)
                first = {
                    root: at + weight[root] * size - (part == largest and root in short)
                    for root, at in first.items()
                }


def _written_out(segments: str) -> str:
    """Return sizes without runs such as ``6x1``, which answers of ``compile`` have (CS210)."""
    parts = [re.fullmatch(_RUN, part) for part in segments.split("-")]
    if not all(parts):
        phrase = f"segments {segments}: expected numbers of chunks from 1, joined by '-'"
        advice = "for example segments=1-1-2-4, or 2x1-2-4"
        raise InputError(Diagnostic("CS210", phrase, help=advice))
    return "-".join("-".join([part[2]] * int(part[1] or 1)) for part in parts if part)


def _unspeakable(runtime: str) -> LimitError:
    phrase = f"a file for {runtime} cannot say that a switch multicasts or reduces"
    note = "its steps send from GPU to GPU"
    advice = "-a forest packs trees for switches that only forward"
    return LimitError(Diagnostic("CS323", phrase, notes=(note,), help=advice))


class _Segment(Struct, frozen=True):
    """A tree with the adjacent chunks it carries."""

    tree: Tree
    origin: Origin
    chunk: int
    count: int


def _cuts(phase: Phase, sizes: tuple[int, ...], most: int) -> int:
    """Return into how many segments of `most` chunks the largest segment of any tree is cut."""
    return -(-max(tree.weight for tree in phase.trees) * max(sizes) // most)


def _cut(segment: _Segment, most: int, cuts: int) -> Iterator[_Segment]:
    """Yield the chunks of a segment, at most `most` at a time, each a segment of its own."""
    for number, done in enumerate(range(0, segment.count, most)):
        origin = segment.origin._replace(segment=segment.origin.segment * cuts + number)
        count = min(most, segment.count - done)
        yield structs.replace(segment, origin=origin, chunk=segment.chunk + done, count=count)


def _lower_tree(
    segment: _Segment,
    moves: list[_Move],
    ready: dict[tuple[int, int], list[int]],
    arrived: dict[tuple[int, int], list[int]],
) -> None:
    """Append the moves of one tree; `arrived` collects what reaches (root, chunk)."""
    chunk, count, origin = segment.chunk, segment.count, segment.origin
    chunks = range(chunk, chunk + count)
    root = segment.tree.root
    inwards = origin.direction is Direction.IN
    into: dict[int, list[int]] = {}
    if not inwards and ready:
        into[root] = sorted({t for c in chunks for t in ready.get((root, c), ())})
    for edge in reversed(segment.tree.edges) if inwards else segment.tree.edges:
        source, target = (edge.child, edge.parent) if inwards else (edge.parent, edge.child)
        after = into.get(source, ())
        into.setdefault(target, []).append(len(moves))
        moves.append((source, target, chunk, count, inwards, after, origin))
    if inwards:
        for chunk in chunks:
            arrived.setdefault((root, chunk), []).extend(into.get(root, ()))


def _by_level(moves: list[_Move]) -> tuple[Transfer, ...]:
    """Return transfers by length of the longest chain of prerequisites, `after` numbered so."""
    level: list[int] = []
    for _, _, _, _, _, after, _ in moves:
        if len(after) == 1:
            level.append(1 + level[after[0]])
        else:
            level.append(1 + max([level[t] for t in after]) if after else 0)
    order = sorted(range(len(moves)), key=level.__getitem__)
    place = [0] * len(moves)
    for new, old in enumerate(order):
        place[old] = new
    found = []
    for old in order:
        source, target, chunk, count, reduces, after, origin = moves[old]
        behind = (place[after[0]],) if len(after) == 1 else tuple(sorted([place[t] for t in after]))
        found.append(Transfer(source, target, chunk, count, reduces, behind, origin))
    return tuple(found)
