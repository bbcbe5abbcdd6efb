"""Executes a plan: launches one after the other on every rank, ranks independent.

A threadblock's operations are unordered between two nops; signals and semaphores order what came
before the last nop. Every counter has one threadblock at each end (rule P07), so all executions
do the same, and one of them tells whether any hangs, races or goes wrong. The next launch of a
rank begins when its threadblocks are done, whatever the others do; that is a rank arbitrarily
late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from colsynth.verify.plans.arrays import Arrays
from colsynth.verify.plans.resolved import Action

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from colsynth.verify.plans.counters import Counters
    from colsynth.verify.plans.cut import Cut
    from colsynth.verify.plans.resolved import Ints


@dataclass(frozen=True)
class Race:
    """What an operation did while another did something to the same cell.

    Parameters
    ----------
    block : int
        Number of the threadblock that did it, or ran last before a call that did.
    action : Action
    text : str
    """

    block: int
    action: Action
    text: str


@dataclass(frozen=True)
class Outcome:
    """What happened.

    Parameters
    ----------
    stuck : list of (int, Action)
        Threadblocks that never finish, and where.
    races : list of Race
        The first ones.
    raced : int
        How many there are.
    chunks, masks : arrays (launches, ranks, cells), (launches, ranks, cells, words)
        What each launch left in the output: number of a chunk, which grows by `period` from launch
        to launch, and ranks that contribute.
    period : int
    """

    stuck: list[tuple[int, Action]]
    races: list[Race]
    raced: int
    chunks: Ints
    masks: NDArray[np.uint64]
    period: int


def execute(cut: Cut, counters: Counters, launches: int, *, flushes: bool) -> Outcome:
    """Run a plan for some launches.

    Parameters
    ----------
    cut : Cut
    counters : Counters
        Of that plan, each with one threadblock at most at either end.
    launches : int
    flushes : bool
        Whether ``pwsf`` waits until its source was read.
    """
    from colsynth.kernels.cells import FOUND
    from colsynth.kernels.launches import launch_all
    from colsynth.kernels.plans import AT, LAUNCH

    arrays = Arrays(cut, counters, launches, flushes=flushes)
    program, state, memory = arrays.program(), arrays.state(), arrays.memory()
    clocks = arrays.clocks(len(state.block) + int((state.queue[:, 1] - state.queue[:, 0]).sum()))
    outputs = int(program.call[:, 3].max(initial=0))
    chunks = np.full((launches, cut.program.header.ranks, outputs), -1)
    masks = np.zeros((*chunks.shape, memory.mask.shape[1]), np.uint64)
    launch_all(program, memory, state, clocks, chunks, masks)
    ends = np.diff(program.first).tolist()
    stuck = [
        (block, _action(arrays, int(program.first[block]) + at))
        for block, (at, launch) in enumerate(state.block[:, [AT, LAUNCH]].tolist())
        if launch < launches and at < ends[block]
    ]
    found = int(arrays.counts[FOUND])
    races = [_race(arrays, *row) for row in memory.races[:found].tolist()]
    return Outcome(stuck, races, found, chunks, masks, arrays.period)


def _action(arrays: Arrays, item: int) -> Action:
    return arrays.parts[int(arrays.cut.items[item, 0])].action


def _race(arrays: Arrays, block: int, item: int, component: int, what: int) -> Race:
    other = "the caller"
    if component < arrays.first_lane:
        rank, number = arrays.cut.program.blocks[component // arrays.stamps]
        other = f"threadblock {rank}/{number}"
    elif component < arrays.first_host:
        other = "a port channel"
    action = _action(arrays, item)
    texts = "read while it is written", "written twice at once", "written while it is read"
    name = "the next call" if what >= len(texts) else action.op.name
    return Race(block, action, f"{name}: {texts[what % len(texts)]} by {other}")
