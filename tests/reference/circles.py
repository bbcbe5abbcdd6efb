"""Does a program finish with bounded FIFOs? The question as a graph of single calls.

A call comes after the call before it in its threadblock, a receiving call after the call
that sent its message, and a sending call after the one that made room for it. A program
finishes if and only if this graph has no circle.
"""

from __future__ import annotations

import itertools

import networkx as nx

from tests.reference.interpreter import RECEIVES, SENDS, Machine


def finishes(machine: Machine, depth: int) -> bool:
    """Say whether one pass of a loaded program finishes, one chunk per call."""
    graph = nx.DiGraph()
    sent: dict[tuple, list] = {name: [] for name in machine.fifo}
    taken: dict[tuple, list] = {name: [] for name in machine.fifo}
    for block in machine.blocks:
        calls = [(step, call) for step in block.steps for call in _calls(block, step)]
        graph.add_nodes_from(call for _, call in calls)
        graph.add_edges_from((a, b) for (_, a), (_, b) in itertools.pairwise(calls))
        for step, call in calls:
            if step.op in RECEIVES:
                taken[block.recv].append(call)
            if step.op in SENDS:
                sent[block.send].append(call)
    graph.add_edges_from(_waits(machine))
    for name, calls in sent.items():
        graph.add_edges_from(zip(calls, taken[name], strict=True))
        graph.add_edges_from(zip(taken[name], calls[depth:], strict=False))
    return nx.is_directed_acyclic_graph(graph)


def _calls(block, step):
    return [(block.rank, block.id, step.ordinal, number) for number in range(step.cnt)]


def _waits(machine: Machine):
    """Yield the last call of a step waited for, and the first call of the one that waits."""
    last = {
        (block.rank, block.id, step.ordinal): _calls(block, step)[-1]
        for block in machine.blocks
        for step in block.steps
    }
    for block in machine.blocks:
        for step in block.steps:
            for other, ordinal in step.waits:
                yield last[block.rank, other, ordinal], _calls(block, step)[0]
