"""Copies of what lies side by side are one step, and copy the same."""

from itertools import pairwise

import pytest

from colsynth import runtimes, topology
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.target import aim
from colsynth.verify import verify_program

BEFORE = (
    "build-stars,lower-forest{{instances=4,segments={}}},coalesce-chunks,order-transfers,place-slots,"
    "assign-threadblocks{{strategy=balanced}}"
)


def copies(block):
    return [(step.source, step.target, step.count) for step in block.steps if step.op == "cpy"]


def chunks(gpu):
    """Return what a GPU copies chunk by chunk, in order."""
    return sorted(
        (source.buffer, source.offset + k, target.buffer, target.offset + k)
        for block in gpu.threadblocks
        for source, target, count in copies(block)
        for k in range(count)
    )


@pytest.mark.parametrize(("runtime", "segments"), [("rccl", 40), ("msccl", 100)])
def test_copies_of_adjacent_chunks_are_one_step(runtime, segments):
    problem = Problem(topology.load("clique:4"), Collective.ALLGATHER)
    target = aim(problem, runtimes.profile(runtime), "Simple")
    before = Pipeline.from_text(BEFORE.format(segments)).run(problem, target)
    after = Pipeline.from_text(BEFORE.format(segments) + ",spell-dependencies").run(problem, target)
    assert verify_program(after, target.profile, subject="test").ok
    most = target.profile.max_count
    fewer = 0
    for old, new in zip(before.gpus, after.gpus, strict=True):
        assert chunks(old) == chunks(new)
        fewer += sum(len(copies(block)) for block in old.threadblocks)
        fewer -= sum(len(copies(block)) for block in new.threadblocks)
        for block in new.threadblocks:
            if block.send is not None or block.recv is not None:
                continue
            for one, two in pairwise(block.steps):
                behind = (one.source.buffer, one.source.offset + one.count) == two.source
                behind &= (one.target.buffer, one.target.offset + one.count) == two.target
                assert not behind or one.signals or two.waits or one.count + two.count > most
    assert fewer > 0
