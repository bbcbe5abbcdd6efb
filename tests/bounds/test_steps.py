"""Shortest-path broadcast: published values, a slow twin, and witnesses that add up."""

import json
import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth import api
from colsynth.bounds.steps import step_bound
from colsynth.cli.main import run
from colsynth.errors import InputError, VerificationError
from colsynth.model import Kind, Link, Node
from colsynth.topology import load
from colsynth.topology.builder import Builder
from colsynth.verify.steps import check_steps
from tests.reference.steps_of import loads

F = Fraction

OPTIMAL = {  # graph: (ports, loads of the steps); times are (N - 1) / N
    "uniring:8": (1, "1 1 1 1 1 1 1"),
    "ring:8": (2, "1 1 1 1/2"),
    "ring:9": (2, "1 1 1 1"),
    "torus:4x4": (4, "1 3/2 1 1/4"),
    "torus:4x6": (4, "1 7/4 7/4 1 1/4"),
    "torus:5x8": (4, "1 2 5/2 9/4 3/2 1/2"),
    "torus:8x8": (4, "1 2 3 7/2 3 2 1 1/4"),
    "hypercube:6": (6, "1 5/2 10/3 5/2 1 1/6"),
    "clique:5": (4, "1"),
    "bipartite:4": (4, "1 3/4"),
    "dicirculant:6,1,2,3,4": (4, "1 1/4"),
    "hamming:2,3": (4, "1 1"),
    "hamming:2,4": (6, "1 3/2"),
    "hamming:3,3": (6, "1 2 4/3"),
    "dicirculant:8,1,3": (2, "1 3/2 1"),
    "circulant:7,2,3": (4, "1 1/2"),
    "circulant:10,2,3": (4, "1 5/4"),
    "circulant:13,2,3": (4, "1 2"),
    "circulant:16,3,4": (4, "1 7/4 1"),
    "circulant:32,4,5": (4, "1 2 3 7/4"),
    "twisted:8x16": (4, "1 2 3 4 5 6 7 15/4"),
    "circulant:64,5,6": (4, "1 2 3 4 5 3/4"),
    "distance-regular:octahedron": (4, "1 1/4"),
    "distance-regular:crown-5": (4, "1 1 1/4"),
    "distance-regular:heawood-distance-3": (4, "1 3/2 3/4"),
    "distance-regular:line-petersen": (4, "1 2 1/2"),
    "distance-regular:line-heawood": (4, "1 2 2"),
    "distance-regular:pg-2-3": (4, "1 3 9/4"),
    "distance-regular:ag-2-4": (4, "1 3 3 3/4"),
    "odd:4": (4, "1 3 9/2"),
    "distance-regular:line-tutte-8": (4, "1 2 4 4"),
    "distance-regular:doubled-odd-4": (4, "1 3 9/2 9/2 3 1 1/4"),
    "distance-regular:gq-3-3": (4, "1 3 9 27/4"),
    "distance-regular:line-tutte-12": (4, "1 2 4 8 16 16"),
    "line(dicirculant:8,1,3)": (2, "1 2 3 3/2"),
    "cayley:8:2:3:5.1,3.0": (2, "1 2 3 3/2"),
    "cayley:16:4:11:8.3,11.1,9.0,11.0": (4, "1 3 7 19/4"),
    "cayley:8x16:8:7.7.14.1:0.3.4,0.11.6,3.15.5,5.1.7": (4, "1 4 16 221/4 100 137/2 11"),
}

OTHERS = {  # graph: (ports, T_B, congestion over (N - 1) / N, loads where they are published)
    "mesh:4x4": (4, F(15, 8), F(2), "1 3/2 2 3/2 1 1/2"),
    "kautz:2,2": (2, F(1), F(6, 5), "1 2"),
    "kautz:2,3": (2, F(7, 6), F(14, 11), "1 2 4"),
    "kautz:2,4": (2, F(5, 4), F(30, 23), "1 2 4 8"),
    "kautz:4,2": (4, F(1), F(20, 19), "1 4"),
    "kautz:4,3": (4, F(21, 20), F(84, 79), "1 4 16"),
    "debruijn:2,3": (2, F(7, 4), F(2), "1 2 4"),
    "debruijn:2,4": (2, F(15, 8), F(2), "1 2 4 8"),
    "debruijn:4,2": (4, F(5, 4), F(4, 3), "1 4"),
    "joined(debruijn:2,3)": (2, F(1), F(8, 7), "1 2 1"),
    "joined(debruijn:2,4)": (2, F(11, 8), F(4, 3), "1 2 4 4"),
    "joined(debruijn:3,2)": (3, F(4, 3), F(3, 2), "1 3"),
    "joined(debruijn:4,2)": (4, F(5, 4), F(4, 3), "1 4"),
    "line(bipartite:4)": (4, F(1), F(1), "1 4 3"),
    "line^2(bipartite:4)": (4, F(33, 32), F(1), "1 4 16 12"),
    "line^3(circulant:16,3,4)": (4, F(261, 256), F(1), "1 4 16 64 112 64"),
    "line^2(power:2(dicirculant:8,1,3))": (4, F(1), F(1), "1 4 16 40 63 68 48 16"),
    "genkautz:2,10": (2, F(9, 5), F(2), None),
    "genkautz:2,24": (2, F(5, 4), F(30, 23), None),
    "genkautz:4,36": (4, F(35, 27), F(4, 3), "1 4 20/3"),
    "genkautz:4,64": (4, F(21, 16), F(4, 3), "1 4 16"),
    "genkautz:4,1024": (4, F(341, 256), F(4, 3), "1 4 16 64 256"),
    "power:2(kautz:2,3)": (4, F(77, 72), F(1), None),
    "cayley:8:2:7:3.0,2.0,4.1,5.1": (4, F(1), None, "1 3"),
}


