"""colsynth from Python: plain functions that return values.

::

    from colsynth import api

    topology = api.load_topology("dgx-a100", nodes=2)
    problem = api.make_problem(topology, "allreduce")
    print(float(api.allreduce_bound(problem).algbw) / 1e9, "GB/s")
    done = api.compile(problem, "msccl", mode="in-place")
    Path("allreduce.xml").write_bytes(done.artefacts[0].data)
    found = api.synthesize(problem, size=64 * 10**6, chunks_per_gpu=4)
    api.write_schedule(found.schedule, "allreduce.npz")
"""

from colsynth.api.compiling import compile, file_names, pass_names  # noqa: A004 - a verb
from colsynth.api.direct import cablings, heights, steps, write_cabling
from colsynth.api.failures import damage, survey
from colsynth.api.files import executable, simulate, verify
from colsynth.api.passes import add_pass
from colsynth.api.problem import (
    allreduce_bound,
    bound,
    communicators,
    load_topology,
    make_problem,
    read_sketch,
)
from colsynth.api.timed import frontier, link_rows, read_schedule, synthesize, write_schedule
from colsynth.api.trees import pack
from colsynth.api.tuning import compare, tune, write_bundle
from colsynth.api.warming import warm
from colsynth.compile.modes import Mode
from colsynth.compile.result import Artefact, Compilation

__all__ = [
    "Artefact",
    "Compilation",
    "Mode",
    "add_pass",
    "allreduce_bound",
    "bound",
    "cablings",
    "communicators",
    "compare",
    "compile",
    "damage",
    "executable",
    "file_names",
    "frontier",
    "heights",
    "link_rows",
    "load_topology",
    "make_problem",
    "pack",
    "pass_names",
    "read_schedule",
    "read_sketch",
    "simulate",
    "steps",
    "survey",
    "synthesize",
    "tune",
    "verify",
    "warm",
    "write_bundle",
    "write_cabling",
    "write_schedule",
]
