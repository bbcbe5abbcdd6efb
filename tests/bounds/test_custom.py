"""Bounds on collectives of one's own: cuts by hand, every cut of small machines, schedules."""

import random
from fractions import Fraction
from itertools import combinations

import pytest

from colsynth import api, topology
from colsynth.bounds.custom import custom_bound
from colsynth.bounds.optimum import optimum
from colsynth.errors import InfeasibleError, InputError
from colsynth.model import Collective, Demand, Problem
from tests.each import each
from tests.reference.graphs import random_topology

GIGA = 10**9


def drawn(machine, seed):
    """Return a few demands of all sorts."""
    rng = random.Random(seed)
    demands = []
    for _ in range(rng.randint(1, 5)):
        ranks = sorted(rng.sample(range(machine.size), rng.randint(1, machine.size)))
        others = sorted(rng.sample(range(machine.size), rng.randint(1, machine.size)))
        sums = rng.random() < 0.4 and len(ranks) > 1
        wanted = others[:1] if sums else others
        demands.append(Demand(tuple(ranks), tuple(wanted), rng.randint(1, 4), sums))
    return Problem(machine, Collective.CUSTOM, demands=tuple(demands))


def least_cut(problem):
    """Return the least bound of all cuts, bytes/s; None where nothing has to move."""
    machine = problem.topology
    found = []
    for size in range(1, len(machine.nodes)):
        for nodes in map(set, combinations(range(len(machine.nodes)), size)):
            inside = {rank for rank, node in enumerate(machine.ranks) if node in nodes}
            must = 0
            for demand in problem.demands:
                held, wanted = set(demand.holders), set(demand.wanted)
                leaves = held & inside if demand.reduces else held <= inside
                must += demand.count * bool(leaves and wanted - inside)
            if must:
                room = [x.bandwidth for x in machine.links
                        if x.source in nodes and x.target not in nodes]  # fmt: skip
                found.append(sum(room, Fraction(0)) * sum(d.count for d in problem.demands) / must)
    return min(found, default=None)


@each("seed", range(60))
def test_no_cut_allows_much_less(seed):
    machine = random_topology(seed, most_gpus=6, switches=2, directed=seed % 2 == 0)
    problem = drawn(machine, seed)
    least = least_cut(problem)
    if least is None:
        with pytest.raises(InputError, match="nothing has to move"):
            custom_bound(problem)
        return
    found = optimum(problem)
    assert found.algbw >= least
    if seed != 38:  # where no single node is worth moving, but two together are
        assert found.algbw == least
    assert found.cut.bandwidth == sum(machine.links[i].bandwidth for i in found.cut.links)
    assert (found.exact, found.prices) == (False, ())


@each("seed", range(30))
def test_schedules_stay_below(seed):
    machine = random_topology(seed, most_gpus=8, switches=0, directed=seed % 2 == 0)
    problem = drawn(machine, seed)
    try:
        found = custom_bound(problem)
    except InputError:
        return
    schedule = api.synthesize(problem, chunks_per_gpu=2).schedule
    assert schedule.algbw <= found.algbw


def test_an_allgather_in_other_words():
    machine = topology.load("mi250", nodes=2)
    everybody = tuple(range(machine.size))
    demands = tuple(Demand((rank,), everybody) for rank in everybody)
    found = optimum(Problem(machine, Collective.CUSTOM, demands=demands))
    assert found.algbw >= optimum(Problem(machine, Collective.ALLGATHER)).algbw


@pytest.mark.parametrize("reduces", [False, True])
def test_data_without_a_way_is_refused_by_name(reduces):
    line = topology.load("mesh:4")
    links = tuple(x for x in line.links if (x.source, x.target) != (1, 2))
    line = type(line)(line.name, line.nodes, links, line.ranks)
    demand = Demand((0, 1), (3,), 1, reduces)
    with pytest.raises(InfeasibleError, match="from gpu0 to gpu3"):
        optimum(Problem(line, Collective.CUSTOM, demands=(demand,)))
    back = Demand((3, 0), (1,), 1, reduces)
    # A copy may come from both sides at once, a sum needs all of both.
    found = optimum(Problem(line, Collective.CUSTOM, demands=(back,)))
    assert found.algbw == (50 if reduces else 100) * GIGA


def test_one_holder_within_reach_is_enough_for_a_copy():
    line = topology.load("mesh:3")
    links = tuple(x for x in line.links if (x.source, x.target) != (0, 1))
    line = type(line)(line.name, line.nodes, links, line.ranks)
    copy = Problem(line, Collective.CUSTOM, demands=(Demand((0, 1), (2,)),))
    assert optimum(copy).algbw == 50 * GIGA
    with pytest.raises(InfeasibleError, match="from gpu0 to gpu2"):
        optimum(Problem(line, Collective.CUSTOM, demands=(Demand((0, 1), (2,), 1, True),)))


def test_large_machines_are_bound_without_improvement():
    machine = topology.load("mesh:32x32")
    demands = tuple(Demand((rank,), ((rank + 1) % 1024,)) for rank in range(1024))
    found = optimum(Problem(machine, Collective.CUSTOM, demands=demands))
    # Corner 1023 sends to corner 0, and 1022 to it: one chunk over two links, as everywhere.
    assert found.algbw == 1024 * 100 * GIGA
