"""Slow, obvious twins of what is said of process groups."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import lcm

import networkx as nx

from colsynth.model import Direction, Forest, Kind, Link, Phase, Problem, Topology


def usable(problem: Problem) -> list[int]:
    """Return the links that data may take: without transit, none to GPUs of nobody or others.

    A group that its box joins does not leave it.
    """
    topology, found = problem.topology, set()
    if problem.transit:
        return list(range(len(topology.links)))
    for ranks in problem.members:
        mine = {topology.ranks[rank] for rank in ranks}
        others = set(topology.ranks) - mine
        free = [i for i, x in enumerate(topology.links) if not {x.source, x.target} & others]
        near = [i for i in free if _is_inside(topology, topology.links[i])]
        graph = nx.DiGraph((topology.links[i].source, topology.links[i].target) for i in near)
        joined = any(mine <= part for part in nx.strongly_connected_components(graph))
        found |= set(near if joined else free)
    return sorted(found)


def _is_inside(topology: Topology, link: Link) -> bool:
    near, far = (topology.nodes[node].box for node in (link.source, link.target))
    return near is not None and near == far


def graph_of(
    problem: Problem, direction: Direction, groups: list[tuple[int, ...]] | None = None
) -> nx.DiGraph:
    """Return the links usable to all or some of the groups, turned for phases that reduce."""
    if groups is not None:
        problem = replace(problem, groups=tuple(groups))
    topology = problem.topology
    graph = nx.DiGraph()
    graph.add_nodes_from(topology.ranks)
    for index in usable(problem):
        link = topology.links[index]
        ends = (link.source, link.target)
        graph.add_edge(*ends[:: 1 if direction is Direction.OUT else -1], rate=link.bandwidth)
    return graph


def least_ratio(problem: Problem, direction: Direction) -> Fraction:
    """Return min over cuts of bandwidth leaving / weight inside, for the only group.

    Every member must be fed by all roots at the returned rate; minimum cuts below that lower
    it to their own ratio, until all are served.
    """
    topology, (members,) = problem.topology, problem.members
    weight = {topology.ranks[r]: w for r, w in zip(problem.roots, problem.weights, strict=True)}
    weight = {node: part for node, part in weight.items() if part}
    graph = graph_of(problem, direction)
    rate = sum((x for _, _, x in graph.edges(data="rate")), Fraction(1))
    while True:
        scale = lcm(rate.denominator, *(x.denominator for _, _, x in graph.edges(data="rate")))
        scaled = nx.DiGraph()
        scaled.add_nodes_from(topology.ranks)
        scaled.add_edges_from(
            (a, b, {"capacity": int(x * scale)}) for a, b, x in graph.edges(data="rate")
        )
        for root, part in weight.items():
            scaled.add_edge("source", root, capacity=int(rate * scale * part))
        cuts = (nx.minimum_cut(scaled, "source", topology.ranks[rank]) for rank in members)
        held, (inside, _) = min(cuts, key=lambda cut: cut[0])
        if Fraction(held, scale) >= rate * sum(weight.values()):
            return rate
        leaving = (x for a, b, x in graph.edges(data="rate") if a in inside and b not in inside)
        rate = sum(leaving, Fraction(0)) / sum(w for v, w in weight.items() if v in inside)


def least_joint_ratio(problem: Problem, direction: Direction) -> Fraction:
    """Return the least bound of any cut on what each of several groups can send, bytes/s.

    Tries every cut, so for a dozen nodes at most.
    """
    topology = problem.topology
    weight = dict(zip(problem.roots, problem.weights, strict=True))
    nodes = range(len(topology.nodes))
    whole = Fraction(sum(weight.values()), len(problem.members))
    found = []
    for size in nodes:
        for chosen in map(set, combinations(nodes, size)):
            needed, crossing = 0, []
            for group in problem.members:
                inside = [rank for rank in group if topology.ranks[rank] in chosen]
                must = sum(weight.get(rank, 0) for rank in inside)
                if must and len(inside) < len(group):
                    needed += must
                    crossing.append(group)
            if needed:
                edges = graph_of(problem, direction, crossing).edges(data="rate")
                leaving = sum((x for a, b, x in edges if a in chosen and b not in chosen), 0)
                found.append(whole * leaving / needed)
    return min(found)


def reached(forest: Forest) -> Fraction:
    """Return the algorithm bandwidth that trees of groups prove, from their routes alone.

    Raises
    ------
    ValueError
        A tree does not span its group, passes others without leave, or a route is none.
    """
    times = [_time(forest, phase) for phase in forest.phases]
    if forest.together:
        raise ValueError("phases at the same time are for another twin")
    return 1 / sum(times, Fraction(0))


def _time(forest: Forest, phase: Phase) -> Fraction:
    problem, topology = forest.problem, forest.problem.topology
    group_of = {rank: set(group) for group in problem.members for rank in group}
    open_ = set(usable(problem))
    weight = dict.fromkeys(problem.roots, 0)
    busy: dict[int, Fraction] = {}
    for tree in phase.trees:
        graph = nx.DiGraph([(edge.parent, edge.child) for edge in tree.edges])
        members = group_of[tree.root]
        if not nx.is_arborescence(graph) or graph.in_degree(tree.root):
            raise ValueError(f"a tree of rank {tree.root} is none")
        if not members <= set(graph) or (set(graph) != members and not problem.transit):
            raise ValueError(f"a tree of rank {tree.root} does not span its group")
        if any(not graph.out_degree(rank) for rank in set(graph) - members):
            raise ValueError(f"a tree of rank {tree.root} ends at a stranger")
        weight[tree.root] += tree.weight
        for edge in tree.edges:
            ends = (edge.parent, edge.child)[:: 1 if phase.direction is Direction.OUT else -1]
            links = [topology.links[index] for index in edge.route]
            path = [links[0].source, *(link.target for link in links)]
            whole = [link.source for link in links] == path[:-1] and set(edge.route) <= open_
            if not whole or (path[0], path[-1]) != tuple(topology.ranks[rank] for rank in ends):
                raise ValueError(f"a route of rank {tree.root} is broken")
            if any(topology.nodes[node].kind is Kind.GPU for node in path[1:-1]):
                raise ValueError(f"a route of rank {tree.root} passes a GPU")
            for index in edge.route:
                rate = Fraction(tree.weight) / topology.links[index].bandwidth
                busy[index] = busy.get(index, Fraction(0)) + rate
    parts = dict(zip(problem.roots, problem.weights, strict=True))
    if len({Fraction(weight[root], part) for root, part in parts.items() if part}) != 1:
        raise ValueError("roots do not have their shares of the trees")
    return max(busy.values()) * len(problem.members) / sum(weight.values())
