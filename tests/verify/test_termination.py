"""Termination agrees with the graph of single calls, on programs made at random."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from colsynth.model import Collective
from colsynth.runtimes import profile, write
from colsynth.verify.execute import execute
from colsynth.verify.table import tabulate
from colsynth.verify.units import resolve
from tests.reference.circles import finishes
from tests.reference.interpreter import load
from tests.verify.programs import Builder, step

RANKS = 4
COUNTS = st.lists(st.sampled_from([1, 2, 3, 5, 9]), min_size=1, max_size=4)


@st.composite
def programs(draw):
    """Flows of messages along paths of ranks, with random dependencies between them.

    Every flow has a channel and, at each rank it passes, a threadblock of its own that
    fuses receiving and sending; at the ends, sends and receives of two flows may share a
    threadblock in any order, which is where FIFOs fill up.
    """
    made = Builder(Collective.ALLTOALL, RANKS, RANKS, scratch=9, in_place=False)
    for channel in range(draw(st.integers(1, 3))):
        there = draw(st.permutations(range(RANKS)))[: draw(st.integers(2, RANKS))]
        _flow(made, there, draw(COUNTS), channel, draw)
    return made.program()


def _flow(made, path, counts, channel, draw):
    """Messages run down the path; the first and the last rank also exchange back."""
    back = draw(COUNTS)
    for position, rank in enumerate(path):
        previous = path[position - 1] if position else None
        following = path[position + 1] if position < len(path) - 1 else None
        if previous is not None and following is not None:
            steps = [step("rcs", None, "s0", count) for count in counts]
            _add(made, rank, following, previous, steps, channel, draw)
            continue
        sends, receives = (counts, back) if previous is None else (back, counts)
        peer_out = following if previous is None else path[0]
        peer_in = path[-1] if previous is None else previous
        outgoing = [step("s", "s0", None, count) for count in sends]
        incoming = [step("r", None, "s0", count) for count in receives]
        steps = _interleaved(outgoing, incoming, draw)
        _add(made, rank, peer_out, peer_in, steps, channel, draw)


def _interleaved(one, other, draw):
    mixed = []
    one, other = list(one), list(other)
    while one or other:
        first = bool(one) and (not other or draw(st.booleans()))
        mixed.append((one if first else other).pop(0))
    return mixed


def _add(made, rank, send, recv, steps, channel, draw):
    """Add a threadblock; sometimes its first step waits for the last of an earlier one."""
    earlier = made.blocks.get(rank, [])
    steps = [*steps[:-1], structs.replace(steps[-1], signals=True)]
    if earlier and draw(st.booleans()):
        awaited = draw(st.sampled_from(earlier))
        first = step("cpy", "s0", "s0", 1, (awaited.id, len(awaited.steps) - 1))
        steps = [first, *steps]
    made.block(rank, send, recv, steps, channel)


@settings(max_examples=400, deadline=None)
@given(programs(), st.sampled_from([1, 2, 3]))
def test_execution_agrees_with_the_graph_of_calls(program, depth):
    machine = load(write(program, profile("msccl-executor")), in_place=False)
    run = execute(resolve(tabulate(program)), depth=depth, group=1, tiles=2)
    assert (not run.stuck) == finishes(machine, depth)
    if not run.stuck:
        steps = sum(len(b.steps) for gpu in program.gpus for b in gpu.threadblocks)
        assert len(run.order) == len(set(run.order)) == steps
