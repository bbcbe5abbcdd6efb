"""How many searches the flows of a ring take: a few per GPU, however long the ring is.

Counted without compilation, in a process of its own.
"""

import os
import subprocess
import sys

import pytest

COUNT = """
import sys
import numpy as np
from colsynth.kernels import maxflow
from colsynth.kernels.cuts import smallest_cut_ratio
from colsynth.kernels.packing import pack_arborescences

searches = 0
search = maxflow._levels

def counted(*arguments):
    global searches
    searches += 1
    return search(*arguments)

maxflow._levels = counted
gpus = int(sys.argv[2])
every = np.arange(gpus)
tail = np.concatenate((every, every))
head = np.concatenate(((every + 1) % gpus, (every - 1) % gpus))
width = np.full(2 * gpus, gpus // 2)
one = np.ones(gpus, np.int64)
if sys.argv[1] == "bound":
    smallest_cut_ratio(gpus, tail, head, width, every, one)
else:
    pack_arborescences(gpus, tail, head, width, every, one)
print(searches)
"""


def searches(what, gpus):
    command = [sys.executable, "-c", COUNT, what, str(gpus)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize("gpus", [16, 32])
def test_a_bound_takes_a_few_searches_per_gpu(gpus):
    assert searches("bound", gpus) <= 4 * gpus


@pytest.mark.parametrize("gpus", [16, 32])
def test_a_packing_takes_a_few_searches_per_gpu_and_level(gpus):
    assert searches("pack", gpus) <= 6 * gpus * (gpus // 2)
