"""The objective of a search: weighted predicted times of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from colsynth.model import Collective
from colsynth.runtimes.selection import LARGE, MEDIUM, SMALL, usual_size
from colsynth.search.measured import Measured

Score = tuple[float, float]
"""Weight of all sizes whose calls do not use the file, then the mean logarithm of the time.

Times at other sizes count if there are any. That of a crowded program is longer (`CROWDED`).
"""

ALONE = {SMALL: 0.05, LARGE: 0.95}
"""Weights of message sizes in bytes, for a file that serves all sizes.

A program that takes twice as long at the small one must be 3.6 % faster at the large one.
"""

BESIDE = {SMALL: 0.01, MEDIUM: 0.04, LARGE: 0.95}
"""Weights for a file beside a library, which serves small messages where the file is slower.

A program that takes twice as long at the medium size must be 2.9 % faster at the large one. With
the weights of `ALONE`, files of msccl were worth while at 1 GiB alone in 10 of 26 cases: 64 MiB
took up to 3.2 times as long as by the library. An allgather of 1 GiB on two DGX-2 took 9 % longer
than a ring.
"""

TIE = 1.02
"""Largest ratio of times at the main size at which plans count as equal there.

No model predicts 2 %, and plans that differ by less often differ by a third at other sizes.
"""

GAIN = 1.2
"""Least ratio of times at the other sizes that decides a tie. Less may be an error of the model."""


CROWDED = 1.5
"""A program that some GPUs may not hold (`Measured.crowded`) counts as so many times as slow.

It hangs where they do not. An alltoall of 1152 MiB among 72 GPUs on a switch is 18 % faster with
144 threadblocks than with 72, which is not worth it.
"""


@dataclass(frozen=True, slots=True)
class Objective:
    """What a search minimizes.

    Parameters
    ----------
    weights : tuple of float
        One for every size of a case; they add up to one.
    """

    weights: tuple[float, ...] = (1.0,)

    @classmethod
    def each(cls, sizes: Sequence[int]) -> tuple[Objective, ...]:
        """Return the objectives of `compare` and `tune`: every size by itself."""
        places = range(len(sizes))
        return tuple(cls(tuple(float(i == place) for i in places)) for place in places)

    @property
    def main(self) -> int:
        """The place of the size with the largest weight."""
        return self.weights.index(max(self.weights))

    def score(self, measured: Measured) -> Score | None:
        """Return the score to minimize; None where a size with weight was not simulated."""
        served, missed = list[tuple[float, float]](), list[tuple[float, float]]()
        for place, weight in enumerate(self.weights):
            seconds = measured.seconds[place]
            if not weight:
                continue
            if seconds is None:
                return None
            times = served if measured.exact[place] else missed
            times.append((weight, weight * log(seconds)))
        mean = sum(part for _, part in served or missed)
        return sum(weight for weight, _ in missed), mean + log(CROWDED) * measured.crowded

    def best(self, found: Iterable[Measured]) -> Measured | None:
        """Return the best of some results; of equal ones, the first."""
        scored = ((self.score(m), m) for m in found)
        known = ((score, m) for score, m in scored if score is not None)
        return min(known, key=lambda pair: pair[0], default=(None, None))[1]

    def chosen(self, ranked: Sequence[Measured]) -> Measured:
        """Return the result to keep of some, the best first: where they tie, other sizes decide."""
        places = range(len(self.weights))
        alone = Objective(tuple(float(place == self.main) for place in places))
        rest = 1 - self.weights[self.main] or 1.0
        others = Objective(tuple(w / rest * (i != self.main) for i, w in enumerate(self.weights)))
        first = ranked[0]

        def within(objective: Objective, measured: Measured, factor: float) -> bool:
            own, best = objective.score(measured), objective.score(first)
            if own is None or best is None:
                return False
            return own[0] <= best[0] and own[1] <= best[1] + log(factor)

        ties = (m for m in ranked if within(alone, m, TIE) and within(others, m, 1 / GAIN))
        return others.best(ties) or first


def usual(
    min_bytes: int, max_bytes: int | None, collective: Collective, ranks: int, *, beside: bool
) -> tuple[tuple[int, ...], Objective]:
    """Return sizes and objective for a file where nobody names a size.

    All sizes are usual for the collective and the ranks.

    Parameters
    ----------
    min_bytes, max_bytes : int
        The messages that the file serves at most; None: no limit.
    collective : Collective
    ranks : int
    beside : bool
        Whether a library serves what the file is too slow for.
    """
    weights = BESIDE if beside else ALONE
    most = usual_size(LARGE if max_bytes is None else min(LARGE, max_bytes), collective, ranks)
    found: dict[int, float] = {}
    for size, weight in weights.items():
        place = most if size == LARGE else usual_size(max(size, min_bytes), collective, ranks)
        found[min(place, most)] = found.get(min(place, most), 0.0) + weight
    return tuple(found), Objective(tuple(found.values()))
