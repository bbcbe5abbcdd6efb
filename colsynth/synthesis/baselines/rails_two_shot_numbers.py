"""How `build-rails` divides a message in two shots at each level: channels, and pieces of sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from colsynth.cost import model_of
from colsynth.runtimes.selection import dividing, power_of_two
from colsynth.synthesis.baselines.rails_numbers import Division
from colsynth.synthesis.baselines.unequal import Cells


@dataclass(frozen=True, slots=True, order=True)
class TwoShot:
    """Numbers of a program, in the order of preference.

    Parameters
    ----------
    load : float
        Shards of a rail that the busiest threadblocks move or add up one after the other.
    near, far : int
        Channels within boxes and between them.
    pieces : int
        Pieces of a segment of a shard.
    """

    load: float
    near: int
    far: int
    pieces: int

    def cells(self, division: Division, pieces: int) -> Cells:
        """Return the pieces of each shard: as many as asked for (0: as suit the runtime).

        In rounds, each box has a piece. Files have as many as divide messages.
        """
        if pieces or division.target.profile.rounds:
            return division.cells(1, pieces or self.pieces)
        parts = division.target.parts(division.problem, division.rails.count)
        return division.cells(1, dividing(parts // division.segments, self.pieces))


def two_shot(division: Division, near: int) -> TwoShot:
    """Return the numbers with which threadblocks have the least to do.

    Parameters
    ----------
    division : Division
    near : int
        Channels within boxes as asked for; 0: any number.
    """
    rails, profile = division.rails, division.target.profile
    if profile.rounds:
        return TwoShot(0, near or 1, 1, len(rails.boxes))
    most = profile.max_channels
    tried = product((near,) if near else range(1, most + 1), range(1, most + 1))
    fitting = [found for pair in tried if (found := _with(division, *pair))]
    return min(fitting, default=TwoShot(0, near or 1, 1, 1))


def _with(division: Division, near: int, far: int) -> TwoShot | None:
    """Return the numbers for some channels; None where threadblocks do not suffice."""
    rails, profile = division.rails, division.target.profile
    boxes, blocks, channels = len(rails.boxes), profile.usable_threadblocks, (near, far)
    left = blocks - 2 * (near * (rails.places - 1) + far * (boxes - 1))
    if left < 0:
        return None
    adding = blocks if division.strategy == "shared" else left
    pieces = next((k for k in _halves(adding) if _fits(division, channels, k, adding)), 0)
    if not pieces:
        return None
    largest = -(-pieces // boxes) / pieces  # share of a box
    moved = 2 / near + 2 * largest / far
    model, protocol = model_of(division.target), division.target.protocol
    passes = model.rate[protocol] / model.local_rate[protocol]
    added = passes * (1 + (rails.places - 2) * model.operand) / pieces
    return TwoShot(moved + added, near, far, pieces)


def _halves(most: int) -> Iterator[int]:
    """Yield the powers of two up to a number, the largest first."""
    number = power_of_two(most)
    while number:
        yield number
        number //= 2


def _fits(division: Division, channels: tuple[int, int], pieces: int, adding: int) -> bool:
    """Return whether threadblocks have steps for sums of so many pieces, and the file lines.

    A sum takes a wait and an addition for each arrival. Those of shares follow those of boxes. Who
    sends on waits for each piece that was added up, and for each message that brought some.
    """
    rails, profile, segments = division.rails, division.target.profile, division.segments
    boxes, places, (near, far) = len(rails.boxes), rails.places, channels
    share = -(-pieces // boxes)
    if division.strategy != "shared" and pieces + share > adding:
        return False
    sums = (pieces * segments, 2 * places - 1), (share * segments, 2 * boxes - 1)
    added = sum(-(-number // adding) * chain for number, chain in sums)
    spread = min(share, -(-pieces // near)) + far * (1 + -(-boxes // near))
    moves = segments * (2 + max(spread, 2 * -(-share // far)))
    steps = added + moves if division.strategy == "shared" else max(added, moves)
    blocks = profile.usable_threadblocks
    lines = sum(number * chain for number, chain in sums) + blocks * (2 + moves)
    return steps <= profile.max_steps and lines <= profile.max_xml_nodes
