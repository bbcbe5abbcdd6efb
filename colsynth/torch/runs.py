"""Views of many runs of chunks at once.

PyTorch's host makes views by one split in a fraction of the time of as many views one by one: on a
CPU with PyTorch 2.13, 0.4 us for each of 16 pieces, and 1.9 us for a `narrow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from colsynth.model import Slot


@dataclass(frozen=True, slots=True)
class Cut:
    """A buffer that is cut into pieces, some of which are runs.

    Parameters
    ----------
    buffer : str
    sizes : tuple of int
        Chunks of the pieces from the begin of the buffer; what is left is one more.
    picks : tuple of (int, int)
        Places of pieces that are runs, and the numbers of these.
    """

    buffer: str
    sizes: tuple[int, ...]
    picks: tuple[tuple[int, int], ...]


class Runs:
    """Gives runs of chunks numbers, one number to equal runs."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int, int], int] = {}

    def number(self, slot: Slot, count: int) -> int:
        """Return the number of a run of so many chunks."""
        return self._numbers.setdefault((slot.buffer, slot.offset, count), len(self._numbers))

    def cuts(self) -> tuple[Cut, ...]:
        """Return cuts that give every run: runs that overlap take several of a buffer."""
        layers: list[_Layer] = []
        for (buffer, first, count), number in sorted(self._numbers.items()):
            fits = (one for one in layers if one.buffer == buffer and one.end <= first)
            layer = next(fits, None)
            if layer is None:
                layer = _Layer(buffer)
                layers.append(layer)
            layer.append(first, count, number)
        return tuple(Cut(one.buffer, tuple(one.sizes), tuple(one.picks)) for one in layers)


class _Layer:
    """A cut as it grows."""

    def __init__(self, buffer: str) -> None:
        self.buffer, self.end = buffer, 0
        self.sizes: list[int] = []
        self.picks: list[tuple[int, int]] = []

    def append(self, first: int, count: int, number: int) -> None:
        if first > self.end:
            self.sizes.append(first - self.end)
        self.picks.append((len(self.sizes), number))
        self.sizes.append(count)
        self.end = first + count


def cut(
    buffers: Mapping[str, torch.Tensor], cuts: tuple[Cut, ...], chunk: int
) -> dict[int, torch.Tensor]:
    """Return the views of all runs by number, with chunks of so many elements."""
    views: dict[int, torch.Tensor] = {}
    for one in cuts:
        buffer = buffers[one.buffer]
        sizes = [chunks * chunk for chunks in one.sizes]
        pieces = buffer.split_with_sizes([*sizes, buffer.numel() - sum(sizes)])
        for place, number in one.picks:
            views[number] = pieces[place]
    return views
