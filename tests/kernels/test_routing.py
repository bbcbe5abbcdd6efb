"""Routes of chunks: shortest by the prices of the moment, along trees that reach everybody."""

import random
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from colsynth.kernels.routing import STEEP, HopTable, Search, dijkstra, route_pass, set_prices
from tests.each import each
from tests.reference.matching import prices

FULL = 2**12


def random_table(rng):
    """Return strongly connected hops over shared links."""
    n, links = rng.randint(2, 8), rng.randint(1, 12)
    ring = [(v, (v + 1) % n) for v in range(n)]
    extra = [tuple(rng.sample(range(n), 2)) for _ in range(rng.randint(0, 12))]
    pairs = ring + extra
    uses = [rng.sample(range(links), rng.randint(1, min(3, links))) for _ in pairs]
    source = np.array([a for a, _ in pairs], np.int32)
    first = np.cumsum([0] + [len(x) for x in uses])
    flat = [x for some in uses for x in some]
    out_first = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=n), out=out_first[1:])
    table = HopTable(
        out_first=out_first,
        out=np.argsort(source, kind="stable").astype(np.int32),
        target=np.array([b for _, b in pairs], np.int32),
        first=first,
        links=np.array(flat, np.int32),
        weight=np.array([rng.randint(1, 2**8) for _ in flat], np.int64),
    )
    return n, links, source, table


def empty_search(n, source):
    return Search(
        np.empty(len(source), np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
    )


def graph_of(n, source, table, price):
    """Return the cheapest hop between any two, as a graph."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    for h, (a, b) in enumerate(zip(source.tolist(), table.target.tolist(), strict=True)):
        if not graph.has_edge(a, b) or graph[a][b]["weight"] > price[h]:
            graph.add_edge(a, b, weight=int(price[h]))
    return graph


def loads(table, trees, links):
    """Return the loads of trees, added up one by one."""
    found = np.zeros(links, np.int64)
    for hops in trees:
        for h in hops:
            for i in range(table.first[h], table.first[h + 1]):
                found[table.links[i]] += table.weight[i]
    return found


def split(first, hops):
    return [hops[first[c] : first[c + 1]].tolist() for c in range(len(first) - 1)]


@each("seed", range(20))
def test_prices_rise_with_the_fourth_power_of_the_load(seed):
    rng = random.Random(seed)
    n, links, source, table = random_table(rng)
    load = np.array([rng.randint(0, 3 * FULL) for _ in range(links)])
    search = empty_search(n, source)
    set_prices(table, load, FULL, search)
    weight = np.add.reduceat(table.weight, table.first[:-1]).tolist()
    exact = prices(table, load, FULL, STEEP)
    for got, price, most in zip(search.price.tolist(), exact, weight, strict=True):
        # Four roundings down to a 1024th, at most twice as full as full.
        assert 0 <= price - got / 1024 <= 3 * most


@each("seed", range(40))
def test_distances_are_those_of_networkx(seed):
    rng = random.Random(seed)
    n, _, source, table = random_table(rng)
    search = empty_search(n, source)
    search.price[:] = [rng.randint(1, 9) for _ in source]
    starts = rng.sample(range(n), rng.randint(1, n))
    graph = graph_of(n, source, table, search.price)
    expected = nx.multi_source_dijkstra_path_length(graph, set(starts))
    nobody = np.zeros(n, np.bool_)
    assert dijkstra(table, search, np.array(starts, np.int32), nobody) == -1
    assert search.distance.tolist() == [expected[v] for v in range(n)]
    for v in set(range(n)) - set(starts):
        h = search.via[v]
        assert table.target[h] == v
        assert search.distance[source[h]] + search.price[h] == search.distance[v]
    sought = np.array([rng.random() < 0.5 for _ in range(n)])
    nearest = dijkstra(table, search, np.array(starts, np.int32), sought)
    wanted = np.flatnonzero(sought).tolist()
    if wanted:
        assert sought[nearest]
        assert expected[nearest] == min(expected[v] for v in wanted)
    else:
        assert nearest == -1


def check_tree(graph, price, ends, hops, held, wanted):
    """Check that a tree grows by shortest table to the nearest that still lacks the chunk."""
    source, target = ends
    reached, left = set(held), set(wanted) - set(held)
    while left:
        far = nx.multi_source_dijkstra_path_length(graph, reached)
        cost, path = 0, []
        while not path or path[-1] not in left:
            h = hops.pop(0)
            assert int(source[h]) == path[-1] if path else int(source[h]) in reached
            path.append(int(target[h]))
            cost += int(price[h])
        assert cost == far[path[-1]] == min(far[v] for v in left)
        assert not reached & set(path)
        reached |= set(path)
        left.discard(path[-1])
    assert hops == []


def random_chunks(rng, n):
    """Return holders and wanted of some chunks, mostly one each."""
    pairs = []
    for _ in range(rng.randint(1, 10)):
        many = rng.random() < 0.4
        pairs.append([rng.sample(range(n), rng.randint(1, n) if many else 1) for _ in range(2)])
    held, wanted = zip(*pairs, strict=True)
    arrays = [
        (np.cumsum([0] + [len(x) for x in part]), np.array([v for x in part for v in x], np.int32))
        for part in (held, wanted)
    ]
    return held, wanted, arrays


@each("seed", range(60))
def test_every_chunk_takes_the_cheapest_way_past_the_loads_of_the_others(seed):
    rng = random.Random(seed)
    n, links, source, table = random_table(rng)
    held, wanted, arrays = random_chunks(rng, n)
    chunks = len(held)
    old = np.zeros(chunks + 1, np.int64), np.empty(0, np.int32)
    load = np.zeros(links, np.int64)
    search = empty_search(n, source)
    for number in range(3):
        reference = FULL if number else 2**50
        new = np.zeros(chunks + 1, np.int64), np.empty(chunks * n, np.int32)
        lists = [x for part in arrays for x in part]
        room = route_pass(table, source, *lists, load, reference, 1, old, new)
        before, after = split(*old), split(*new)
        assert room == sum(map(len, after))
        assert load.tolist() == loads(table, after, links).tolist()
        for c in range(chunks):
            others = loads(table, after[:c] + before[c + 1 :], links)
            set_prices(table, others, reference, search)
            graph = graph_of(n, source, table, search.price)
            ends = source, table.target
            check_tree(graph, search.price, ends, list(after[c]), held[c], wanted[c])
        old = new[0], new[1][:room].copy()


@pytest.mark.parametrize("share", [1, 2, 5])
def test_chunks_that_share_a_search_still_arrive(share):
    for seed in range(20):
        rng = random.Random(seed)
        n, links, source, table = random_table(rng)
        ends = [rng.sample(range(n), 2) for _ in range(12)]
        ends.sort()
        first = np.arange(len(ends) + 1)
        holder, wanted = (np.array(x, np.int32) for x in zip(*ends, strict=True))
        load = np.zeros(links, np.int64)
        old = np.zeros(len(ends) + 1, np.int64), np.empty(0, np.int32)
        new = np.zeros(len(ends) + 1, np.int64), np.empty(len(ends) * n, np.int32)
        route_pass(table, source, first, holder, first, wanted, load, FULL, share, old, new)
        trees = split(*new)
        assert load.tolist() == loads(table, trees, links).tolist()
        for (start, end), hops in zip(ends, trees, strict=True):
            visited = [start, *(int(table.target[h]) for h in hops)]
            assert [int(source[h]) for h in hops] == visited[:-1]
            assert visited[-1] == end
            assert max(Counter(visited).values()) == 1
