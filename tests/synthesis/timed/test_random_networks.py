"""200 random networks: what can be done is done and holds, what cannot be is refused."""

import random
import re
from collections import Counter

import pytest

from colsynth.errors import InfeasibleError, InputError
from colsynth.runtimes.target import Context
from colsynth.synthesis.timed.match import POLICIES
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.verify import check_timed
from tests.each import each
from tests.reference.timed import faults, sums
from tests.synthesis.timed.problems import can_pass, is_feasible, is_idle, wild_problem

SEEDS = (*range(200), 2086, 5039)
"""The last two: a group that its box joins only through others; no hop at all."""


def matcher(seed):
    rng = random.Random(seed)
    return MatchChunks(
        size=rng.choice((1, 960, 10**4, 10**9)),
        chunks_per_gpu=rng.randint(1, 3),
        policy=rng.choice(("auto", *POLICIES)),
        tries=rng.randint(1, 3),
    )


def refused_pair(problem, fault):
    """Return the ranks that a refusal names."""
    names = re.fullmatch("no data can pass from (.*) to (.*)", fault.diagnostic.phrase).groups()
    nodes = [node.name for node in problem.topology.nodes]
    return [problem.topology.rank_of[nodes.index(name)] for name in names]


@each("seed", SEEDS)
def test_a_schedule_that_holds_or_a_pair_that_cannot_be_joined(seed):
    problem = wild_problem(seed)
    if is_idle(problem):
        with pytest.raises(InputError) as idle:
            matcher(seed).run(problem, Context(seed=seed))
        assert idle.value.diagnostic.code == "CS307"
        return
    if not is_feasible(problem):
        with pytest.raises(InfeasibleError) as refusal:
            matcher(seed).run(problem, Context(seed=seed))
        assert refusal.value.diagnostic.code == "CS302"
        assert not can_pass(problem, *refused_pair(problem, refusal.value))
        return
    schedule = matcher(seed).run(problem, Context(seed=seed))
    check_timed(schedule)
    assert faults(schedule) == set()
    assert sums(schedule)
    assert schedule.seconds >= schedule.bound.seconds > 0


def test_the_random_networks_are_of_all_kinds():
    found = Counter()
    for seed in SEEDS:
        problem = wild_problem(seed)
        nodes, links = problem.topology.nodes, problem.topology.links
        ends = {(link.source, link.target) for link in links}
        found["idle"] += is_idle(problem)
        found["infeasible"] += not is_feasible(problem)
        found["groups"] += len(problem.groups) > 1
        found["transit"] += problem.transit
        found["one-way"] += any(ends[::-1] not in ends for ends in ends)
        found["store-and-forward"] += any(node.capabilities for node in nodes)
        found["latency"] += any(link.latency for link in links)
        for name in {problem.collective.value, *(node.kind.value for node in nodes)}:
            found[name] += 1
    assert len(found) == 7 + 9 + 3
    assert min(found.values()) >= 8, found
    assert found["infeasible"] <= 100
