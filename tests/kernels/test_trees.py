"""Tasks of trees: whose child each is and what is below it, against a plain recursion."""

import random
from types import SimpleNamespace

import numpy as np

from colsynth.kernels.trees import link_tasks
from tests.each import each
from tests.reference.matching import tree_links


def random_trees(rng):
    """Return hops of a complete digraph and a few trees on them, some with several roots."""
    n = rng.randint(2, 7)
    pairs = [(a, b) for b in range(n) for a in range(n) if a != b]
    hops = SimpleNamespace(
        source=np.array([a for a, _ in pairs], np.int32),
        target=np.array([b for _, b in pairs], np.int32),
        duration=np.array([rng.randint(1, 9) for _ in pairs], np.int64),
    )
    first, hop = [0], []
    for _ in range(rng.randint(0, 5)):
        reached = rng.sample(range(n), rng.randint(1, n))
        for v in rng.sample(range(n), n):
            if v not in reached:
                hop.append(pairs.index((rng.choice(reached), v)))
                reached.append(v)
        first.append(len(hop))
    return n, hops, np.array(first), np.array(hop, np.int32)


@each("seed", range(40))
def test_every_edge_knows_its_parent_and_what_is_below_it(seed):
    rng = random.Random(seed)
    n, hops, first, hop = random_trees(rng)
    load = [rng.randint(0, 20) for _ in hops.source]
    ends = hops.source, hops.target, hops.duration
    found = link_tasks(first, hop, *ends, np.array(load), n)
    expected = tree_links(first.tolist(), hop.tolist(), hops, load)
    assert tuple(x.tolist() for x in found) == expected
