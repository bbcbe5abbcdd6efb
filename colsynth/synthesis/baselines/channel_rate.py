"""How many channels are enough: links have to be filled by threadblocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from colsynth.errors import Diagnostic, LimitError
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import divides, dividing
from colsynth.runtimes.target import Target

_ENOUGH = Fraction(95, 100)
"""Share of the best speed for which fewer channels are taken."""

_FINE = 8
"""Chunks of a channel where shares differ: those with one more are slower by an eighth at most."""

_BUSY = Fraction(9, 10)
"""Share of its time that a threadblock moves data; of what the simulator has rings reach."""


@dataclass(frozen=True, slots=True)
class ChannelRate:
    """What one channel can carry at most.

    Parameters
    ----------
    channel : Fraction or None
        Bytes per second that one threadblock moves, where there is a limit.
    efficiency : Fraction
        Share of a link's bandwidth that remains for data.
    """

    channel: Fraction | None = None
    efficiency: Fraction = Fraction(1)

    def of(self, channels: int, links: Fraction) -> Fraction:
        """Return the speed of some channels whose links would allow `links` bytes per second."""
        allowed = links * self.efficiency
        return allowed if self.channel is None else min(allowed, channels * self.channel)


UNLIMITED = ChannelRate()


def channel_rate(target: Target) -> ChannelRate:
    """Return what a channel carries, as the simulator assumes of the protocol Simple.

    Libraries choose channels once for all protocols, too.
    """
    from colsynth.cost import model_of
    from colsynth.cost.usable import exact, pace

    model = model_of(target)
    rate = pace(model, "Simple") * _BUSY
    passes = 1 if target.profile.fuses else 2  # it receives, then adds or sends
    return ChannelRate(rate / passes, exact(model.link_efficiency))


def require_channels(asked: int, profile: Profile) -> None:
    """Refuse, before any is made, more channels than a runtime has (CS402)."""
    if asked > profile.max_channels:
        phrase = f"channels: {asked}, but {profile.name} allows {profile.max_channels}"
        raise LimitError(Diagnostic("CS402", phrase, help="use fewer --channels"))


def most_rings(profile: Profile, size: int, phases: int = 1) -> tuple[int, bool]:
    """Return how many rings of `size` ranks fit a runtime, one or more, and if nodes limit them.

    An allreduce passes each rank 2 (size - 1) times; a runtime that fuses nothing sends
    from another threadblock, and adds up in a step of its own. Threadblocks are counted as for
    an allreduce; steps as nodes of a file, for the phases that the collective has.
    """
    steps = (2 if profile.fuses else 3) * (size - 1) + 1
    portions = -(-steps // profile.max_steps)
    blocks = portions if profile.fuses else 2 * portions
    nodes = phases * (size - 1) * (1 if profile.fuses else 2) + 1 + blocks
    most = min(profile.max_channels // portions, profile.max_threadblocks // blocks)
    fitting = (profile.max_xml_nodes - size) // nodes
    return max(1, min(most, fitting)), fitting < most


def most_trees(profile: Profile) -> int:
    """Return how many pairs of trees fit a runtime's channels and threadblocks.

    A chain receives and sends in each phase of each tree; the GPU that stands for its box
    has two peers more in one of the trees.
    """
    blocks = 8 if profile.fuses else 14
    threadblocks = profile.usable_threadblocks
    return max(1, min(profile.max_channels // 2, threadblocks // blocks))


def fewest(speeds: Sequence[Fraction], parts: int = 0) -> int:
    """Return how many channels are enough, given the speed of 1, 2, ... of them.

    A divisor of `parts`, or a power of two, even where other numbers are faster: runtimes take a
    file only for messages that its chunks divide, and most people send powers of two.
    """
    known = {n: speed for n, speed in enumerate(speeds, 1) if divides(n, parts)}
    return next(n for n, speed in known.items() if speed >= _ENOUGH * max(known.values()))


def shares(speeds: Sequence[Fraction], most: int, parts: int | None = 0) -> tuple[int, ...]:
    """Return the chunks of each channel, given the speed of 1, 2, ... of them.

    Equal ones as `fewest` has them, unless another number of channels is faster by more than
    `_ENOUGH` allows: their shares, which differ by one, add up to such a number.

    Parameters
    ----------
    speeds : sequence of Fraction
    most : int
        Largest sum of shares.
    parts : int
        Of a message, into which chunks can be cut (`Target.parts`); None: any number will do.
    """
    if parts is None:
        return (1,) * next(n for n, v in enumerate(speeds, 1) if v >= _ENOUGH * max(speeds))
    few = fewest(speeds, parts)
    whole = dividing(parts, min(_FINE << (len(speeds) - 1).bit_length(), most))
    uneven = {
        n: speed * whole / (n * -(-whole // n)) for n, speed in enumerate(speeds, 1) if n <= whole
    }
    best = max(uneven.values())
    if speeds[few - 1] >= _ENOUGH * best:
        return (1,) * few
    number = next(n for n, speed in uneven.items() if speed == best)
    return tuple(whole // number + (place < whole % number) for place in range(number))
