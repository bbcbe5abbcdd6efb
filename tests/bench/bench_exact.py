"""Exact schedules beside published ones, in the constants of TACCL's files; and bounds by seeds.

``python -m tests.bench.bench_exact sizes`` prints, for two and four NDv2 with one relay pair and
two DGX-2 with relays from odd to even GPUs, time and processor seconds by size per GPU beside
TACCL's, from its public release with its third stage repaired. ``frontier`` walks steps and rounds
of the DGX-1. ``bounds`` compares bound and exact schedule on 200 seeded machines of 3 to 6 GPUs.
"""

import resource
import sys
import time
from fractions import Fraction

from colsynth.model import Collective, Kind, Link, Node, Problem, Topology
from colsynth.runtimes.target import Context
from colsynth.synthesis.exact import worker
from colsynth.synthesis.exact.frontier import Frontier
from colsynth.synthesis.exact.solve_exact import SolveExact
from colsynth.topology import load
from colsynth.verify import check_timed
from tests.synthesis.exact.test_solve_exact import COLLECTIVES, machine, problem_of

MICRO = Fraction(1, 10**6)
MEGABYTE = 2**20
REMOTE = 105, Fraction(26, 10)
"""Microseconds per MB of a NIC, and its latency; NVLink has 0.3 us."""

CASES = (
    ("ndv2", 2, ((2**10, 8.62), (2**15, 40.5), (2**20, 988.4))),
    ("ndv2", 4, ((2**10, None), (2**20, 2680.6))),
    ("dgx2", 2, ((2**10, 14.3),)),
)


def seconds():
    """Return the processor seconds so far, with those of the solver's process, which is ended."""
    worker.end()
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def link(source, target, per_megabyte, latency):
    return Link(source, target, MEGABYTE / (per_megabyte * MICRO), Fraction(latency) * MICRO)


def ndv2(boxes):
    """Return NDv2s whose GPU 0 sends to GPU 1 of all others through the one NIC of its box."""
    one = load("ndv2", nodes=1)
    direct = [
        (one.rank_of[x.source], one.rank_of[x.target], x.bandwidth)
        for x in one.links
        if {one.nodes[end].kind for end in (x.source, x.target)} == {Kind.GPU}
    ]
    wide = max(rate for *_, rate in direct)
    links = [
        link(8 * b + u, 8 * b + v, 23 if rate == wide else 46, "0.3")
        for b in range(boxes)
        for u, v, rate in direct
    ]
    network = 8 * boxes
    links += [link(8 * b, network, *REMOTE) for b in range(boxes)]
    links += [link(network, 8 * b + 1, REMOTE[0], 0) for b in range(boxes)]
    return made("ndv2", boxes, 8, (network,), links)


def dgx2(boxes):
    """Return DGX-2s joined by a NIC from every odd GPU to the even one before it."""
    switch = [16 * boxes + b for b in range(boxes)]
    links = []
    for b in range(boxes):
        for u in range(16 * b, 16 * b + 16):
            links += [link(u, switch[b], 8, "0.15"), link(switch[b], u, 8, "0.15")]
        others = [c for c in range(boxes) if c != b]
        links += [
            link(16 * b + i, 16 * c + i - 1, *REMOTE) for c in others for i in range(1, 16, 2)
        ]
    return made("dgx2", boxes, 16, switch, links)


def made(name, boxes, each, switches, links):
    nodes = [Node(f"gpu{b}.{i}", Kind.GPU, b) for b in range(boxes) for i in range(each)]
    nodes += [Node(f"switch{b}", Kind.SWITCH) for b, _ in enumerate(switches)]
    ranks = tuple(range(boxes * each))
    return Topology(f"{name} x{boxes}", tuple(nodes), tuple(links), ranks)


def sizes():
    for name, boxes, rows in CASES:
        topology = {"ndv2": ndv2, "dgx2": dgx2}[name](boxes)
        for size, published in rows:
            start = seconds()
            problem = Problem(topology, Collective.ALLGATHER)
            found = SolveExact(size=size * topology.size).run(problem, Context())
            spent = seconds() - start
            check_timed(found)
            micros = float(found.seconds / MICRO), float(found.bound.seconds / MICRO)
            times = f"{micros[0]:10.2f} us, bound {micros[1]:10.2f}"
            print(f"{topology.name} {size:8} {times}, TACCL {published}, {spent:.1f} s")
            print(f"    {found.claim}")


def frontier():
    start = seconds()
    for point in Frontier(problem_of(load("dgx-1v"), "allgather"), 6, 10).walk():
        print(point, f"{seconds() - start:.2f} s")
    alltoall = Frontier(problem_of(load("dgx-1v"), "alltoall"), 3, 10)
    print(*(alltoall.ask(3, 2, rounds) for rounds in (7, 8)), sep="\n")


def bounds():
    met = worst = 0
    for seed in range(200):
        problem = problem_of(machine(seed), COLLECTIVES[seed % len(COLLECTIVES)])
        found = SolveExact(size=(60, 6 * 10**4)[seed // 8 % 2], work=2).run(problem, Context())
        check_timed(found)
        assert found.gap >= 0, seed
        met += found.gap == 0
        worst = max(worst, found.gap)
    print(f"200 machines: the bound is met on {met}, the largest gap is {float(worst):.2f}")


if __name__ == "__main__":
    {"sizes": sizes, "frontier": frontier, "bounds": bounds}[sys.argv[1]]()
