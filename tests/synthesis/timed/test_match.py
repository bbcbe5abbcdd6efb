"""Event-by-event matching against its twin: the same transfers at the same times."""

import random
from fractions import Fraction

import numpy as np
import pytest

from colsynth.bounds.timed.ticks import choose_ticks
from colsynth.model import Direction
from colsynth.synthesis.timed.demands import Lists, Wants
from colsynth.synthesis.timed.fabric import fabric_of
from colsynth.synthesis.timed.hops import hops_of, reverse, select
from colsynth.synthesis.timed.match import POLICIES, Spread, Tactic, match_events
from colsynth.synthesis.timed.phases import last_uses
from colsynth.synthesis.timed.progress import WorkMeter
from colsynth.synthesis.timed.regions import held_together
from tests.reference.matching import Matching
from tests.verify.timed_schedules import moves_of, random_fabric


def random_hops(rng, seed):
    topology = random_fabric(seed)
    size = Fraction(rng.choice((960, 10_000, 10**6)))
    hops = hops_of(topology, size, choose_ticks(topology, size))
    return topology, (reverse(hops)[0] if rng.random() < 0.3 else hops)


def random_groups(rng, gpus):
    ranks = rng.sample(range(gpus), gpus)
    size = rng.randint(2, gpus) if rng.random() < 0.5 else gpus
    groups = [tuple(ranks[i : i + size]) for i in range(0, gpus - size + 1, size)]
    return tuple(groups)


def within(hops, groups, gpus):
    """Return the hops inside groups."""
    group = np.full(gpus, -1)
    for number, ranks in enumerate(groups):
        group[list(ranks)] = number
    source, target = group[hops.source], group[hops.target]
    return select(hops, (source == target) & (source >= 0))


def random_spread(seed):
    """Return a spread on a random fabric; not all of it need be possible."""
    rng = random.Random(seed)
    topology, hops = random_hops(rng, seed)
    gpus = topology.size
    groups = random_groups(rng, gpus)
    hops = within(hops, groups, gpus)
    everyone = [rank for group in groups for rank in group]
    regions = []
    for _ in range(rng.randint(0, 2)):
        inside = regions[-1] if regions else rng.choice(groups)
        if len(inside) > 2:
            regions.append(tuple(sorted(rng.sample(inside, rng.randint(2, len(inside) - 1)))))
    each = rng.randint(1, 3)
    holders = np.repeat(np.array(sorted(everyone), np.int32), each)
    if rng.random() < 0.2:
        holders = holders[:each]
    lists = Lists(np.arange(len(holders) + 1), holders)
    wants = Wants(Direction.OUT, np.arange(len(holders), dtype=np.int32), lists, None)
    found = held_together(tuple(regions), hops)
    return rng, topology, Spread(hops, groups, gpus, wants, found)


def silent():
    return WorkMeter(0, Fraction(1), lambda *_: None)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("seed", range(60))
def test_the_same_transfers_as_the_twin(seed, policy):
    rng, topology, spread = random_spread(seed)
    if len(spread.hops) == 0:
        pytest.skip("no two members are neighbours")
    links = len(topology.links)
    busy, born = np.zeros(links, np.int64), np.zeros(len(spread.wants.number), np.int64)
    if rng.random() < 0.5:
        # What an earlier phase on the same hops leaves.
        tactic = Tactic("oldest", False, 1)
        busy = last_uses(match_events(spread, (busy, born), tactic, silent()), links)
        born = np.array([rng.randint(0, int(busy.max())) for _ in born])
    tactic = Tactic(policy, rng.random() < 0.5, rng.randrange(5))
    fabric = fabric_of(spread.hops, spread.gpus, links)
    start = busy.tolist(), born.tolist()
    expected = Matching(spread, fabric, start, tactic).run()
    meter = silent()
    phase = match_events(spread, (busy, born), tactic, meter)
    assert moves_of(phase) == sorted(expected)
    assert meter.placed == len(expected)
