"""Certificates of allreduce bounds: right ones pass, each lie is found."""

from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import runtimes, topology
from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.bounds.trees import bound
from colsynth.errors import VerificationError
from colsynth.model import Collective, Direction, Forest, Phase, PricedCut, Problem, Tree, TreeEdge
from colsynth.runtimes.target import Target
from colsynth.synthesis.pack_roots import PackRoots
from colsynth.verify import check_forest
from colsynth.verify.allreduce import check_limit, check_rooted


@pytest.fixture(scope="module")
def problem():
    return Problem(topology.load("mesh:3x3"), Collective.ALLREDUCE)


@pytest.fixture(scope="module")
def found(problem):
    return allreduce_bound(problem)


@pytest.fixture(scope="module")
def forest(problem):
    return PackRoots().run(problem, Target(runtimes.profile("msccl")))


LIMIT_LIES = [
    lambda x: replace(x, algbw=x.algbw - 1),
    lambda x: replace(x, bandwidth=x.bandwidth + 1),
    lambda x: replace(x, parts=x.parts[:-1]),
    lambda x: replace(x, parts=(*x.parts[:-1], x.parts[0])),
    lambda x: replace(x, parts=()),
    lambda x: replace(x, parts=(tuple(range(9)),)),
    lambda x: replace(x, parts=(*x.parts, (99,))),
]


@pytest.mark.parametrize("lie", LIMIT_LIES)
def test_lies_about_limits_are_found(problem, found, lie):
    check_limit(problem, found.limit)
    with pytest.raises(VerificationError) as caught:
        check_limit(problem, lie(found.limit))
    assert caught.value.diagnostic.code == "CS524"


ROOTED_LIES = [
    lambda x: replace(x, algbw=x.algbw - 1),
    lambda x: replace(x, cuts=x.cuts[1:]),
    lambda x: replace(x, cuts=()),
    lambda x: replace(x, cuts=(*x.cuts, PricedCut(Direction.OUT, tuple(range(9)), 1))),
    lambda x: replace(x, cuts=(replace(x.cuts[0], price=0), *x.cuts[1:])),
    lambda x: replace(x, potentials=((Direction.OUT, 0, 1),)),
]


@pytest.mark.parametrize("lie", ROOTED_LIES)
def test_lies_about_prices_are_found(problem, found, lie):
    check_rooted(problem, found.rooted)
    with pytest.raises(VerificationError) as caught:
        check_rooted(problem, lie(found.rooted))
    assert caught.value.diagnostic.code == "CS524"


FOREST_LIES = [
    ("CS523", lambda f: replace(f, phases=tuple(_faster(p, 2) for p in f.phases))),
    ("CS523", lambda f: replace(f, phases=(_faster(f.phases[0], Fraction(1, 2)), f.phases[1]))),
    ("CS522", lambda f: replace(f, shares=(*f.shares[::-1][1:], 0))),
    ("CS522", lambda f: replace(f, shares=f.shares[:-1])),
    ("CS522", lambda f: replace(f, shares=())),
]


def _faster(phase, times):
    return replace(phase, unit_bandwidth=phase.unit_bandwidth * times)


@pytest.mark.parametrize(("code", "lie"), FOREST_LIES)
def test_lies_about_forests_with_shares_are_found(forest, code, lie):
    check_forest(forest)
    with pytest.raises(VerificationError) as caught:
        check_forest(lie(forest))
    assert caught.value.diagnostic.code == code


def test_each_half_may_fit_where_both_do_not():
    """Two GPUs, each root of a chunk: a half fills both directions of the link."""
    pair = Problem(topology.load("ring:2"), Collective.ALLREDUCE)
    rate = pair.topology.links[0].bandwidth
    out = {(link.source, link.target): i for i, link in enumerate(pair.topology.links)}
    phases = tuple(
        Phase(
            way,
            tuple(
                Tree(a, 1, (TreeEdge(a, b, (out[a, b] if way is Direction.OUT else out[b, a],)),))
                for a, b in ((0, 1), (1, 0))
            ),
            rate,
        )
        for way in (Direction.IN, Direction.OUT)
    )
    forest = Forest(pair, bound(pair), 1, phases)
    check_forest(forest)
    with pytest.raises(VerificationError) as caught:
        check_forest(replace(forest, together=True))
    assert "together" in caught.value.diagnostic.phrase
