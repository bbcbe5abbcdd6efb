"""For which messages a runtime selects a file (contract 1.4).

A file is skipped, and the library's own algorithm runs, unless its chunks divide the elements of
the call. What counts as an element differs: some runtimes count bytes in some collectives
(`Profile.counts_bytes`). Nothing reports the skip, so everything that names a message size asks
here.

Sizes are those of nccl-tests, the whole message: of an allgather, reduce-scatter or alltoall
all ranks together. Where ranks cannot share a size evenly, it stands for what nccl-tests makes of
it, rounded down to 16 bytes per rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isqrt, lcm

from colsynth.model import Collective, Header, Problem
from colsynth.runtimes.profile import Profile
from colsynth.units import format_most, format_size, plural

ELEMENT_BYTES = 4
"""Bytes of an element where nothing else is said: nccl-tests sends 32-bit floats."""

LARGE, MEDIUM, SMALL = 2**30, 2**26, 2**20
"""Bytes of the messages at which programs are judged where nobody names a size."""

_ALIGNED = 16
"""Bytes to which nccl-tests rounds the part of a rank (its ``GetCollByteCount``).

Also those of which the chunks of a plan are multiples (``buffer_alignment``).
"""

_PARTS = (Collective.ALLGATHER, Collective.REDUCE_SCATTER, Collective.ALLTOALL)
"""Collectives whose calls say what one rank sends or gets."""


@dataclass(frozen=True, slots=True)
class TakenSizes:
    """The messages for which a runtime selects a file.

    Parameters
    ----------
    multiple : int
        Bytes; the sizes are multiples of it.
    element_bytes : int
        Of the numbers in a message.
    ranks : int
    shared : bool
        Whether a message is divided among the ranks; else every rank has a whole one.
    min_bytes : int
        Inclusive, as `max_bytes`.
    max_bytes : int or None
    """

    multiple: int
    element_bytes: int
    ranks: int
    shared: bool
    min_bytes: int
    max_bytes: int | None

    def takes(self, size: int) -> bool:
        """Whether a call of `size` bytes uses the file; no call has a part of an element."""
        message = self._message(size)
        inside = self.min_bytes <= message and (self.max_bytes is None or message <= self.max_bytes)
        return inside and size % self.element_bytes == 0 and self.divide(message)

    def called(self, sizes: Iterable[int]) -> list[int]:
        """Return the sizes, those whose calls use the file as what nccl-tests makes of them."""
        return [self._message(size) if self.takes(size) else size for size in sizes]

    def largest(self, sizes: Iterable[int]) -> int | None:
        """Return the largest size whose call uses the file; None where none does."""
        return max(filter(self.takes, sizes), default=None)

    def divide(self, size: int) -> bool:
        """Whether the chunks divide a message of `size` bytes, whatever the byte range."""
        return self.parts(size) > 0

    def parts(self, size: int) -> int:
        """Return how many times a message has what the chunks need at least; 0 if not exactly."""
        message = self._message(size)
        return 0 if message % self.multiple else message // self.multiple

    def takes_usual(self) -> bool:
        """Whether usual sizes are multiples, if they are large enough (`usual_size`)."""
        return self.factor % _odd(self.multiple) == 0

    def usual(self, most: int) -> int:
        """Return the largest usual size up to `most` bytes (`usual_size`)."""
        return _usual(most, self.factor)

    @property
    def factor(self) -> int:
        """The odd factor of usual sizes: that of the ranks, if they share a message."""
        return _factor(self.ranks, shared=self.shared)

    def _message(self, size: int) -> int:
        """Return what nccl-tests makes of a size."""
        return _called(size, self.ranks, self.element_bytes, shared=self.shared)

    def __str__(self) -> str:
        count = plural(self.multiple // self.element_bytes, "element")
        elements = f"{count} of {self.element_bytes} bytes"
        text = f"multiples of {self.multiple} bytes ({elements})"
        if self.min_bytes == self.max_bytes:
            return f"{text}, {format_size(self.min_bytes)} alone"
        if self.min_bytes > self.multiple:
            text += f", from {format_size(self.min_bytes)}"
        if self.max_bytes is not None:
            text += f", {format_most(self.max_bytes)}"
        return text

    def as_object(self) -> dict[str, int | None]:
        """Return the law as plain values, ready for JSON."""
        return {
            "multiple_bytes": self.multiple,
            "element_bytes": self.element_bytes,
            "min_bytes": self.min_bytes,
            "max_bytes": self.max_bytes,
        }


def taken_sizes(header: Header, profile: Profile, element_bytes: int = ELEMENT_BYTES) -> TakenSizes:
    """Return the messages for which a runtime selects a file.

    Parameters
    ----------
    header : Header
        Of the file.
    profile : Profile
    element_bytes : int
        Of the numbers in a message.
    """
    shared = header.collective in _PARTS
    counted = _least_chunk(header.collective, profile, element_bytes)
    least = element_bytes * (header.ranks if shared else 1)
    return TakenSizes(
        multiple=lcm(max(1, header.chunks) * counted, least),
        element_bytes=element_bytes,
        ranks=header.ranks,
        shared=shared,
        min_bytes=header.min_bytes,
        max_bytes=header.max_bytes,
    )


def nearest_size(laws: Sequence[TakenSizes], size: int) -> int | None:
    """Return the size next to one at which all of some files are used; None without any.

    It is below, or else above. Where files end below, it is the largest usual one, or next to it.
    """
    step = lcm(*(law.multiple for law in laws))
    least = max(step, *(-(-law.min_bytes // step) * step for law in laws))
    ends = [law.usual(law.max_bytes) for law in laws if law.max_bytes and law.max_bytes < size]
    found = max(min([size, *ends]) // step * step, least)
    return found if all(law.takes(found) for law in laws) else None


def parts_of_chunks(
    size: int, chunks: int, collective: Collective, ranks: int, profile: Profile
) -> int:
    """Return into how many parts a file's chunks can be cut at most, as a message has elements.

    Every divisor of it is a number of parts with which calls of this size use the file; 0 where
    they do not even use it uncut.

    Parameters
    ----------
    size : int
        Bytes of the message, as nccl-tests counts them.
    chunks : int
    collective : Collective
    ranks : int
    profile : Profile
    """
    shared = collective in _PARTS
    multiple = max(1, chunks) * _least_chunk(collective, profile, ELEMENT_BYTES)
    law = TakenSizes(multiple, ELEMENT_BYTES, ranks, shared, min_bytes=0, max_bytes=None)
    return law.parts(size)


def _least_chunk(collective: Collective, profile: Profile, element_bytes: int) -> int:
    """Return the bytes of which chunks are multiples."""
    if profile.plans:
        return lcm(_ALIGNED, element_bytes)
    return 1 if collective in profile.counts_bytes else element_bytes


def never_usual(taken: TakenSizes) -> str | None:
    """Return what to tell of a file that no message of a usual size uses, None of others."""
    if taken.takes_usual():
        return None
    odd = taken.factor
    sizes = "a power of two bytes" if odd == 1 else f"a power of two times {odd} bytes"
    return f"no message of {sizes} uses the file; it is for {taken}"


def unused(taken: TakenSizes, size: int | None = None) -> str | None:
    """Return what to tell of a file that no call of a size uses; None: that no usual one does."""
    if size is None:
        return never_usual(taken)
    named = f"no message of {format_size(size)} uses the file; it is for {taken}"
    return None if taken.takes(size) else named


def called_size(size: int, collective: Collective, ranks: int) -> int:
    """Return the bytes of the call that a size stands for: what nccl-tests makes of it.

    Where a file is for a size, its byte range must hold this message.
    """
    return _called(size, ranks, ELEMENT_BYTES, shared=divided_by_ranks(collective))


def size_of_call(size: int, problem: Problem) -> int:
    """Return the bytes of the call of a problem that a size stands for; itself if it is empty."""
    return called_size(size, problem.collective, problem.topology.size) or size


def _called(size: int, ranks: int, element_bytes: int, *, shared: bool) -> int:
    if size % ((ranks if shared else 1) * element_bytes) == 0:
        return size
    grain = ranks * _ALIGNED if shared else element_bytes
    return size // grain * grain


def usual_size(most: int, collective: Collective, ranks: int) -> int:
    """Return the largest size up to `most` bytes that people send to so many ranks.

    A power of two; where the message is divided among the ranks, times their odd factor. Where
    that is more than `most`, `most` itself.
    """
    return _usual(most, _factor(ranks, shared=divided_by_ranks(collective)))


def _factor(ranks: int, *, shared: bool) -> int:
    return _odd(ranks) if shared else 1


def _usual(most: int, factor: int) -> int:
    return factor << (most // factor).bit_length() - 1 if most >= factor else most


def _odd(number: int) -> int:
    return number // (number & -number)


def dividing(parts: int, most: int, least: int = 1) -> int:
    """Return the largest divisor of a number of parts from `least` to `most`.

    Where there is none, or no parts (0), it is the largest power of two up to `most`, which divides
    other messages.
    """
    found = _divisor_up_to(parts, most) if parts and most > 0 else 0
    return found if found >= least else power_of_two(most)


def _divisor_up_to(parts: int, most: int) -> int:
    """Return the largest divisor of a number of parts up to `most`.

    Those above the root are found by what they leave, so that `most` may be any number.
    """
    root = isqrt(parts)
    large = (parts // left for left in range(-(-parts // most), root + 1) if parts % left == 0)
    small = (number for number in range(min(most, root), 0, -1) if parts % number == 0)
    return next(chain(large, small))


def trimmed(parts: int, most: int, roots: int) -> int:
    """Return the largest divisor of some parts up to `most` that is at most `roots` smaller, or 0.

    So many chunks are left if some of the roots carry one less than others.
    """
    numbers = range(most, max(0, most - roots - 1), -1) if parts else ()
    return next((number for number in numbers if parts % number == 0), 0)


def divided_by_ranks(collective: Collective) -> bool:
    """Whether a message is divided among the ranks; else every rank has a whole one."""
    return collective in _PARTS


def shares_may_differ(problem: Problem) -> bool:
    """Whether roots may carry unequal shares: several of them, none with a part of its own."""
    return not divided_by_ranks(problem.collective) and len(problem.roots) > 1


def divides(number: int, parts: int) -> bool:
    """Whether messages of so many parts can be cut into a number of chunks; 0 parts: usual ones."""
    return parts % number == 0 if parts else number & (number - 1) == 0


def power_of_two(most: int) -> int:
    """Return the largest power of two up to a number, as many chunks divide most calls; 0 for 0."""
    return 1 << most.bit_length() >> 1
