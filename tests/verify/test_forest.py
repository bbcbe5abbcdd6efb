"""A forest's certificate holds for right forests and for no others."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth.errors import VerificationError
from colsynth.model import (
    Bound,
    Collective,
    Cut,
    Direction,
    Forest,
    Kind,
    Link,
    Node,
    Phase,
    Problem,
    Topology,
    Tree,
    TreeEdge,
)
from colsynth.verify import check_forest

RATE = Fraction(12)


def _star() -> Topology:
    """Three GPUs on one switch: links 0-2 go up, 3-5 down."""
    nodes = (*tuple(Node(f"gpu{n}", Kind.GPU) for n in range(3)), Node("switch", Kind.SWITCH))
    up = [Link(n, 3, RATE) for n in range(3)]
    down = [Link(3, n, RATE) for n in range(3)]
    return Topology("star", nodes, tuple(up + down), (0, 1, 2))


def _edge(parent, child, direction):
    ends = (parent, child) if direction is Direction.OUT else (child, parent)
    return TreeEdge(parent, child, (ends[0], 3 + ends[1]))


def _chain(root, direction):
    first, second = (root + 1) % 3, (root + 2) % 3
    return Tree(root, 1, (_edge(root, first, direction), _edge(first, second, direction)))


def _phase(direction):
    return Phase(direction, tuple(_chain(root, direction) for root in range(3)), RATE / 2)


def _cut(direction):
    """All GPUs but the last: two of three shards cross one link."""
    links = (3 + 2,) if direction is Direction.OUT else (2,)
    return Cut(direction, (0, 1, 3), (0, 1), links, RATE)


def _allreduce() -> Forest:
    problem = Problem(_star(), Collective.ALLREDUCE)
    rate = 3 * RATE / 2
    cuts = (_cut(Direction.IN), _cut(Direction.OUT))
    bound = Bound(rate / 2, 1, cuts, (rate, rate))
    return Forest(problem, bound, 1, (_phase(Direction.IN), _phase(Direction.OUT)))


def _broadcast() -> Forest:
    problem = Problem(_star(), Collective.BROADCAST, root=0)
    cut = Cut(Direction.OUT, (0,), (0,), (0,), RATE)
    phase = Phase(Direction.OUT, (_chain(0, Direction.OUT),), RATE)
    return Forest(problem, Bound(RATE, 1, (cut,), (RATE,)), 1, (phase,))


def test_right_forests_pass():
    assert _allreduce().gap == 0
    check_forest(_allreduce())
    check_forest(_broadcast())


def _with_tree(forest, change):
    phase = forest.phases[0]
    trees = (change(phase.trees[0]), *phase.trees[1:])
    return replace(forest, phases=(replace(phase, trees=trees), *forest.phases[1:]))


def _with_edge(forest, **change):
    return _with_tree(
        forest, lambda t: replace(t, edges=(replace(t.edges[0], **change), *t.edges[1:]))
    )


def _with_cut(forest, **change):
    bound = forest.bound
    return replace(
        forest, bound=replace(bound, cuts=(replace(bound.cuts[0], **change), *bound.cuts[1:]))
    )


def _with_phase(forest, **change):
    return replace(forest, phases=(replace(forest.phases[0], **change), *forest.phases[1:]))


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("CS521", lambda f: _with_tree(f, lambda t: replace(t, edges=t.edges[:1]))),
        ("CS521", lambda f: _with_tree(f, lambda t: replace(t, edges=t.edges[::-1]))),
        ("CS521", lambda f: _with_tree(f, lambda t: replace(t, edges=t.edges + t.edges[:1]))),
        ("CS521", lambda f: _with_edge(f, route=())),
        ("CS521", lambda f: _with_edge(f, route=(0,))),
        ("CS521", lambda f: _with_edge(f, route=(0, 5))),
        ("CS521", lambda f: _with_edge(f, route=(5, 0))),
        ("CS521", lambda f: _with_edge(f, route=(0, 5, 2, 4))),
        ("CS521", lambda f: _with_edge(f, route=(0, 99))),
        ("CS521", lambda f: _with_edge(f, child=7)),
        ("CS522", lambda f: _with_tree(f, lambda t: replace(t, weight=2))),
        ("CS522", lambda f: _with_tree(f, lambda t: replace(t, weight=0))),
        ("CS522", lambda f: _with_phase(f, trees=f.phases[0].trees[1:])),
        ("CS522", lambda f: replace(f, trees_per_root=2)),
        ("CS522", lambda f: replace(f, phases=f.phases + f.phases)),
        ("CS523", lambda f: _with_phase(f, unit_bandwidth=RATE + 1)),
        ("CS523", lambda f: _with_phase(f, unit_bandwidth=Fraction(0))),
        ("CS524", lambda f: _with_cut(f, bandwidth=RATE + 1)),
        ("CS524", lambda f: _with_cut(f, links=())),
        ("CS524", lambda f: _with_cut(f, gpus=(0, 1, 2))),
        ("CS524", lambda f: _with_cut(f, nodes=(0, 1, 2, 3), gpus=(0, 1, 2), links=())),
        ("CS524", lambda f: replace(f, bound=replace(f.bound, cuts=()))),
        ("CS524", lambda f: replace(f, bound=replace(f.bound, trees_per_root=2))),
        ("CS524", lambda f: replace(f, bound=replace(f.bound, algbw=f.bound.algbw * 2))),
        (
            "CS524",
            lambda f: replace(f, bound=replace(f.bound, rates=(RATE * 9, *f.bound.rates[1:]))),
        ),
    ],
)
@pytest.mark.parametrize("make", [_allreduce, _broadcast])
def test_wrong_forests_fail(make, code, change):
    with pytest.raises(VerificationError, match=code):
        check_forest(change(make()))


def test_phases_walk_in_their_direction():
    forest = _allreduce()
    turned = replace(forest.phases[0], direction=Direction.OUT)
    with pytest.raises(VerificationError, match="CS522"):
        check_forest(replace(forest, phases=(turned, forest.phases[1])))


def test_routes_do_not_pass_through_gpus():
    nodes = tuple(Node(f"gpu{n}", Kind.GPU) for n in range(3))
    links = tuple(Link(a, b, RATE) for a in range(3) for b in range(3) if a != b)
    topology = Topology("clique", nodes, links, (0, 1, 2))
    index = topology.link_between
    cut = Cut(Direction.OUT, (0,), (0,), (index[0, 1], index[0, 2]), 2 * RATE)
    bound = Bound(2 * RATE, 2, (cut,), (2 * RATE,))
    edges = (TreeEdge(0, 1, (index[0, 1],)), TreeEdge(0, 2, (index[0, 2],)))
    phase = Phase(Direction.OUT, (Tree(0, 1, edges),), RATE)
    forest = Forest(Problem(topology, Collective.BROADCAST, 0), bound, 1, (phase,))
    check_forest(forest)
    through = (edges[0], TreeEdge(0, 2, (index[0, 1], index[1, 2])))
    bad = replace(forest, phases=(replace(phase, trees=(Tree(0, 1, through),)),))
    with pytest.raises(VerificationError, match="passes through"):
        check_forest(bad)


def test_cuts_hold_the_root():
    forest = _broadcast()
    cut = Cut(Direction.OUT, (1,), (1,), (1,), RATE)
    with pytest.raises(VerificationError, match="holds no root"):
        check_forest(replace(forest, bound=replace(forest.bound, cuts=(cut,))))


def test_a_shared_link_carries_the_sum():
    """Star instead of chain: the root's uplink is used twice by each tree."""
    forest = _broadcast()
    tree = Tree(0, 1, (_edge(0, 1, Direction.OUT), _edge(0, 2, Direction.OUT)))
    wide = replace(forest, phases=(Phase(Direction.OUT, (tree,), RATE),))
    with pytest.raises(VerificationError, match="link gpu0 -> switch carries 24 of 12"):
        check_forest(wide)
    check_forest(replace(forest, phases=(Phase(Direction.OUT, (tree,), RATE / 2),)))


