"""The order of waves: every rank turns to the next box when all others do.

Transfers come by the time at which they could begin if each took one beat and each segment of a
tree followed the one before it by a beat. Those of one beat come by how many boxes further, in a
circle, lies what their data is for or comes from: so no two boxes send to one at a time, sums
begin with the same boxes everywhere, and what is on its way to other boxes goes before what
stays. Within a box the peers are taken in turn as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.model import Topology, Transfer

Tree = tuple[int, int]
"""Phase and number of a tree, as in `colsynth.model.Origin`."""


def waves(transfers: Sequence[Transfer], topology: Topology, lag: int = 0) -> list[int]:
    """Return the places of the transfers in the order of waves.

    Parameters
    ----------
    transfers : sequence of Transfer
        Each after those it needs.
    topology : Topology
    lag : int
        Beats by which a phase begins later than it could behind the one before it. A sum of n
        takes n - 1 steps in a row, where a beat may have fewer: those who wait for it hold up
        what else their threadblocks do.
    """
    roots = _roots(transfers)
    box = boxes(topology)
    count = 1 + max(box)
    size = topology.size
    beats: list[int] = []
    phases: list[int] = []
    keys = []
    for place, transfer in enumerate(transfers):
        source, target, origin = transfer.source, transfer.target, transfer.origin
        phase, _, tree, _, segment = origin
        begun = 0
        for other in transfer.after:
            beat = beats[other] + 1 + (lag if phases[other] < phase else 0)
            begun = beat if beat > begun else begun
        beats.append(begun)
        phases.append(phase)
        root = box[roots[phase, tree]]
        if transfer.reduces:
            shift = (root - box[source]) % count or count
        else:
            shift = (box[target] - root) % count
        keys.append((begun + segment, shift, (target - source) % size, place))
    return [key[-1] for key in sorted(keys)]


def boxes(topology: Topology) -> list[int]:
    """Return a number from 0 on for the box of every rank; GPUs in no box have one together."""
    given = [topology.nodes[node].box for node in topology.ranks]
    named = [-1 if box is None else box for box in given]
    number = {box: place for place, box in enumerate(sorted(set(named)))}
    return [number[box] for box in named]


def _roots(transfers: Sequence[Transfer]) -> dict[Tree, int]:
    """Return the rank at which the chunks of each tree begin or end.

    Copies begin at the only rank that gets none, sums end at the only one that sends none.
    Where there is no such rank, as in what is no tree, the first of all stands for it.
    """
    inner: dict[Tree, set[int]] = {}
    outer: dict[Tree, set[int]] = {}
    ends = {(*t.origin[:3], t.reduces, t.source, t.target) for t in transfers}
    for phase, _, number, reduces, source, target in ends:
        near, far = (target, source) if reduces else (source, target)
        inner.setdefault((phase, number), set()).add(near)
        outer.setdefault((phase, number), set()).add(far)
    return {tree: min(ranks - outer[tree], default=min(ranks)) for tree, ranks in inner.items()}
