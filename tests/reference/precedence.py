"""Slow twin of `colsynth.kernels.precedence`: everything before each step, as a set."""

from __future__ import annotations

from collections.abc import Sequence


def pasts(
    order: Sequence[int],
    block: Sequence[int],
    causes: Sequence[Sequence[int]],
    match: Sequence[int],
    weak: Sequence[bool],
) -> dict[int, set[int]]:
    """Return the steps that are surely complete before each step of `order` acts.

    The flag of a `weak` step tells of those before it alone.
    """
    before: dict[int, set[int]] = {}
    last: dict[int, int] = {}
    for step in order:
        seen: set[int] = set()
        if block[step] in last:
            seen |= before[last[block[step]]] | {last[block[step]]}
        if match[step] >= 0:
            seen |= before[match[step]] | {match[step]}
        for cause in causes[step]:
            if cause >= 0:
                seen |= before[cause] | (set() if weak[cause] else {cause})
        before[step] = seen
        last[block[step]] = step
    return before
