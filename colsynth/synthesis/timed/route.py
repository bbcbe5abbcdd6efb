"""Chunks that not everybody wants: a tree for each, then who goes first on every hop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import group_by, offsets
from colsynth.kernels.events import NOW, SENT
from colsynth.kernels.routing import HopTable, route_pass
from colsynth.kernels.sending import Piles, Tasks, send_tasks
from colsynth.kernels.trees import link_tasks
from colsynth.model import Hops, TimedPhase
from colsynth.synthesis.timed.demands import Lists, Wants
from colsynth.synthesis.timed.fabric import agenda_of, fabric_of
from colsynth.synthesis.timed.match import Tactic
from colsynth.synthesis.timed.phases import phase_of
from colsynth.synthesis.timed.progress import STEP, WorkMeter
from colsynth.synthesis.timed.sketched import Part, all_hops

Ints = NDArray[np.int64]

_FINE = 2**20
"""The longest time of a link, in the units that routing counts in."""

_NEVER_FULL = 2**50

_PASSES = 24
"""Most passes over all chunks; routing stops as soon as passes no longer help."""

_WORK = 2**26
"""Hops that the searches of one pass may look at; above, chunks share searches."""


@dataclass(frozen=True)
class Trees:
    """The hops of every chunk's tree, each after the one that reaches its source.

    Parameters
    ----------
    first : int64 (C + 1,)
    hop : int32 (T,)
    """

    first: Ints
    hop: NDArray[np.int32]


def route(
    hops: Hops,
    gpus: int,
    links: int,
    wants: Wants,
    wanted: Lists,
    tactic: Tactic,
    meter: WorkMeter,
    parts: tuple[Part, ...] = (),
) -> Trees:
    """Return trees that load all links as evenly as passes of rerouting can.

    Or the shortest, which are faster where latency is most of the time: an alltoall of 16 KiB on an
    MI250 takes 0.7 times as long by them, and one of 64 MiB 1.7 times.

    Parameters
    ----------
    hops : Hops
    gpus, links : int
    wants : Wants
        Of which everyone can be reached.
    wanted : Lists
        Who wants each chunk.
    tactic : Tactic
        Its order is the seed of that in which hops are looked at, 0 for that in `hops`: of equal
        paths the one seen first is taken.
    meter : WorkMeter
        Told of every pass.
    parts : tuple of Part
        Which chunks may take which hops, each chunk in one part; any, unless given.
    """
    parts = parts or (all_hops(hops, wants),)
    tables = [_table(hops, gpus, keep, tactic.order) for _, keep in parts]
    turned = [_turned(table) for table in tables]
    lists = [(wants.holders.take(index), wanted.take(index)) for index, _ in parts]
    chunks = len(wants.number)
    share = max(1, chunks * len(hops) // _WORK)
    load = np.zeros(links, np.int64)
    trees = [Trees(np.zeros(len(x) + 1, np.int64), np.empty(0, np.int32)) for x, _ in parts]
    best: Trees | None = None
    least, idle = 0, 0
    for number in range(1 if tactic.short else _PASSES):
        # Shortest ways first; from then on full is what the last pass filled most.
        reference = max(1, int(load.max())) if number else _NEVER_FULL
        for i, (holders, targets) in enumerate(lists):
            # A tree reaches no GPU twice; pages that no tree needs are never touched.
            count = len(parts[i][0])
            new = np.zeros(count + 1, np.int64), np.empty(count * (gpus - 1), np.int32)
            edges = route_pass(
                (turned if idle % 2 else tables)[i],
                hops.source,
                holders.first,
                holders.items,
                targets.first,
                targets.items,
                load,
                reference,
                share,
                (trees[i].first, trees[i].hop),
                new,
            )
            trees[i] = Trees(new[0], new[1][:edges].copy())
        meter.tell(f"routing, pass {number + 1}", 0, 0)
        most = int(load.max())
        idle += 1
        if best is None or most < least:
            idle = 0 if best is None or most * 200 < least * 199 else idle
            best, least = _joined(trees, parts, chunks), most
        if idle >= 3:
            break
    return best or _joined(trees, parts, chunks)


def _joined(trees: list[Trees], parts: tuple[Part, ...], chunks: int) -> Trees:
    """Return the trees of all parts, in the order of the chunks."""
    if len(trees) == 1:
        return trees[0]
    sizes = np.zeros(chunks, np.int64)
    for tree, (index, _) in zip(trees, parts, strict=True):
        sizes[index] = np.diff(tree.first)
    first = offsets(sizes)
    hop = np.empty(first[-1], np.int32)
    for tree, (index, _) in zip(trees, parts, strict=True):
        shift = np.repeat(first[:-1][index] - tree.first[:-1], np.diff(tree.first))
        hop[shift + np.arange(len(tree.hop))] = tree.hop
    return Trees(first, hop)


def _table(hops: Hops, gpus: int, keep: NDArray[np.bool_], order: int) -> HopTable:
    """Return the hops as routing wants them; those that are not kept lead out of no GPU."""
    kept = np.nonzero(keep)[0]
    if order:
        kept = np.random.default_rng(order).permutation(kept)
    out_first, out = group_by(hops.source[kept], gpus)
    out = kept[out]
    times = hops.end - hops.begin
    weight = np.maximum(1, times * _FINE // int(times.max()))
    return HopTable(out_first, out.astype(np.int32), hops.target, hops.first, hops.links, weight)


def _turned(table: HopTable) -> HopTable:
    """Return the table with the hops out of every GPU the other way round.

    Of equal paths the one seen first is taken. A pass that sees them the other way round
    moves chunks between equals, which leads on where no chunk by itself can do better.
    """
    begin, end = table.out_first[:-1], table.out_first[1:]
    place = np.repeat(begin + end - 1, end - begin) - np.arange(len(table.out))
    return table._replace(out=table.out[place])


def send_along(
    hops: Hops,
    gpus: int,
    wants: Wants,
    trees: Trees,
    start: tuple[Ints, Ints],
    tactic: Tactic,
    meter: WorkMeter,
) -> TimedPhase:
    """Return the phase in which every chunk takes its tree.

    Parameters
    ----------
    hops : Hops
    gpus : int
    wants : Wants
    trees : Trees
    start : (int64 (links,), int64 (C,))
        When each link falls free, and when each chunk is there.
    tactic : Tactic
    meter : WorkMeter
    """
    busy, born = start
    fabric = fabric_of(hops, gpus, len(busy))
    first, _ = group_by(trees.hop, len(hops))
    total = len(trees.hop)
    left = np.zeros(len(busy), np.int64)
    uses = np.repeat(np.diff(first), np.diff(fabric.first))
    np.add.at(left, fabric.links, uses * (fabric.end - fabric.begin))
    load = np.add.reduceat(left[fabric.links], fabric.first[:-1]) // np.diff(fabric.first)
    tasks, chunk = _tasks(hops, gpus, trees, load, tactic.whole)
    piles = Piles(
        first=first,
        size=np.zeros(len(hops), np.int64),
        task=np.empty(total, np.int32),
        place=np.empty(total, np.int64),
        made=np.zeros(1, np.int64),
        left=left,
    )
    agenda = agenda_of(fabric, busy, total, born, tactic.turn)
    before = -1
    while before < agenda.scalars[SENT]:
        before = int(agenda.scalars[SENT])
        send_tasks(fabric, agenda, tasks, piles, STEP)
        meter.add(int(agenda.scalars[SENT]) - before, int(agenda.scalars[NOW]))
    number = wants.number[chunk[agenda.chunk]]
    return phase_of(wants.direction, hops, agenda.start, agenda.hop, number)


def _tasks(
    hops: Hops, gpus: int, trees: Trees, load: Ints, whole: bool
) -> tuple[Tasks, NDArray[np.int64]]:
    """Return the edges as tasks, and the chunk of each."""
    chunk = np.repeat(np.arange(len(trees.first) - 1), np.diff(trees.first))
    parent, tail, lead, crux = link_tasks(
        trees.first, trees.hop, hops.source, hops.target, hops.duration, load, gpus
    )
    lead = tail if whole else lead
    rooted = parent < 0
    child_first, child = group_by(parent[~rooted], len(parent))
    root_first, root = group_by(chunk[rooted], len(trees.first) - 1)
    below, roots = np.nonzero(~rooted)[0][child], np.nonzero(rooted)[0][root]
    return (
        Tasks(
            hop=trees.hop,
            tail=tail,
            lead=lead,
            crux=crux,
            urgency=lead + load[crux],
            child_first=child_first,
            child=below.astype(np.int32),
            root_first=root_first,
            root=roots.astype(np.int32),
        ),
        chunk,
    )
