"""Algorithms that cannot win, as far as that is known before their programs are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from colsynth.model import Problem
from colsynth.runtimes.target import Target
from colsynth.search.searcher import Searcher
from colsynth.synthesis.baselines import build_ring, pipelined_numbers

_LEAST: dict[str, Callable[[Problem, Target, Sequence[int]], list[float]]] = {
    "ring": build_ring.least_seconds,
    "pipelined": pipelined_numbers.least_seconds,
}
"""By algorithm, the seconds that its program takes at least at each size, by any of its options.

Both have many steps, which take long to make: those of 64 GPUs 3 to 5 s each.
"""


def is_hopeless(algorithm: str, searcher: Searcher, size: int | None) -> bool:
    """Whether no program of an algorithm can be the best, by any protocol that may be tried.

    Parameters
    ----------
    algorithm : str
    searcher : Searcher
    size : int or None
        Bytes of the message that programs are for; None: of several sizes.
    """
    times, case = _LEAST.get(algorithm), searcher.workshop.case
    if times is None or case.profile.rounds:
        return False
    targets = [case.target(protocol, size) for protocol in searcher.protocols]
    found = [times(case.problem, target, case.sizes) for target in targets]
    return not searcher.may_win([min(each) for each in zip(*found, strict=True)])
