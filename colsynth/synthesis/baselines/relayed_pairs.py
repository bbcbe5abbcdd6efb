"""All-pairs where connections do not reach every pair: data stops at others on the way."""

from __future__ import annotations

from collections.abc import Iterator

from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem, Tree
from colsynth.model.problem import PHASES
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.script import Script
from colsynth.synthesis.baselines.trees import flow, near_tree, paths_of

_Arrived = dict[tuple[int, int], list[int]]
"""Numbers of transfers by tree and the rank that they lead to."""


def relayed_pairs(problem: Problem, ways: LoadedRoutes, instances: int) -> ChunkProgram:
    """Return transfers along trees of fewest connections, one for every rank.

    A reduce-scatter adds up on the way. An allreduce passes on every contribution by itself, and
    all ranks add up, so data takes no more connections than in an allgather.

    Parameters
    ----------
    problem : Problem
        An allgather, reduce-scatter, allreduce or alltoall.
    ways : LoadedRoutes
        The connections.
    instances : int
        Parallel copies of the whole program.

    Raises
    ------
    InfeasibleError
        CS302: no data can pass between some two GPUs.
    """
    size, collective = problem.topology.size, problem.collective
    scatters = collective is Collective.REDUCE_SCATTER
    direction = Direction.IN if scatters else Direction.OUT
    even = collective is not Collective.ALLTOALL
    trees = [near_tree(ways, root, direction, even=even) for root in range(size)]
    script = Script(problem, 1 if collective is Collective.ALLREDUCE else size, instances)
    if collective is Collective.ALLTOALL:
        paths = [paths_of(tree) for tree in trees]
        away = ((source, distance) for distance in range(1, size) for source in range(size))
        pairs = ((source, (source + distance) % size) for source, distance in away)
        script.relay((source * size + sink, paths[source][sink]) for source, sink in pairs)
        return script.program(Ordering.FREE)
    adds = Direction.OUT if collective is Collective.ALLGATHER else Direction.IN
    _send_along(trees, direction, script, 0, adds, {})
    # Sums wait for all; copies are passed on in the step that receives them where these are free.
    return script.program(Ordering.FREE if adds is Direction.OUT else Ordering.FIXED)


def two_shot_pairs(problem: Problem, ways: LoadedRoutes, instances: int) -> ChunkProgram:
    """Return an allreduce along the same trees: shards to their owners, sums to everyone.

    Parameters
    ----------
    problem : Problem
        An allreduce.
    ways : LoadedRoutes
        The connections.
    instances : int
        Parallel copies of the whole program.

    Raises
    ------
    InfeasibleError
        CS302: no data can pass between some two GPUs.
    """
    size = problem.topology.size
    script = Script(problem, size, instances)
    ready: _Arrived = {}
    for phase, direction in enumerate(PHASES[problem.collective]):
        fresh = ways.unloaded()
        trees = [near_tree(fresh, root, direction, even=True) for root in range(size)]
        arrived = _send_along(trees, direction, script, phase, direction, ready)
        ready = {(root, root): arrived[root, root] for root in range(size)}
    return script.program(Ordering.FIXED)


def _send_along(
    trees: list[Tree],
    direction: Direction,
    script: Script,
    phase: int,
    adds: Direction,
    arrived: _Arrived,
) -> _Arrived:
    """Write down a transfer for every edge; return what arrived of every tree at every rank.

    A script of one chunk moves it along all trees, another one a chunk for each.
    """
    known = dict(arrived)
    for tree, parent, child in _by_depth(trees, last_first=direction is Direction.IN):
        source, sink = flow(parent, child, direction)
        chunk, needed = tree if script.chunks > 1 else 0, known.get((tree, source), ())
        number = script.send(source, sink, chunk, needed, origin=Origin(phase, adds, tree))
        known.setdefault((tree, sink), []).append(number)
    return known


def _by_depth(trees: list[Tree], *, last_first: bool) -> Iterator[tuple[int, int, int]]:
    """Yield (root, parent, child) of all edges, those of all trees by their depth."""
    rows = []
    for tree in trees:
        depth = {tree.root: 0}
        for edge in tree.edges:
            depth[edge.child] = depth[edge.parent] + 1
            rows.append((depth[edge.child], tree.root, edge.parent, edge.child))
    rows.sort(key=lambda row: -row[0] if last_first else row[0])
    yield from (row[1:] for row in rows)
