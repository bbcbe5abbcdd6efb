"""Round-robin order: in every beat, each box sends to a different box.

A beat is the time of one transfer. Transfers are sorted by the beat in which they could begin,
where each segment of a tree follows the one before it by a beat. Transfers of one beat are
sorted by the distance between their box and the box of their tree's root, counted round all
boxes. So no two boxes send to the same box at a time, sums begin with the same boxes everywhere,
and data for other boxes goes before data that stays. Peers within a box are served round-robin
too.
"""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.model import Topology, Transfer

Tree = tuple[int, int]
"""Phase and number of a tree, as in `colsynth.model.Origin`."""


def round_robin(transfers: Sequence[Transfer], topology: Topology, lag: int = 0) -> list[int]:
    """Return the indices of the transfers in round-robin order.

    Parameters
    ----------
    transfers : sequence of Transfer
        Each after those it needs.
    topology : Topology
    lag : int
        Beats by which a phase begins later than the phase before it allows. A sum of n values
        takes n - 1 steps in a row, which can be longer than a beat. A transfer that waits for
        the sum delays whatever else its threadblock does.
    """
    roots = _roots(transfers)
    box = box_numbers(topology)
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


def box_numbers(topology: Topology) -> list[int]:
    """Return the number of every rank's box, from 0 on; GPUs outside all boxes share one."""
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
