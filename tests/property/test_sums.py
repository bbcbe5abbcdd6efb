"""Random programs: right for the verifier, and every rank gets the same bits of an allreduce."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import product

import pytest

from colsynth.errors import InfeasibleError, InputError, LimitError, NegativeFinding
from colsynth.model import Collective, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ALGORITHMS, pipeline_of
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.runtimes.schedules import write
from colsynth.topology import load
from colsynth.verify import verify_bytes
from tests.reference.graphs import clustered_topology, random_topology
from tests.reference.sums import Sums

RUNTIMES = ("msccl", "msccl-executor", "rccl", "mscclpp", "torch")
STRATEGIES = ("fewest", "spread", "balanced", "paired", "pooled", "duplex")
SHARED = ("allpairs", "allpairs2")
"""Algorithms in which ranks add up what others add up too, and most sums are joined."""
MACHINES = ("clique:4", "clique:6", "torus:2x3", "hypercube:3", "dgx-1v")
REFUSALS = InputError, NegativeFinding, LimitError, InfeasibleError


def machine(draw, seed):
    """Return one of up to ten GPUs."""
    style = seed % 4
    if style == 1:
        return random_topology(seed, most_gpus=8, switches=0, directed=seed % 8 == 1)
    return (
        clustered_topology(seed, boxes=2, per_box=4) if style == 3 else load(draw.choice(MACHINES))
    )


def lowered(seed):
    """Return a random lowering of an allreduce and its runtime, or None where it is refused."""
    draw = random.Random(seed)
    runtime = profile(RUNTIMES[seed % 5])
    problem = Problem(machine(draw, seed // 5), Collective.ALLREDUCE)
    names = [name for name in ALGORITHMS if name != "exact"]
    text = pipeline_of(draw.choice((*names, *SHARED * 4)), rounds=runtime.rounds)
    sums = draw.choice(("running", "joined", "by-chunk"))
    text = re.sub(r"place-slots({.*?})?", f"place-slots{{sums={sums}}}", text)
    if runtime.rounds:
        text += f"{{spread={draw.choice((0, 2, 5))}}}"
    strategy, fold = draw.choice(STRATEGIES), draw.choice((1, 3, 7))
    work = f"assign-threadblocks{{strategy={strategy},fold={fold}}}"
    text = re.sub(r"assign-threadblocks({.*?})?", work, text)
    modes = [(True, False), (False, True)] + [(True, True)] * runtime.both_modes
    inside, outside = draw.choice(modes)
    protocol = draw.choice(sorted({"Simple", "LL"} & set(runtime.fifo_calls)))
    try:
        target = aim(problem, runtime, protocol)
        target = replace(target, in_place=inside, out_of_place=outside)
        return Pipeline.from_text(text).run(problem, target), runtime, text
    except REFUSALS:
        return None


@pytest.mark.parametrize("runtime", range(5), ids=RUNTIMES)
def test_all_ranks_get_the_same_bits(runtime):
    tried = 0
    for seed in range(runtime, 130, 5):
        found = lowered(seed)
        if found is None:
            continue
        program, target, text = found
        report = verify_bytes(write(program, target), target, subject="random")
        assert report.ok, (seed, text, report.errors[:2])
        require_same_bits(program, (seed, text))
        tried += 1
    assert tried >= 9


def require_same_bits(program, told):
    header = program.header
    for in_place in [True] * header.in_place + [False] * header.out_of_place:
        for order in range(2):
            chunks = Sums(program, in_place).outputs(random.Random(order))
            assert all(len(set(chunk)) == 1 for chunk in chunks), told


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("boxes", "per_box"), [(2, 3), (3, 2), (4, 1)])
@pytest.mark.parametrize("form", ["shots=1", "shards=gpu,calls=2"])
def test_rails_in_every_form_give_all_ranks_the_same_bits(runtime, boxes, per_box, form):
    """One shot at each level, and a reduce-scatter with an allgather behind it."""
    target = profile(runtime)
    problem = Problem(clustered_topology(3, boxes=boxes, per_box=per_box), Collective.ALLREDUCE)
    modes = [(True, False), (False, True)] + [(True, True)] * target.both_modes
    for options, strategy in (("instances=2,pieces=1", "paired"), ("segments=2", "spread")):
        text = pipeline_of("rails", rounds=target.rounds).replace("=paired", f"={strategy}")
        text = text.replace("build-rails", f"build-rails{{{options},strategy={strategy},{form}}}")
        for (inside, outside), protocol in product(
            modes, sorted({"Simple", "LL"} & {*target.fifo_calls})
        ):
            aimed = replace(aim(problem, target, protocol), in_place=inside, out_of_place=outside)
            program = Pipeline.from_text(text).run(problem, aimed)
            assert verify_bytes(write(program, target), target, subject=form).ok
            require_same_bits(program, (text, protocol, inside, outside))
