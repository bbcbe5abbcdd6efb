"""What passes that give the same for any message look at: a search runs them once for all."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

from colsynth import topology
from colsynth.errors import ColsynthError
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ALGORITHMS, DEFAULT, pipeline_of
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.search.levels import HEAVY

MACHINES = (
    ("ring:4", None),
    ("mesh:2x3", None),
    ("clique:4", None),
    ("dgx-a100", 2),
    ("dgx-h100", 1),
)
COLLECTIVES = ("allgather", "allreduce", "broadcast", "alltoall")
MORE = (
    "pack-trees{trees=2,bandwidth=usable},lower-forest{instances=2},coalesce-chunks{merge=1}",
    "pack-trees,lower-forest{segments=2},coalesce-chunks,order-transfers{order=chains}",
    "pack-in-network",
    "build-relays{relays=2}",
    "match-chunks{chunks-per-gpu=2,size=1048576},lower-timed",
)


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


def blind(item):
    return getattr(item, "any_message", False)


def run_blindly(problem, target, text):
    """Return the passes that gave something without their message."""
    found, value = set(), problem
    with suppress(ColsynthError):  # not for the collective, or the machine
        for item in Pipeline.from_text(text).passes:
            value = item.run(value, without_message(target) if blind(item) else target)
            found.update([item.name] if blind(item) else [])
    return found


def test_passes_for_any_message_do_not_look_at_it():
    run = set()
    for (machine, boxes), word in product(MACHINES, COLLECTIVES):
        kind = Collective(word)
        topo = topology.load(machine, nodes=boxes)
        problem = Problem(topo, kind, root=0 if kind.rooted else None)
        target = replace(aim(problem, profile("mscclpp")), size=2**20)
        texts = [pipeline_of(name) for name in ALGORITHMS if name != HEAVY]
        for text in (*texts, *MORE):
            run |= run_blindly(problem, target, text)
    marked = {name for name in DEFAULT.places if blind(DEFAULT.load(name))}
    assert run == marked - {"solve-exact"}  # it needs a solver that is an extra