def _through_a_stranger() -> Forest:
    """Ranks 0 and 2 are a group, rank 1 stands between them: links 0-1, 1-0, 1-2, 2-1."""
    nodes = tuple(Node(f"gpu{n}", Kind.GPU) for n in range(3))
    links = tuple(Link(a, b, RATE) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1)))
    line = Topology("line", nodes, links, (0, 1, 2))
    problem = Problem(line, Collective.BROADCAST, 0, ((0, 2),), transit=True)
    tree = Tree(0, 1, (TreeEdge(0, 1, (0,)), TreeEdge(1, 2, (2,))))
    cut = Cut(Direction.OUT, (0, 1), (0, 1), (2,), RATE)
    phase = Phase(Direction.OUT, (tree,), RATE)
    return Forest(problem, Bound(RATE, 1, (cut,), (RATE,)), 1, (phase,))


def _asked(forest, **change):
    return replace(forest, problem=replace(forest.problem, **change))


def test_trees_of_a_group_pass_others_in_transit_alone():
    forest = _through_a_stranger()
    check_forest(forest)
    with pytest.raises(VerificationError, match=r"ranks \[1\] are not of its group"):
        check_forest(_asked(forest, transit=False))


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("CS521", lambda f: _with_tree(f, lambda t: replace(t, edges=t.edges[:1]))),
        ("CS522", lambda f: _asked(f, root=1)),
        ("CS521", lambda f: _asked(f, groups=((0, 1),), root=0, transit=False)),
        ("CS522", lambda f: _asked(f, groups=((2, 0),))),
        ("CS522", lambda f: _asked(f, groups=((0,), (2,)))),
        ("CS524", lambda f: _with_cut(f, nodes=(0,), gpus=(0,), links=())),
        ("CS524", lambda f: _with_cut(f, nodes=(0, 2), gpus=(0, 2), links=(0, 3))),
    ],
)
def test_wrong_forests_of_groups_fail(code, change):
    with pytest.raises(VerificationError, match=code):
        check_forest(change(_through_a_stranger()))
