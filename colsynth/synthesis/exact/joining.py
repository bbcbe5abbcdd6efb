"""Allreduces whose phases share steps (`joint`): from what is known to the shortest one found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Direction, TimedPhase
from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.joint import JointQuestion, doubled, fewest_joint_steps
from colsynth.synthesis.exact.pack import timed
from colsynth.synthesis.exact.steps import Answer, Sent
from colsynth.synthesis.exact.worker import solve
from colsynth.synthesis.timed.phases import last_end, phase_of

_MOST = 20_000
"""Choices of chunk, link and step, of both phases, beyond which the model is left alone."""


@dataclass(frozen=True)
class Joined:
    """An allreduce whose phases share steps.

    Parameters
    ----------
    end : int
        Ticks.
    phases : tuple of TimedPhase
        Inwards and outwards, in the direction of data.
    answer : Answer
    steps : int
    proof : str
        What is proven, in words.
    """

    end: int
    phases: tuple[TimedPhase, ...]
    answer: Answer
    steps: int
    proof: str = ""


def joined(
    asked: Instance, known: Sequence[TimedPhase], number: NDArray[np.int32], way: JointQuestion
) -> Joined | None:
    """Return the shortest allreduce found; None where none is, or where the model is too large.

    Parameters
    ----------
    asked : Instance
        Of the outward phase.
    known : sequence of TimedPhase
        An allreduce to begin with.
    number : int32 (C,)
        Of every chunk.
    way : JointQuestion
        Its steps are 0 for the fewest possible and one more. They share its work.
    """
    both = doubled(asked)
    fewest = fewest_joint_steps(both)
    if both.chunks * len(both.hops) * (fewest + 1) > _MOST:
        return None
    tried = (way.steps,) if way.steps else (fewest, fewest + 1)
    hint = joint_steps(both, known, number)
    best: Joined | None = None
    fewer = Answer("unknown")
    for steps in tried:
        shown = tuple(x for x in hint if x.step < steps)
        below = fewer.units if fewer.status == "optimal" else 0
        work = way.work / len(tried)
        fewer = solve(both, replace(way, steps=steps, work=work, below=below, hint=shown))
        if fewer.sent:
            phases = joint_phases(both, fewer.sent, len(both.moving), number)
            end = max(map(last_end, phases))
            if best is None or end < best.end:
                best = Joined(end, phases, fewer, steps)
    return best


def joint_phases(
    asked: Instance, sent: Sequence[Sent], links: int, number: NDArray[np.int32]
) -> tuple[TimedPhase, TimedPhase]:
    """Return the phases of an answer, inwards and outwards, each transfer as early as it can be.

    Parameters
    ----------
    asked : Instance
        Doubled.
    sent : sequence of Sent
    links : int
    number : int32 (C,)
        Of every chunk.
    """
    hops, chunks = asked.hops, asked.chunks // 2
    there = {(chunks + c, v): 0 for c in range(chunks) for v in asked.wanted[c]}
    roots = {(chunks + c, root): (c, root) for c in range(chunks) for root in asked.holders[c]}
    begun, hop, chunk = timed(hops, sent, np.zeros(links, np.int64), there, roots)
    inward = chunk >= chunks

    def phase(direction: Direction, some: NDArray[np.bool_]) -> TimedPhase:
        return phase_of(direction, hops, begun[some], hop[some], number[chunk[some] % chunks])

    return phase(Direction.IN, inward), phase(Direction.OUT, ~inward)


def joint_steps(
    asked: Instance, phases: Sequence[TimedPhase], number: NDArray[np.int32]
) -> tuple[Sent, ...]:
    """Return the steps of an allreduce in two phases: as early as they can be.

    Hops that the instance leaves out are dropped; what is left may be no schedule, but is a hint.
    """
    row = {old: h for h, old in enumerate(asked.was.tolist())}
    place = {n: c for c, n in enumerate(number.tolist())}
    level: dict[tuple[int, int], int] = {}
    found = []
    rows = []
    for phase in phases:
        shift = len(place) * (phase.direction is Direction.IN)
        columns = phase.starts().tolist(), phase.hop_of().tolist(), phase.chunk.tolist()
        rows += [(start, hop, shift + place[n]) for start, hop, n in zip(*columns, strict=True)]
    for _, old, c in sorted(rows):
        h = row.get(old)
        if h is None:
            continue
        u, v = int(asked.hops.source[h]), int(asked.hops.target[h])
        step = level.get((c, u), 0)
        found.append(Sent(step, c, h))
        root = v in asked.holders[c]
        what = (c % len(place) if root else c), v
        level[what] = max(level.get(what, 0), step + 1)
    return tuple(sorted(found))
