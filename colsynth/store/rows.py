"""A schedule's runs spelt out: one row for every transfer, or for every occupied link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.model import TimedPhase

Ints = NDArray[np.int64]


class TransferRows(NamedTuple):
    """Transfers, one row each; times in ticks.

    `start` to `end` is from the first link's start until the target holds the chunk; `hop` is
    the row of the phase's hops, `source` and `target` are ranks.
    """

    start: Ints
    end: Ints
    hop: Ints
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    chunk: NDArray[np.uint32]


class LinkRows(NamedTuple):
    """Links while they are occupied, one row for each transfer's each link; times in ticks.

    `transfer` is the row of `transfer_rows` that a row belongs to.
    """

    start: Ints
    end: Ints
    link: NDArray[np.int32]
    chunk: NDArray[np.uint32]
    transfer: Ints


def transfer_rows(phase: TimedPhase, first: int = 0, last: int | None = None) -> TransferRows:
    """Return the transfers of the hops from `first` to before `last`, hop by hop and in time.

    Parameters
    ----------
    phase : TimedPhase
    first, last : int, optional
        Rows of hops; all where left out. A phase of billions of transfers is read in parts.

    Returns
    -------
    TransferRows
    """
    hops, last = phase.hops, len(phase.hops) if last is None else last
    hop, start = phase.hop_of(first, last), phase.starts(first, last)
    return TransferRows(
        start=start,
        end=start + hops.duration[hop],
        hop=hop,
        source=hops.source[hop],
        target=hops.target[hop],
        chunk=phase.chunk[phase.first[first] : phase.first[last]].astype(np.uint32),
    )


def link_rows(phase: TimedPhase, first: int = 0, last: int | None = None) -> LinkRows:
    """Return the occupied links of the transfers of `transfer_rows`, in the same order.

    Parameters and returned rows are as there; a transfer has a row for each link of its hop.
    """
    moved = transfer_rows(phase, first, last)
    hops = phase.hops
    sizes = np.diff(hops.first)[moved.hop]
    transfer = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    place = np.arange(len(transfer)) - before[transfer] + hops.first[:-1][moved.hop][transfer]
    return LinkRows(
        start=moved.start[transfer] + hops.begin[place],
        end=moved.start[transfer] + hops.end[place],
        link=hops.links[place],
        chunk=moved.chunk[transfer],
        transfer=transfer,
    )