CAYLEY = {  # graph: (steps, T_B)
    "cayley:5:4:3:2.1,4.3": (4, F(19, 20)),
    "line(cayley:8:2:3:5.1,3.0)": (5, F(31, 32)),
    "cayley:4x4:4:0.3.3.2:3.3.1,0.1.0": (7, F(63, 64)),
    "cayley:7:2:6:2.0,2.1,5.1,6.0": (2, F(13, 14)),
    "cayley:9:3:7:8.1,1.2,1.0,2.0": (3, F(26, 27)),
    "cayley:2x4:4:1.1.2.1:0.3.3,1.2.0,0.3.0,1.0.1": (3, F(31, 32)),
    "cayley:20:2:19:3.0,4.0,15.0,7.1": (3, F(39, 40)),
    "cayley:25:4:7:2.1,1.1,23.0,1.3": (4, F(99, 100)),
    "cayley:32:8:23:9.1,23.2,25.0,27.5": (6, F(255, 256)),
}


def steps_of(spec, collective="allgather"):
    problem = api.make_problem(load(spec), collective)
    return problem, step_bound(problem)


def shown(problem, bound):
    """Return the loads in parts on one link of the narrowest kind."""
    unit = min(link.bandwidth for link in problem.topology.links)
    return " ".join(str(step.load * unit) for step in bound.phases[0].steps)


def test_graphs_whose_shortest_paths_are_optimal():
    for spec, (ports, expected) in OPTIMAL.items():
        problem, bound = steps_of(spec)
        best = F(problem.topology.size - 1, problem.topology.size)
        found = bound.ports, shown(problem, bound), bound.bandwidth_time
        assert found == (ports, expected, best), spec
        assert bound.injection / bound.algbw == best, spec


def test_graphs_whose_shortest_paths_are_not():
    for spec, (ports, time, congestion, expected) in OTHERS.items():
        problem, bound = steps_of(spec)
        best = F(problem.topology.size - 1, problem.topology.size)
        assert (bound.ports, bound.bandwidth_time) == (ports, time), spec
        assert congestion in (None, bound.injection / bound.algbw / best), spec
        assert expected in (None, shown(problem, bound)), spec


def test_cayley_digraphs():
    for spec, expected in CAYLEY.items():
        bound = steps_of(spec)[1]
        assert (bound.steps, bound.bandwidth_time) == expected, spec


@pytest.mark.parametrize(
    ("spec", "gather", "scatter"),
    [
        ("genkautz:4,36", F(35, 27), F(13, 9)),
        ("genkautz:3,17", F(24, 17), F(33, 17)),
        ("genkautz:2,50", F(49, 25), F(49, 25)),
        ("kautz:2,3", F(7, 6), F(7, 6)),
    ],
)
def test_reduce_scatter_is_allgather_on_the_transpose(spec, gather, scatter):
    times = {c: steps_of(spec, c)[1] for c in ("allgather", "reduce-scatter", "allreduce")}
    assert times["allgather"].bandwidth_time == gather
    assert times["reduce-scatter"].bandwidth_time == scatter
    assert times["allreduce"].bandwidth_time == gather + scatter
    turned = steps_of(f"transpose({spec})")[1]
    assert turned.bandwidth_time == scatter
    assert times["allreduce"].steps == times["allgather"].steps + turned.steps


