"""Valid files and command lines that cases begin with."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from colsynth import api
from colsynth.cli.main import run

CORPUS = Path(__file__).parents[1] / "corpus" / "xml"

PAIR = """\
version: 1
name: pair
nodes:
- {name: gpu0, kind: gpu, box: 0}
- {name: gpu1, kind: gpu, box: 0}
- {name: sw, kind: switch, capabilities: [multicast]}
ranks: [gpu1, gpu0]
links:
- {from: gpu0, to: gpu1, bandwidth: 25 GB/s, latency: 0.7 us}
- {from: gpu0, to: sw, bandwidth: 100/3 GB/s, count: 2}
- {from: gpu1, to: sw, bandwidth: 10 Gb/s, one-way: true}
- {from: sw, to: gpu1, bandwidth: 10 Gb/s, one-way: true}
"""
CLUSTER = """\
version: 1
name: lab
title: two boxes of two
parameters: {nic: 25 GB/s, planes: 2, half: $nic / 2}
boxes: 2
box:
  nodes:
  - {name: gpu, kind: gpu, count: 2}
  - {name: nic, kind: nic, count: 2}
  links:
  - {from: gpu, to: gpu, bandwidth: 50 GB/s, latency: 0.7 us}
  - {from: gpu, to: nic, bandwidth: $nic, join: blocks}
fabric:
  nodes:
  - {name: ib, kind: switch, count: $planes}
  links:
  - {from: nic, to: ib, bandwidth: nic / planes + half, latency: 500 ns}
"""
CUSTOM = """\
version: 1
chunks:
- {held-by: [0], wanted-by: [1, 2], count: 2}
- {held-by: [gpu1, 2], wanted-by: [0], reduces: true}
"""
SHARDS = """\
version: 1
shards:
- {gpus: [0-1], weight: 2}
- {gpus: [gpu2], weight: 1}
"""
MODEL = "network_efficiency: 0.9\nrate: {Simple: 20, LL: 5}\nslices: 2\nleast_slice: 1024\n"


@cache
def schedules():
    """Return the texts of good schedule files."""
    return tuple(path.read_text() for path in sorted(CORPUS.glob("good-*.xml")))


CHUNKS = (*(0, 1, -1, 2, 77, 2**31, 2**40, 10**8, 10**40, 0.5, True, None), "i", "s", "x", [], {})
"""What a value of a schedule may be replaced by: numbers of ranks, chunks and threadblocks."""


@cache
def documents():
    """Return the texts of good schedules in JSON, by runtime."""
    problem = api.make_problem(api.load_topology("clique:2"), "allreduce")
    wanted = {"size": 2**20, "level": 0, "algorithm": "forest"}
    compiled = {name: api.compile(problem, name, **wanted) for name in ("mscclpp", "torch")}
    return {name: done.artefacts[0].data.decode() for name, done in compiled.items()}


@cache
def arrays():
    """Return the arrays of two timed schedules, by name."""
    found = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.npz"
        for spec, collective in (("mesh:2x3", "allreduce"), ("ring:3", "alltoall")):
            problem = api.make_problem(api.load_topology(spec), collective)
            api.write_schedule(api.synthesize(problem).schedule, path)
            with np.load(path) as archive:
                found.append({name: archive[name] for name in archive.files})
    return tuple(found)


SURVEY = ["survey", "ring:3", "-c", "allgather", "-a", "ring", "--jobs", "1", "-o", "kept"]
TUNE = [
    *("tune", "ring:2", "-c", "allgather", "-r", "msccl", "--sizes", "1KiB,1MiB", "--budget", "3"),
    *("--jobs", "1", "-o", "bundle"),
]


def kept_lines(path):
    """Return the entries of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def quietly(arguments):
    """Run a command line that must be right."""
    code = run(arguments)
    if code not in (0, 1):
        raise AssertionError(f"{arguments} ends with {code}")
