"""Random topologies through the whole walk: every certificate holds, every file verifies."""

from __future__ import annotations

import random

import pytest

from colsynth import runtimes
from colsynth.lowering.assign_threadblocks import AssignThreadblocks
from colsynth.lowering.coalesce_chunks import CoalesceChunks
from colsynth.lowering.lower_forest import LowerForest
from colsynth.lowering.order_transfers import OrderTransfers
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.lowering.spell_dependencies import SpellDependencies
from colsynth.model import Collective, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_trees import PackTrees
from colsynth.verify import check_forest, verify_bytes
from tests.each import each
from tests.reference.graphs import random_topology

RUNTIMES = ("msccl", "msccl-executor", "rccl")


def problem_of(seed: int) -> Problem:
    """Return a problem whose topology, collective and root follow from the seed."""
    rng = random.Random(seed)
    topology = random_topology(seed, directed=rng.random() < 0.4)
    collective = rng.choice(sorted(PHASES))
    root = rng.randrange(topology.size) if collective.rooted else None
    return Problem(topology, Collective(collective), root)


def target_of(seed: int, runtime: str) -> Target:
    """Return a target whose modes and protocol follow from the seed."""
    rng = random.Random(-seed)
    profile = runtimes.profile(runtime)
    modes = [(True, False), (False, True)] + [(True, True)] * profile.both_modes
    in_place, out_of_place = rng.choice(modes)
    return Target(profile, rng.choice(("Simple", "LL", "LL128")), in_place, out_of_place)


@each("seed", range(60))
def test_every_forest_proves_itself(seed):
    problem = problem_of(seed)
    for trees in ("optimal", "auto", "2"):
        forest = PackTrees(trees).run(problem, target_of(seed, "msccl"))
        check_forest(forest)
        if trees == "optimal" and problem.topology.is_symmetric:
            assert forest.gap == 0


@pytest.mark.parametrize("runtime", RUNTIMES)
@each("seed", range(40))
def test_every_file_verifies(seed, runtime):
    rng = random.Random(seed)
    target = target_of(seed, runtime)
    passes = (
        PackTrees(rng.choice(("auto", "1", "3"))),
        LowerForest(rng.choice((1, 1, 2))),
        *([CoalesceChunks()] if rng.random() < 0.7 else []),
        OrderTransfers(),
        PlaceSlots(),
        AssignThreadblocks(fuse=rng.random() < 0.8),
        SpellDependencies(),
    )
    value = problem_of(seed)
    for step in passes:
        value = step.run(value, target)
    data = runtimes.write(value, target.profile)
    report = verify_bytes(data, target.profile, subject=f"seed {seed}", single_node=True)
    assert report.errors == ()
