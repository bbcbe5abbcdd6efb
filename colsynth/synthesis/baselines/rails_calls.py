"""In how many calls `build-rails` sends a message."""

from __future__ import annotations

from fractions import Fraction

from colsynth.cost import model_of
from colsynth.runtimes.target import Target

_NUMBERS = (1, 2, 4, 8, 16, 32)

_ENOUGH = 1.03
"""Times the least time for which fewer calls are taken: sums wait for one after the other.

A reduce-scatter of 16 MiB by rccl on two MI300X takes 109 us with two calls, and 118 with the four
that are 1.6 % faster by themselves.
"""


def best_calls(message: Fraction, target: Target) -> int:
    """Return in how many calls a message takes about the least time between two threadblocks.

    It is a power of two. The receiver begins when the first slice of the first call is there, and
    each call is a step for both.

    Parameters
    ----------
    message : Fraction
        Bytes.
    target : Target
    """
    model, protocol = model_of(target), target.protocol
    rate, step = model.rate[protocol] * 1e9, model.step[protocol] / 1e6
    slices, least = model.slices[protocol], model.least_slice[protocol]
    tile, size = target.profile.tile_bytes[protocol], float(message)

    def seconds(calls: int) -> float:
        call = min(size / calls, tile)
        first = min(call, max(call / slices, least))
        return max(calls, size / tile) * step + (first + size) / rate

    enough = min(map(seconds, _NUMBERS)) * _ENOUGH
    return next(calls for calls in _NUMBERS if seconds(calls) <= enough)