def random_fabric(seed):
    """Return a strongly connected fabric of different links, some of them through relays."""
    rng = random.Random(seed)
    size = rng.randint(2, 7)
    builder = Builder()
    for i in range(size):
        builder.add_node(Node(f"g{i}", Kind.GPU, box=0))
    around = {(i, (i + 1) % size) for i in range(size)}
    more = {tuple(rng.sample(range(size), 2)) for _ in range(rng.randint(0, 2 * size))}
    arcs = []
    for tail, head in sorted(around | more):
        rate = F(rng.choice((1, 1, 2, 3)))
        arcs.append((tail, head, rate))
        if rng.random() < 0.2:
            relay = builder.add_node(Node(f"s{tail}.{head}", Kind.SWITCH))
            builder.add_link(Link(tail, relay, rate), one_way=True)
            builder.add_link(Link(relay, head, rate + 1), one_way=True)
        else:
            builder.add_link(Link(tail, head, rate), one_way=True)
    return builder.finish("random"), arcs


@pytest.mark.parametrize("seed", range(12))
def test_loads_are_those_of_the_slow_twin_and_witnesses_add_up(seed):
    topology, arcs = random_fabric(seed)
    root = seed % topology.size
    for collective in ("allgather", "reduce-scatter", "broadcast"):
        rooted = root if collective == "broadcast" else None
        problem = api.make_problem(topology, collective, rooted)
        bound = step_bound(problem)
        ends = [(b, a, c) for a, b, c in arcs] if collective == "reduce-scatter" else arcs
        weights = [int(rooted in (None, i)) for i in range(topology.size)]
        expected = loads(topology.size, ends, weights)
        (phase,) = bound.phases
        found = {0: phase.together.load, **{i: x.load for i, x in enumerate(phase.steps, 1)}}
        assert found == expected
        check_steps(problem, bound)


def test_many_links_are_counted_by_flows():
    problem, bound = steps_of("hamming:2,9")
    assert shown(problem, bound) == "1 4"
    check_steps(problem, bound)


def test_the_checker_sees_every_change():
    problem, bound = steps_of("kautz:2,3")
    (phase,) = bound.phases
    first = phase.steps[0]
    wrong = [
        replace(first, parts=3),
        replace(first, bandwidth=first.bandwidth + 1),
        replace(first, rank=first.rank + 1),
        replace(first, links=first.links[:1]),
    ]
    broken = [replace(phase, steps=(x, *phase.steps[1:])) for x in wrong]
    broken += [replace(phase, steps=phase.steps[:2]), replace(phase, together=phase.steps[2])]
    for one in broken:
        with pytest.raises((VerificationError, KeyError)):
            check_steps(problem, replace(bound, phases=(one,)))
    with pytest.raises(VerificationError):
        check_steps(problem, replace(bound, parts=11))


def test_a_switch_is_named_and_a_relay_is_a_cable():
    with pytest.raises(InputError) as caught:
        steps_of("dgx-a100")
    assert caught.value.diagnostic.code == "CS309"
    assert "'nvswitch0' joins 8 neighbours" in caught.value.diagnostic.phrase


def test_bound_prints_steps(capsys):
    assert run(["bound", "kautz:2,3", "-c", "allgather", "--steps", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["steps"], found["moore_steps"], found["bandwidth_time"]) == (3, 3, "7/6")
    assert not found["throughput_optimal"]
    (phase,) = found["phases"]
    assert phase["together"]["parts"] == 7
    # Steps times latency and bytes over bandwidth are equal there.
    height, size = found["forest_height"], found["crossover_bytes"]
    rates = found["synchronous_algbw_gb_per_s"], found["optimum_gb_per_s"]
    slow, fast = (
        n * 0.7e-6 + size / rate / 1e9 for n, rate in zip((3, height), rates, strict=True)
    )
    assert slow == pytest.approx(fast)
    assert run(["bound", "torus:4x4", "-c", "allreduce", "--steps"]) == 0
    assert "throughput-optimal at the least height" in capsys.readouterr().out


def test_free_roots_may_beat_shortest_paths_that_are_optimal_for_equal_ones(capsys):
    for option in ("--steps", "--heights"):
        assert run(["bound", "mesh:1x4", "-c", "allreduce", option, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["optimum_gb_per_s"] == 50
        assert found["equal_roots_gb_per_s"] == pytest.approx(100 / 3)
        assert not found.get("throughput_optimal")
        assert run(["bound", "mesh:1x4", "-c", "allreduce", option]) == 0
        assert "50 GB/s" in capsys.readouterr().out


def test_a_switch_that_leads_nowhere_is_left_out(tmp_path):
    path = tmp_path / "dead_end.yaml"
    path.write_text(
        "version: 1\nname: dead end\nnodes:\n"
        + "".join(f"- {{name: g{i}, kind: gpu, box: 0}}\n" for i in range(3))
        + "- {name: s, kind: switch, box: 0}\nlinks:\n"
        + "".join(
            f"- {{from: {a}, to: {b}, bandwidth: 10 GB/s}}\n"
            for a, b in (("g0", "g1"), ("g1", "g2"), ("g2", "g0"), ("g0", "s"))
        )
    )
    problem = api.make_problem(api.load_topology(str(path)), "allgather")
    check_steps(problem, api.steps(problem))
