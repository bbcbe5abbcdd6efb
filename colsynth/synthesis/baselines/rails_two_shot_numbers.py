"""How `build-rails` divides a message in two shots at each level: channels, and pieces of sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, prod

from colsynth.cost import model_of
from colsynth.runtimes.selection import dividing, power_of_two
from colsynth.synthesis.baselines.rails_numbers import Division
from colsynth.synthesis.baselines.rails_two_shot import Stage
from colsynth.synthesis.baselines.unequal import Cells


@dataclass(frozen=True, slots=True, order=True)
class TwoShot:
    """Numbers of a program, in the order of preference.

    Parameters
    ----------
    load : float
        Shards of a rail that the busiest threadblocks move or add up one after the other.
    near : int
        Channels within boxes.
    stages : tuple of Stage
        Exchanges between boxes, with theirs.
    pieces : int
        Pieces of a segment of a shard.
    """

    load: float
    near: int
    stages: tuple[Stage, ...]
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
    profile, narrow = division.target.profile, _stages(division, 1)
    if profile.rounds:
        return TwoShot(0, near or 1, narrow, len(division.rails.boxes))
    numbers = range(1, profile.max_channels + 1)
    between = [_stages(division, far) for far in numbers]
    tried = product((near,) if near else numbers, between)
    fitting = [found for pair in tried if (found := _with(division, *pair))]
    return min(fitting, default=TwoShot(0, near or 1, narrow, 1))


def radices(boxes: int, most: int) -> tuple[int, ...]:
    """Return factors of a number, each at most so large, or a prime; 0 sets no limit.

    The largest come first, as they divide the most data.

    Examples
    --------
    >>> radices(16, 4), radices(24, 4), radices(14, 2), radices(16, 0)
    ((4, 4), (4, 3, 2), (7, 2), (16,))
    """
    found: list[int] = []
    left = boxes
    while left > 1:
        factors = [k for k in range(2, left + 1) if left % k == 0]
        fitting = [k for k in factors if k <= (most or boxes)]
        found.append(max(fitting) if fitting else min(factors))
        left //= found[-1]
    return tuple(sorted(found, reverse=True)) or (1,)


def _stages(division: Division, channels: int) -> tuple[Stage, ...]:
    """Return the exchanges between boxes, with so many channels for the largest shares."""
    factors = radices(len(division.rails.boxes), division.radix)
    sizes = [Fraction(1, prod(factors[: depth + 1])) for depth in range(len(factors))]
    return tuple(
        Stage(radix, prod(factors[depth + 1 :]), ceil(channels * sizes[depth] / sizes[0]))
        for depth, radix in enumerate(factors)
    )


def _with(division: Division, near: int, stages: tuple[Stage, ...]) -> TwoShot | None:
    """Return the numbers for some channels; None where threadblocks do not suffice."""
    rails, blocks = division.rails, division.target.profile.usable_threadblocks
    across = sum((stage.radix - 1) * stage.channels for stage in stages)
    left = blocks - 2 * (near * (rails.places - 1) + across)
    if left < 0:
        return None
    adding = blocks if division.strategy == "shared" else left
    pieces = next((k for k in _halves(adding) if _fits(division, near, stages, k, adding)), 0)
    if not pieces:
        return None
    shares = zip(stages, _shares(stages, pieces), strict=True)
    moved = 2 / near + sum(2 * share / pieces / stage.channels for stage, share in shares)
    model, protocol = model_of(division.target), division.target.protocol
    passes = model.rate[protocol] / model.local_rate[protocol]
    added = passes * (1 + (rails.places - 2) * model.operand) / pieces
    return TwoShot(moved + added, near, stages, pieces)


def _shares(stages: Sequence[Stage], pieces: int) -> Iterator[int]:
    """Yield the most pieces of a share after each stage."""
    for stage in stages:
        pieces = -(-pieces // stage.radix)
        yield pieces


def _halves(most: int) -> Iterator[int]:
    """Yield the powers of two up to a number, the largest first."""
    number = power_of_two(most)
    while number:
        yield number
        number //= 2


def _fits(division: Division, near: int, stages: Sequence[Stage], pieces: int, adding: int) -> bool:
    """Return whether threadblocks have steps for sums of so many pieces, and the file lines.

    A sum takes a wait and an addition for each arrival. Those of shares follow those of boxes. Who
    sends on waits for each piece that was added up, and for each message that brought some.
    """
    rails, profile, segments = division.rails, division.target.profile, division.segments
    shares = list(_shares(stages, pieces))
    if division.strategy != "shared" and pieces + sum(shares) > adding:
        return False
    sums = [(pieces * segments, 2 * rails.places - 1)]
    sums += [
        (share * segments, 2 * stage.radix - 1) for stage, share in zip(stages, shares, strict=True)
    ]
    added = sum(-(-number // adding) * chain for number, chain in sums)
    spread = min(shares[-1], -(-pieces // near))
    spread += sum(stage.channels * (1 + -(-stage.radix // near)) for stage in stages)
    busiest = max(-(-share // stage.channels) for stage, share in zip(stages, shares, strict=True))
    moves = segments * (2 + max(spread, 2 * busiest))
    steps = added + moves if division.strategy == "shared" else max(added, moves)
    blocks = profile.usable_threadblocks
    lines = sum(number * chain for number, chain in sums) + blocks * (2 + moves)
    return steps <= profile.max_steps and lines <= profile.max_xml_nodes
