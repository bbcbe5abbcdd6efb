"""Sends that share a way out of their box take turns on it.

Threadblocks that send at the same time share a NIC: all their data arrives late, at the same
time, and those who pass it on or add it up have nothing to do before and too much after. Here
a send also waits for an earlier one to be done. Who waits comes later in the global order, so
this closes no circle (`colsynth.lowering.order_transfers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

from colsynth.lowering.demand import Way, bandwidth, pace
from colsynth.lowering.hazards import Op, Waits
from colsynth.model import ChunkProgram
from colsynth.runtimes.target import Target
from colsynth.simulate import default_model
from colsynth.simulate.ways import is_network, ways


def in_turns(
    program: ChunkProgram, ops: Sequence[Op], needed: Waits, turns: int, target: Target
) -> Waits:
    """Return the waits of each operation, and those that make it take its turn.

    Parameters
    ----------
    program : ChunkProgram
    ops : sequence of Op
    needed : tuple of tuple of int
        What each operation waits for already.
    turns : int
        Sends at a time on a link that leaves a box, in multiples of what fills it.
    target : Target
    """
    topology = program.problem.topology
    model = default_model(target.profile)
    pairs = {(t.source, t.target) for t in program.transfers if not t.is_local}
    known = ways(topology, sorted(pairs))
    taken: Counter[tuple[int, int]] = Counter()
    queues: dict[tuple[int, int], list[int]] = {}
    waits = list(needed)
    for number, op in enumerate(ops):
        if not op.sends:
            continue
        transfer = program.transfers[op.transfer]
        pair = transfer.source, transfer.target
        way: Way = known[pair][taken[pair] % len(known[pair])]
        taken[pair] += 1
        link = next((link for link in way if is_network(topology, link)), None)
        if link is None:
            continue
        queue = queues.setdefault((transfer.source, link), [])
        most = turns * ceil(bandwidth(topology, link, model) / pace(target))
        if len(queue) >= most:
            waits[number] = tuple(sorted({*needed[number], queue[-most]}))
        queue.append(number)
    return tuple(waits)
