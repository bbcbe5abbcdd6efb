"""A window on each NIC: how many sends of a rank may be in flight on it.

Threadblocks that send at the same time share a NIC. All their data then arrives late and
together, and the GPUs that forward or reduce it are idle before and overloaded after. With a
window, a send also waits until an earlier one has completed. The waiting send comes later in the
global order, so no circular wait arises (`colsynth.lowering.order_transfers`).
"""

from __future__ import annotations

from collections import Counter
from math import ceil

from colsynth.cost import model_of
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.usable import bandwidth, pace
from colsynth.lowering.columns import Columns
from colsynth.lowering.hazards import Waits
from colsynth.model import ChunkProgram
from colsynth.runtimes.target import Target


def with_nic_window(
    program: ChunkProgram, columns: Columns, needed: Waits, window: int, target: Target
) -> Waits:
    """Return the waits of each operation, with those that keep sends within the window.

    Parameters
    ----------
    program : ChunkProgram
    columns : Columns
        Of its transfers.
    needed : tuple of tuple of int
        What each operation waits for already.
    window : int
        Sends in flight on a link that leaves a box, in multiples of what fills it.
    target : Target
    """
    exits = _exits(program, columns, window, target)
    taken: Counter[tuple[int, int]] = Counter()
    queues: dict[tuple[int, int], list[int]] = {}
    waits = list(needed)
    pairs = zip(columns.source.tolist(), columns.target.tolist(), strict=True)
    for number, pair in zip(columns.first_op.tolist(), pairs, strict=True):
        if pair not in exits:
            continue
        choice = exits[pair]
        link, most = choice[taken[pair] % len(choice)]
        taken[pair] += 1
        if link < 0:
            continue
        queue = queues.setdefault((pair[0], link), [])
        if len(queue) >= most:
            waits[number] = tuple(sorted({*needed[number], queue[-most]}))
        queue.append(number)
    return tuple(waits)


def _exits(
    program: ChunkProgram, columns: Columns, window: int, target: Target
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Return, per pair of ranks and way, the link out of the box and how many sends it takes.

    The link is -1 where a way has none. Pairs that never leave a box are left out.
    """
    topology = program.problem.topology
    model = model_of(target)
    speed = pace(model, target.protocol)
    sources, targets = columns.pairs(topology.size)
    pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
    found = {}
    for pair, choice in pair_routes(topology, pairs).items():
        links = [next((link for link in way if link in topology.network), -1) for way in choice]
        if max(links) >= 0:
            found[pair] = [
                (link, window * ceil(bandwidth(topology, link, model) / speed)) for link in links
            ]
    return found
