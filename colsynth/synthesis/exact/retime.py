"""From a schedule that is known to the shortest one in which chunks wait for no step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.model import TimedPhase
from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.intervals import Timing
from colsynth.synthesis.exact.neighbourhood import improve
from colsynth.synthesis.exact.pack import Row, packed
from colsynth.synthesis.exact.steps import Answer, Sent, span
from colsynth.synthesis.exact.worker import solve
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.phases import last_end, phase_of

Ints = NDArray[np.int64]

_PAIRS = 1000
"""(Chunk, hop) pairs per unit of work. Larger models take many seconds beside the work that the
solver counts: 15,000 pairs of two DGX-2 took 70 s at 10 units."""


class Found(NamedTuple):
    """A phase outwards, on the hops of its instance.

    Parameters
    ----------
    end : int
        Ticks.
    phase : TimedPhase
    proof : str
    bound : int
        Ticks that no schedule of these chunks beats; 0 where the solver proves none.
    """

    end: int
    phase: TimedPhase
    proof: str
    bound: int = 0


@dataclass(frozen=True)
class Retiming:
    """What is asked.

    Parameters
    ----------
    item : Wants
    begin : (int64 (links,), int64 (C,))
        When each link falls free, and when each chunk is there.
    ticks : int
        What some bound asks for.
    work : float
    seed : int
    proof : callable
        From an instance and an answer to words.
    """

    item: Wants
    begin: tuple[Ints, Ints]
    ticks: int
    work: float
    seed: int
    proof: Callable[[Instance, Answer], str]

    def best(self, instances: list[Instance], rows: list[Row], found: Found | None) -> Found | None:
        """Return the shortest schedule found, or what is known where none is shorter.

        Parameters
        ----------
        instances : list of Instance
            On the same hops; those with symmetries first, as they take less work.
        rows : list of Row
            What the matcher does, on the hops of the phase.
        found : Found, optional
            What is known so far.
        """
        work, most = self.work, _PAIRS * self.work
        known = _placed(instances[0], rows, self.item)
        whole = len(known) == len(rows)
        if found is None and not whole:
            return None
        if found is not None and not (
            whole and _end(instances[0], known) * instances[0].unit <= found.end
        ):
            known = _known(instances[0], found.phase, self.item)
        if found is None and instances[0].chunks * len(instances[0].hops) > most:
            return self._improved(instances[-1], known)
        for asked in instances:
            if asked.chunks * len(asked.hops) > most or work < 1:
                break
            limit = _end(asked, known)
            least = min(self.ticks // asked.unit, limit)
            answer = solve(asked, Timing(work, least, limit, self.seed, known))
            work -= answer.work
            if not answer.sent:
                continue
            phase = self._phase(asked, answer)
            whole = asked.whole and not asked.symmetries and answer.status == "optimal"
            bound = answer.units * asked.unit * whole
            if found is None or last_end(phase) < found.end + bool(bound):
                found = Found(last_end(phase), phase, self.proof(asked, answer), bound)
            if answer.status != "optimal":
                break
            known = answer.sent
        return found

    def _improved(self, asked: Instance, known: tuple[Sent, ...]) -> Found:
        """Return what moving a few chunks at a time makes of a schedule."""
        sent = improve(asked, known, self.ticks // asked.unit, self.work, self.seed)
        phase = self._phase(asked, Answer("feasible", sent, _end(asked, sent)))
        claim = "no more than the bound: chunks were moved a few at a time"
        return Found(last_end(phase), phase, claim)

    def _phase(self, asked: Instance, answer: Answer) -> TimedPhase:
        """Return what the solver found, moved forward where there is room."""
        phase = packed(asked, answer.sent, self.item, self.begin)
        if last_end(phase) <= answer.units * asked.unit or any(x.any() for x in self.begin):
            return phase
        if not asked.whole:
            return phase
        columns = (np.array(column, np.int64) for column in zip(*answer.sent, strict=True))
        start, chunk, hop = columns
        number = self.item.number[chunk]
        return phase_of(self.item.direction, asked.hops, start * asked.unit, hop, number)


def _placed(asked: Instance, rows: list[Row], item: Wants) -> tuple[Sent, ...]:
    """Return rows of a phase as the solver takes them, without those that may not be."""
    row = {old: h for h, old in enumerate(asked.was.tolist())}
    place = {number: c for c, number in enumerate(item.number.tolist())}
    return tuple(
        Sent(-(-start // asked.unit), place[number], row[hop])
        for start, hop, number in rows
        if hop in row and (place[number], row[hop]) not in asked.barred
    )


def _known(asked: Instance, phase: TimedPhase, item: Wants) -> tuple[Sent, ...]:
    """Return a phase on the hops of an instance as the solver takes it."""
    starts = phase.starts() - phase.starts().min()
    columns = starts.tolist(), asked.was[phase.hop_of()].tolist(), phase.chunk.tolist()
    return _placed(asked, [Row(*row) for row in zip(*columns, strict=True)], item)


def _end(asked: Instance, sent: tuple[Sent, ...]) -> int:
    """Return when the last of some chunks arrives, in units."""
    taken = span(asked)
    return max((x.step + int(taken[x.hop]) for x in sent), default=0)
