"""What passes that give the same for any message look at: a search runs them once for all."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from colsynth import topology
from colsynth.errors import ColsynthError
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ALGORITHMS, pipeline_of
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.search.levels import HEAVY


def hidden(name):
    def read(_):
        raise AttributeError(f"{name} must not matter")

    return property(read)


class OfNoMessage(Target):
    """A target whose message nobody can see."""

    protocol, size, max_bytes, needed = map(hidden, ("protocol", "size", "max_bytes", "needed"))


def without_message(target):
    found = object.__new__(OfNoMessage)
    found.__dict__.update(target.__dict__)
    return found


@pytest.mark.parametrize("runtime", ["msccl", "mscclpp", "torch"])
@pytest.mark.parametrize("collective", ["allgather", "allreduce", "broadcast", "alltoall"])
def test_passes_for_any_message_do_not_look_at_it(collective, runtime):
    kind, run = Collective(collective), set()
    problem = Problem(topology.load("ring:4"), kind, root=0 if kind.rooted else None)
    target = replace(aim(problem, profile(runtime)), size=2**20)
    for name in [name for name in ALGORITHMS if name != HEAVY]:
        value = problem
        with suppress(ColsynthError):  # not for the collective, or the machine
            for item in Pipeline.from_text(pipeline_of(name, rounds=runtime == "torch")).passes:
                blind = getattr(item, "any_message", False)
                value = item.run(value, without_message(target) if blind else target)
                run.update([item.name] if blind else [])
    assert len(run) > 2, run
