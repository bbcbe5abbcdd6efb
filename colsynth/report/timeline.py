"""How busy the links are over the time of one message, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from colsynth.simulate.trace import END, link_use

if TYPE_CHECKING:
    from colsynth.simulate.trace import LinkUse, Trace

BINS = 48
"""Columns of the heat map."""


def describe_load(traced: Trace) -> dict[str, Any]:
    """Return the mean use of every link that carries something, in `BINS` equal spans of time.

    Shares are of what the link carries at its efficiency, 0 to 1, rounded to thousandths.
    """
    end = float(traced.run.times[:, END].max(initial=0.0))
    edges = np.linspace(0.0, end, BINS + 1)
    rows = [[use.link, *_bins(use, edges)] for use in link_use(traced)]
    return {
        "size_bytes": traced.run.size,
        "time_us": round(end / 1e3, 6),
        "bins": BINS,
        "links": rows,
        "simulated_share": round(traced.run.tiling.simulated / traced.run.tiling.tiles, 6),
    }


def _bins(use: LinkUse, edges: Any) -> list[float]:
    """Return the mean of a step function between edges."""
    times = np.concatenate([[0.0], use.times])
    levels = np.concatenate([[0.0], use.share])
    area = np.concatenate([[0.0], np.cumsum(levels[:-1] * np.diff(times))])
    place = np.searchsorted(times, edges, side="right") - 1
    whole = area[place] + levels[place] * (edges - times[place])
    width = edges[1] - edges[0]
    found = np.diff(whole) / width if width else np.zeros(BINS)
    return [float(x) for x in found.round(3)]
