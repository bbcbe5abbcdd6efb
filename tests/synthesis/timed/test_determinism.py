"""The same seed gives the same bytes, in any process and on any number of threads."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, sys, tempfile
from importlib.util import find_spec
from pathlib import Path
from colsynth import api

def digest(data):
    print(hashlib.sha256(data).hexdigest())

with tempfile.TemporaryDirectory() as folder:
    for spec, nodes, collective, options in (
        ("mesh:16x16", None, "allgather", {}),
        # Large enough for threads to share rounds.
        ("mesh:92x92", None, "broadcast", {"policy": "oldest", "chunks_per_gpu": 4}),
        ("mesh:5x5", None, "allreduce", {"policy": "rarest"}),
        ("dgx-a100", 2, "allreduce", {"chunks_per_gpu": 4, "policy": "earliest"}),
        ("ndv2", 2, "alltoall", {"chunks_per_gpu": 2}),
        ("mi250", 1, "reduce-scatter", {"chunks_per_gpu": 3}),
    ):
        topology = api.load_topology(spec, nodes=nodes)
        problem = api.make_problem(topology, collective)
        for seed in (0, 3) if topology.size < 100 else (3,):
            found = api.synthesize(problem, size=10**6, tries=2, seed=seed, **options)
            path = Path(folder, "schedule.npz")
            api.write_schedule(found.schedule, path)
            digest(path.read_bytes())
    for collective in ("allreduce", "alltoall"):
        problem = api.make_problem(api.load_topology("ndv2", nodes=2), collective)
        done = api.compile(problem, "msccl-executor", algorithm="ten", chunks_per_gpu=2, seed=1)
        for artefact in done.artefacts:
            digest(artefact.data)
    if find_spec("ortools"):
        problem = api.make_problem(api.load_topology("dgx-1v"), "allgather")
        found = api.synthesize(problem, algorithm="exact", size=10**6, seed=1)
        api.write_schedule(found.schedule, path)
        digest(path.read_bytes())
"""


def digests(hash_seed, threads):
    settings = {"PYTHONHASHSEED": hash_seed, "NUMBA_NUM_THREADS": threads}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_any_process():
    processes = [digests("0", "1"), digests("4711", "2")]
    one, other = (process.communicate()[0].split() for process in processes)
    assert all(process.returncode == 0 for process in processes)
    assert one == other
    assert len(one) >= 10 + 2
