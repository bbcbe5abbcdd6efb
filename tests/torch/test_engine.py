"""The thread of the rounds ends before Python does, which would end the process otherwise."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs colsynth[torch]")

PROGRAM = """
import sys, time, weakref
import torch
from colsynth.torch.engine import HostEngine

class Transport:
    def begin(self): pass

def job(transport, tensor=torch.ones(4)):
    time.sleep(0.5)
    tensor.add_(1)
    print("done", flush=True)

engine = HostEngine(Transport(), None, 0)
work = engine.submit("allreduce", job, [], [])
gone = weakref.ref(job)
del job
if sys.argv[1] == "waits":
    work.wait()
if sys.argv[1] != "leaves":
    engine.close()
    print(gone() is None, flush=True)
"""


@pytest.mark.parametrize("end", ["closes", "waits", "leaves"])
def test_a_program_ends_when_its_calls_have_ended(end):
    command = [sys.executable, "-c", PROGRAM, end]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = ["done"] if end == "leaves" else ["done", "True"]
    assert (run.returncode, run.stdout.split()) == (0, told), run.stderr
