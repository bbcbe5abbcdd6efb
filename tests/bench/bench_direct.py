"""Direct-connect fabrics by the figures of the project: exact bounds, and verified files.

``python -m tests.bench.bench_direct bounds`` times exact bounds of shortest-path broadcast;
``files`` compiles fabrics for every runtime and collective; ``sizes`` compares what the default
search finds at each message size with shortest-path trees and forests alone; ``fronts`` checks that
the search for a cabling is never worse than known constructions, for 6 to 64 GPUs.
"""

import sys
import time
from itertools import product

from colsynth import api
from colsynth.bounds.steps import step_bound
from colsynth.cabling.finder import Finder
from colsynth.errors import ColsynthError
from colsynth.runtimes.selection import usual_size
from colsynth.topology import load

BOUNDS = ("hypercube:10", "torus:50x50", "torus:64x64", "genkautz:4,4096", "torus:16x16x16")
FILES = ("torus:8x8", "kautz:2,4", "circulant:64,5,6", "line^2(bipartite:4)")
SIZES = ("torus:4x4", "circulant:12,2,3", "kautz:2,3", "genkautz:4,36", "torus:8x8")
EXPONENTS = (10, 16, 18, 20, 22, 26, 30)
RUNTIMES = ("msccl", "msccl-executor", "rccl")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


def bounds():
    step_bound(api.make_problem(load("ring:4"), "allgather"))  # loads the kernels
    for spec in BOUNDS:
        problem = api.make_problem(load(spec), "allgather")
        start = time.process_time()
        found = step_bound(problem)
        seconds = time.process_time() - start
        print(f"{spec:18} {found.steps:3} {found.bandwidth_time!s:12} {seconds:.2f} s")


def files():
    for spec in FILES:
        for collective in COLLECTIVES:
            for runtime in RUNTIMES:
                problem = api.make_problem(load(spec), collective)
                start = time.process_time()
                try:
                    done = api.compile(problem, runtime, algorithm="bfb", level=0)
                    told = f"verified, {sum(len(x.data) for x in done.artefacts)} bytes"
                except ColsynthError as fault:
                    told = str(fault.diagnostic).splitlines()[0]
                row = f"{spec:20} {collective:15} {runtime:15} {told}"
                print(row, f"{time.process_time() - start:.1f} s", flush=True)


def sizes():
    rows = {"default": {}, "bfb": {"algorithm": "bfb"}, "forest": {"algorithm": "forest"}}
    rows["one tree"] = {"algorithm": "forest", "trees": "1"}
    for collective, spec, exponent in product(("allgather", "allreduce"), SIZES, EXPONENTS):
        problem = api.make_problem(load(spec), collective)
        size = usual_size(
            2**exponent, problem.collective, problem.topology.size
        )  # others are never selected
        times = {}
        start = time.process_time()
        for name, options in rows.items():
            done = api.compile(problem, "msccl", size=size, mode="in-place", **options)
            times[name] = done.predicted[-1].seconds * 1e6
        best = min(times[name] for name in rows if name != "default")
        shown = " ".join(f"{name} {us:.2f}" for name, us in times.items())
        ratio = times["default"] / best
        print(f"{spec:18} {collective} {size:11} {shown} ratio {ratio:.4f}", end=" ")
        print(f"{time.process_time() - start:.1f} s", flush=True)


def fronts():
    start = time.process_time()
    for ports, duplex in ((2, False), (4, False), (4, True)):
        worse, better = [], []
        for size in range(6, 65):
            known, found = (
                [finder.key(x) for x in finder.front(size, ports, duplex=duplex)]
                for finder in (Finder("allgather", tries, 0, _silent) for tries in (0, 20_000))
            )
            beats = [[a <= b and s <= t for a, s in found] for b, t in known]
            worse += [size] if not all(map(any, beats)) else []
            better += [size] if set(found) - set(known) else []
        kind = f"{ports} {'duplex' if duplex else 'simplex'} ports"
        seconds = time.process_time() - start
        print(
            f"{kind}: worse at {worse}, better at {len(better)} of 59, {seconds:.0f} s", flush=True
        )


def _silent(_what, _done, _total):
    pass


if __name__ == "__main__":
    {"bounds": bounds, "files": files, "sizes": sizes, "fronts": fronts}[sys.argv[1]]()
