"""Who uses which counter, and rules P07 and P08: those of one launch come out even."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from colsynth.runtimes.rules import Findings
from colsynth.units import plural
from colsynth.verify.plans.resolved import BARRIER, GIVES, TAKES

if TYPE_CHECKING:
    from colsynth.verify.plans.cut import Cut
    from colsynth.verify.plans.resolved import Ints


@dataclass(frozen=True)
class Counters:
    """Which counter each thread of each operation uses.

    Parameters
    ----------
    begins : int array (O + 1,)
        First thread of each operation.
    queue, lane : int arrays (T,)
        Of every thread, -1 for none.
    gives, takes : int arrays
        Threads that put into their queue, and that take from it.
    """

    begins: Ints
    queue: Ints
    lane: Ints
    gives: Ints
    takes: Ints


def counters(cut: Cut) -> Counters:
    """Return who uses which queue."""
    queue: list[int] = []
    lane: list[int] = []
    begins, kinds = [0], []
    for part in cut.program.operations():
        action = part.action
        many = max(len(action.ends), len(action.lanes))
        queue += action.ends or [-1] * many
        lane += action.lanes or [-1] * many
        begins.append(begins[-1] + many)
        kinds.append(action.kind)
    first, queues = np.array(begins), np.array(queue, np.int64)
    kind = np.repeat(np.array(kinds), np.diff(first))
    named = queues >= 0
    return Counters(
        first,
        queues,
        np.array(lane, np.int64),
        np.flatnonzero(named & np.isin(kind, GIVES)),
        np.flatnonzero(named & np.isin(kind, TAKES)),
    )


def check_counters(cut: Cut, counters: Counters, findings: Findings) -> None:
    """Report counters that do not balance, or that several threadblocks share."""
    program = cut.program
    turns = np.repeat(cut.turns, np.diff(counters.begins))
    parts = np.cumsum([0, *map(len, program.parts)])
    block = np.searchsorted(parts, np.arange(parts[-1]), "right") - 1
    block = np.repeat(block, np.diff(counters.begins))
    count = len(program.start)
    sides = (counters.gives, counters.takes)
    moved = [np.bincount(counters.queue[k], turns[k], count).astype(int).tolist() for k in sides]
    users = [_pairs(counters.queue[k], block[k], turns[k]) for k in sides]
    for queue in range(count):
        given, taken = moved[0][queue], moved[1][queue]
        if given != taken:
            kind = program.kind(queue)
            words = ("release", "acquire") if kind == "semaphore" else ("signal", "wait")
            text = f"{plural(given, words[0])} and {plural(taken, words[1])}"
            text += f" are on one {kind} in one launch"
            place = _users(users[1] if taken else users[0], queue)[0]
            findings.add("P08", text, *program.blocks[place])
    for verb, found in zip(("signal on", "wait on"), users, strict=True):
        queues, many = np.unique(found[:, 0], return_counts=True)
        for queue in queues[many > 1].tolist():
            blocks = _users(found, queue)
            named = sorted(program.blocks[n][1] for n in blocks)
            text = f"threadblocks {named} {verb} one {program.kind(queue)}"
            findings.add("P07", text, *program.blocks[min(blocks)])
    _check_barriers(cut, findings)


def _pairs(queue: Ints, block: Ints, turns: Ints) -> Ints:
    """Return each pair of a queue and a threadblock once, in order."""
    pairs: Ints = np.unique(np.stack([queue, block], axis=1)[turns > 0], axis=0)
    return pairs


def _users(pairs: Ints, queue: int) -> list[int]:
    """Return the threadblocks of a queue, in order."""
    begin, end = np.searchsorted(pairs[:, 0], [queue, queue + 1])
    users: list[int] = pairs[begin:end, 1].tolist()
    return users


def _check_barriers(cut: Cut, findings: Findings) -> None:
    """Report barriers to which others come than they are for."""
    barriers: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    sizes: dict[tuple[int, int], set[int]] = defaultdict(set)
    turns, program = iter(cut.turns.tolist()), cut.program
    for number, block in enumerate(program.parts):
        for part, times in zip(block, turns, strict=False):
            if part.action.kind == BARRIER and times:
                key = (program.blocks[number][0], part.action.op.barrier_id or 0)
                barriers[key][number] += times
                sizes[key].add(part.action.op.num_threadblocks or 0)
    for (rank, barrier), counts in sorted(barriers.items()):
        if sizes[rank, barrier] != {len(counts)} or len(set(counts.values())) > 1:
            text = f"barrier {barrier} is for {sorted(sizes[rank, barrier])} threadblocks"
            findings.add("P08", f"{text}; {len(counts)} come to it", rank)
