"""Event-by-event matching where everyone in a group wants everything (`kernels.matching`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import offsets
from colsynth.kernels.events import NOW, SENT
from colsynth.kernels.matching import EARLIEST, OLDEST, RAREST, Levels, Logs, hold_born, match
from colsynth.model import Hops, TimedPhase
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.fabric import agenda_of, fabric_of
from colsynth.synthesis.timed.phases import phase_of
from colsynth.synthesis.timed.progress import STEP, WorkMeter
from colsynth.synthesis.timed.regions import Region

Ints = NDArray[np.int64]

POLICIES = {"oldest": OLDEST, "rarest": RAREST, "earliest": EARLIEST}


@dataclass(frozen=True)
class Spread:
    """A phase in which everyone in a group wants everything.

    Parameters
    ----------
    hops : Hops
        Between members of the same group only.
    groups : tuple of tuple of int
    gpus : int
    wants : Wants
        Without lists of who wants what.
    regions : tuple of Region
        Sets that every chunk should enter once.
    """

    hops: Hops
    groups: tuple[tuple[int, ...], ...]
    gpus: int
    wants: Wants
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Tactic:
    """How one try chooses.

    Parameters
    ----------
    policy : str
        A key of `POLICIES`.
    strict : bool
        Whether a chunk may not enter a region twice at all.
    turn : int
        Which target chooses first.
    whole : bool
        Whether the whole way of a chunk makes it urgent, not only that to its fullest hop.
    order : int
        Which order of the hops routing takes the first of, where several are as good.
    short : bool
        Whether chunks take shortest ways, however full these are.
    """

    policy: str
    strict: bool
    turn: int
    whole: bool = False
    order: int = 0
    short: bool = False


def match_events(
    spread: Spread, start: tuple[Ints, Ints], tactic: Tactic, meter: WorkMeter
) -> TimedPhase:
    """Return the phase that matching gives; short of transfers where some cannot be made.

    Parameters
    ----------
    spread : Spread
    start : (int64 (links,), int64 (C,))
        When each link falls free, and when each chunk is there.
    tactic : Tactic
    meter : WorkMeter
    """
    hops, wants = spread.hops, spread.wants
    busy, born = start
    fabric = fabric_of(hops, spread.gpus, len(busy))
    levels = _levels(spread, tactic.strict)
    logs = _logs(levels, spread)
    hold_born(levels, logs)
    room = sum(len(spread.groups[g]) - 1 for g in _group_of_chunks(spread.groups, levels))
    agenda = agenda_of(fabric, busy, room, born, tactic.turn)
    before = -1
    while before < agenda.scalars[SENT]:
        before = int(agenda.scalars[SENT])
        match(fabric, agenda, levels, logs, POLICIES[tactic.policy], STEP)
        meter.add(int(agenda.scalars[SENT]) - before, int(agenda.scalars[NOW]))
    sent = int(agenda.scalars[SENT])
    return phase_of(
        wants.direction, hops, agenda.start[:sent], agenda.hop[:sent], agenda.chunk[:sent]
    )


def _levels(spread: Spread, strict: bool) -> Levels:
    """Return which rows count for hops and GPUs; row gpus + i is region i."""
    hops, gpus = spread.hops, spread.gpus
    around: list[list[int]] = [[] for _ in range(gpus)]
    for number, region in enumerate(spread.regions):
        for rank in region:
            around[rank].append(gpus + number)
    first, row = [0], []
    for source, target in zip(hops.source.tolist(), hops.target.tolist(), strict=True):
        entered = [r for r in around[target] if r not in around[source]]
        row += entered if entered and strict else [*entered, target]
        first.append(len(row))
    return Levels(
        first=np.array(first),
        row=np.array(row, np.int32),
        member_first=offsets([1 + len(rows) for rows in around]),
        member=np.array([r for v in range(gpus) for r in (v, *around[v])], np.int32),
        born_gpu=spread.wants.holders.items,
        born=np.arange(len(spread.wants.number), dtype=np.int32),
    )


def _group_of_chunks(groups: tuple[tuple[int, ...], ...], levels: Levels) -> list[int]:
    group_of = {rank: number for number, group in enumerate(groups) for rank in group}
    return [group_of[rank] for rank in levels.born_gpu.tolist()]


def _logs(levels: Levels, spread: Spread) -> Logs:
    """Return empty logs; what a GPU's group does not ask for counts as held."""
    gpus, groups, chunks = spread.gpus, spread.groups, len(spread.wants.number)
    has = np.zeros((gpus + len(spread.regions), (chunks + 63) // 64), np.uint64)
    held = np.zeros(gpus, np.int64)
    if len(groups) == 1:
        held[list(groups[0])] = chunks
    else:
        of_chunk = np.array(_group_of_chunks(groups, levels))
        for number, group in enumerate(groups):
            bits = np.packbits(of_chunk != number, bitorder="little")
            bits = np.pad(bits, (0, 8 * has.shape[1] - len(bits)))
            has[list(group)] = bits.view("<u8")
            held[list(group)] = int((of_chunk == number).sum())
    first = offsets(held)
    return Logs(
        has=has,
        holders=np.zeros(chunks, np.int32),
        log=np.empty(int(first[-1]), np.int32),
        held=np.zeros(gpus, np.int64),
        first=first,
        cursor=np.zeros(len(levels.row), np.int32),
        missing=held,
        asleep=np.zeros(len(levels.first) - 1, np.bool_),
    )
