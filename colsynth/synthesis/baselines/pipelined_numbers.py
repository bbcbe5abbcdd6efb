"""How many channels and segments `build-pipelined` takes: what shares the work evenly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from colsynth.cost import model_of
from colsynth.model import Collective, Problem
from colsynth.runtimes.selection import dividing
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.rails import Rails
from colsynth.synthesis.baselines.unequal import Cells, spread

_FINEST = 32
"""Most chunks of a segment, where shards are unequal.

An allreduce of 1 GiB among 24 GPUs behind a switch reaches 113 GB/s with up to 4, 123 with 16, 126
with 32, and 127 of 1152 MiB, which they divide.
"""


class Numbers(NamedTuple):
    """Channels within boxes and between them, and segments of a shard."""

    within: int
    between: int
    segments: int


class _Work(NamedTuple):
    """What a GPU does for a turn of segments of all shards.

    Parameters
    ----------
    within, between : int
        Times that it sends to a GPU of its box, and to one on its rail.
    sums : tuple of int
        Steps of each sum or copy, which one threadblock does.
    rooms : int
        Chunks of scratch for a segment.
    shards : int
        Of the message.
    turn : int
        Segments of a turn.
    """

    within: int
    between: int
    sums: tuple[int, ...]
    rooms: int
    shards: int
    turn: int = 1

    @property
    def local(self) -> int:
        """Steps of all sums and copies."""
        return sum(self.sums)

    def most_sums(self, blocks: int, steps: int) -> int:
        """Return for how many turns some threadblocks of so many steps do the sums.

        Each sum goes to the one with the least to do, so none has more than their mean and a sum.
        """
        if len(set(self.sums)) == 1:
            return steps // self.sums[0] * blocks // len(self.sums)
        longest = max(self.sums)
        return ((steps - longest) * blocks + longest) // self.local


def owners(boxes: int, segment: int) -> range:
    """Return the boxes that add up a segment of an allreduce.

    Of two boxes, each adds up what the other sends. Three or more would send every sum to all
    others, so they take turns, and send the result back: 2 (B - 1) / B of a shard instead of B - 1.
    """
    return range(boxes) if boxes < 3 else range(segment % boxes, segment % boxes + 1)


def _work(collective: Collective, rails: Rails) -> _Work:
    places, boxes = rails.places, len(rails.boxes)
    several, size = int(boxes > 1), places * boxes
    if collective is Collective.ALLGATHER:
        return _Work(boxes, several, (1,), 0, size)
    sums: tuple[int, ...] = (places - 1, boxes) if several else (places,)
    if collective is Collective.REDUCE_SCATTER:
        return _Work(1, several, sums, places, places)
    if boxes > 2:
        # The first copy waits for an arrival and for the place it writes to.
        sums = *(places - 1,) * boxes, boxes + 1
        return _Work(2 * boxes, 2, sums, places + boxes, rails.count, boxes)
    return _Work(2, several, sums, places + boxes * several, rails.count)


def numbers(problem: Problem, rails: Rails, target: Target) -> Numbers | None:
    """Return the numbers with which the most loaded threadblock has least to do, if there are any.

    Among equals, the next threadblock has least to do, and so on.

    Parameters
    ----------
    problem : Problem
    rails : Rails
    target : Target
    """
    profile, places, boxes = target.profile, rails.places, len(rails.boxes)
    blocks, work = profile.usable_threadblocks, _work(problem.collective, rails)
    parts, loose = target.parts(problem, work.shards), target.loose_parts(problem, work.shards)
    found: list[tuple[list[Fraction], Numbers]] = []
    for within, between in product(range(1, blocks), range(1, blocks) if boxes > 1 else (1,)):
        left = blocks - 2 * within * (places - 1) - 2 * between * (boxes - 1)
        if left < 1 or places < 2:
            continue
        pairs = (work.within, within), (work.between, between), (work.local, left)
        loads = [Fraction(*pair) for pair in pairs]
        ends = work.within * (places - 1) + work.between * (boxes - 1)
        room = profile.max_xml_nodes - places * boxes - profile.usable_threadblocks
        turns = min(
            profile.max_steps // work.within * within,
            profile.max_steps // work.between * between if work.between else profile.max_xml_nodes,
            work.most_sums(left, profile.max_steps),
            room // (work.local + 2 * ends),
        )
        most = min(turns * work.turn, profile.max_offset // max(work.rooms, work.shards))
        segments = min(most, loose // work.shards) or dividing(parts, most)
        if segments:
            found.append((sorted(loads, reverse=True), Numbers(within, between, segments)))
    return min(found)[1] if found else None


def cells_of(problem: Problem, rails: Rails, segments: int, target: Target) -> Cells:
    """Return the chunks of each segment of each shard.

    One, where equal shards divide messages; else so many that segments hardly differ.

    Parameters
    ----------
    problem : Problem
    rails : Rails
    segments : int
    target : Target
    """
    work, profile = _work(problem.collective, rails), target.profile
    loose, cells = target.loose_parts(problem, work.shards), work.shards * segments
    largest = min(_FINEST, profile.max_count - 1) * cells
    if loose and work.rooms:  # rooms have as much for a segment as its largest shard
        largest = min(largest, (profile.max_offset // work.rooms - segments) * work.shards)
    whole = dividing(loose, largest, cells)
    if not loose or whole < cells:
        return Cells(((1,) * work.shards,) * segments)
    return Cells(tuple(spread(whole, segments, work.shards)))


def least_seconds(problem: Problem, target: Target, sizes: Sequence[int]) -> list[float]:
    """Return seconds that the program takes at least, for messages of these sizes in bytes.

    A threadblock that only sends does as many steps as its share of the segments has, one after the
    other, and moves a segment in each. As many rails are counted as there can be.
    """
    boxes = problem.topology.ranks_by_box
    rails = Rails(boxes, min(map(len, boxes)))
    found = numbers(problem, rails, target)
    if found is None:
        return [0.0] * len(sizes)
    model, work = model_of(target), _work(problem.collective, rails)
    shares = Fraction(work.within, found.within), Fraction(work.between, found.between)
    steps = int(found.segments * max(shares) / work.turn)
    step, rate = model.step[target.protocol] / 1e6, model.rate[target.protocol] * 1e9
    return [steps * (step + size / (work.shards * found.segments) / rate) for size in sizes]
