"""What must cross a set of GPUs: every set, every collective, against its plain meaning."""

from itertools import product

import numpy as np

from colsynth import topology
from colsynth.bounds.timed.cut_demand import cut_demands
from colsynth.model import Collective, Demand, Problem
from tests.each import each
from tests.reference.timed import conditions

RANKS = 5
CHUNKS = 2
SETTINGS = [(), ((0, 1, 3),), ((4, 2), (0, 3))]
DEMANDS = (
    Demand((0,), (1, 2)),
    Demand((0, 3), (0, 4), count=3),
    Demand((1, 2, 4), (2,), reduces=True),
    Demand((1,), (4,), count=2, reduces=True),
    Demand((2,), (2,)),
)


def problems():
    machine = topology.load(f"clique:{RANKS}")
    for collective in Collective:
        if collective is Collective.CUSTOM:
            yield Problem(machine, collective, demands=DEMANDS)
            continue
        for groups in SETTINGS:
            roots = (0, 1) if collective.rooted else (None,)
            for root in roots:
                yield Problem(machine, collective, root, groups)


def plainly(problem, inside):
    """Return (entering, leaving), chunk by chunk."""
    entering = leaving = 0
    for kinds, holders, wanted in conditions(problem, CHUNKS):
        for kind in kinds:
            start, end = holders, wanted
            if kind == "spread":  # the sums of an allreduce go back to everyone
                start, end = wanted, holders
            if kind == "sum":
                entering += bool(end & inside) and bool(start - inside)
                leaving += bool(end - inside) and bool(start & inside)
            else:
                entering += bool(end & inside) and not start & inside
                leaving += bool(end - inside) and not start - inside
    return entering, leaving


@each("problem", problems())
def test_every_set_is_crossed_as_often_as_its_chunks_say(problem):
    phases = cut_demands(problem, CHUNKS)
    for bits in product((False, True), repeat=RANKS):
        inside = {rank for rank in range(RANKS) if bits[rank]}
        ways = [phase.of_ranks(np.array(bits)) for phase in phases]
        found = tuple(sum(int(way[i][0]) for way in ways) for i in (0, 1))
        assert found == plainly(problem, inside)
    each = [phase.of_each_rank() for phase in phases]
    for rank in range(RANKS):
        found = tuple(sum(int(way[i][rank]) for way in each) for i in (0, 1))
        assert found == plainly(problem, {rank})
