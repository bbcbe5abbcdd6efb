"""Which timed schedules are tried beside the first one, and how far they are varied."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from colsynth.model import TimedSchedule
from colsynth.search.levels import LATE, RIVAL, SLACK, TIMED
from colsynth.search.measured import Measured
from colsynth.search.neighbours import Alternatives
from colsynth.search.searcher import Searcher
from colsynth.search.wish import Wish
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
    if not any(issubclass(item.gives, TimedSchedule) for item in best.plan.pipeline.passes):
        return ()
    schedule = workshop.schedule(best.plan)
    is_full = isinstance(schedule, TimedSchedule) and schedule.link_rate >= optimum
    return LATE if is_full else ()


def with_chunks(searcher: Searcher, wish: Wish, optimum: Fraction | None) -> list[Alternatives]:
    """Return schedules of two chunks per GPU with all protocols, where a timed one leads.

    They need fewer copies than the best schedule of one chunk, with which they are slower: an
    alltoall of 64 MiB by rccl on an MI250 takes 1551 us so, 1659 otherwise.
    """
    best = searcher.best()
    if best is None or best.plan.algorithm != TIMED or best.plan.option("chunks_per_gpu") != 1:
        return []
    if needless(best, searcher.workshop, optimum) or "chunks_per_gpu" in wish.settings:
        return []
    copies = (wish.settings["instances"],) if "instances" in wish.settings else (1, 2)
    changes = [{LATE[0]: 2, "lower-timed.instances": number} for number in copies]
    return [
        (chunked,)
        for plan in wish.starts(TIMED)
        for protocol in searcher.protocols
        for chunked in replace(plan, protocol=protocol).with_each(changes)
    ]


def not_varied(searcher: Searcher, wish: Wish) -> Alternatives:
    """Return timed schedules that were tried but not varied, and may win (`RIVAL`, `SLACK`)."""
    best, timed = searcher.best(), searcher.best(TIMED)
    if best is None or timed is None or searcher.behind(best) <= SLACK:
        return ()
    if searcher.ratio(timed, best) > RIVAL:
        return ()
    varied = best.plan.option("size")
    return tuple(plan for plan in wish.starts(TIMED) if plan.option("size") != varied)
