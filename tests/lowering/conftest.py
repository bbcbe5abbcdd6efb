"""Programs at each stage of lowering."""

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
        value = Problem(topology.load(name, nodes=boxes), Collective(collective), root)
        lowering = (
            LowerForest(instances, segments=segments),
            CoalesceChunks(),
            OrderTransfers(order),
        )
        passes = [PackTrees(trees), *lowering, PlaceSlots(), AssignThreadblocks()]
        for step in (*passes, SpellDependencies()):
            value = step.run(value, target)
            if isinstance(step, until):
                break
        return value

    return walk
