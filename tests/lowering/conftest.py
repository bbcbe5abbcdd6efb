"""Programs at each stage of lowering."""

from functools import cache

import pytest

from colsynth import runtimes, topology
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.coalesce_chunks import CoalesceChunks
from colsynth.lowering.lower_forest import LowerForest
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_trees import PackTrees


@cache
def packed(name, boxes, collective, root, trees, runtime):
    """Return a forest, which many tests lower in their own ways."""
    problem = Problem(topology.load(name, nodes=boxes), Collective(collective), root)
    return PackTrees(trees).run(problem, Target(runtimes.profile(runtime)))


@pytest.fixture
def lowered():
    """Return a function that walks a problem up to and including a pass."""

    def walk(
        name,
        collective,
        *,
        boxes=None,
        runtime="msccl",
        until=SpellDependencies,
        trees="auto",
        instances=1,
        segments="1",
        order="chains",
        in_place=True,
        out_of_place=False,
        root=None,
    ):
        target = Target(runtimes.profile(runtime), "Simple", in_place, out_of_place)
        value = packed(name, boxes, collective, root, trees, runtime)
        lowering = (
            LowerForest(instances, segments=segments),
            CoalesceChunks(),
            OrderTransfers(order),
        )
        passes = [*lowering, PlaceSlots(), AssignThreadblocks()]
        for step in (*passes, SpellDependencies()):
            value = step.run(value, target)
            if isinstance(step, until):
                break
        return value

    return walk
