"""`colsynth.torch` in jobs of 4 and 8 processes; what they check is in tests/torch/jobs.py."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from importlib.util import find_spec

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.model import Collective, Header, Message, Round, RoundProgram, Slot
from colsynth.runtimes.rounds import parse_rounds
from colsynth.topology import load
from tests.examples import ROOT

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs colsynth[torch]")

ROOTS = {"broadcast": 0, "reduce": 1}
COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "alltoall", *ROOTS)


@pytest.fixture(scope="session")  # pytest runs slow tests first, then those of other modules
def places(tmp_path_factory):
    """Return a list of files for 2, 4 and 8 ranks, and a tuned bundle for 4, as in the variable."""
    folder = tmp_path_factory.mktemp("schedules")
    tuned = api.tune(load("ring:4"), ["alltoall", "allreduce"], "torch", [10**9], budget=8)
    api.write_bundle(tuned, folder / "bundle")
    found = [folder / "bundle"]
    for machine in ("ring:2", "clique:4", "hypercube:3"):
        for collective in COLLECTIVES:
            problem = api.make_problem(load(machine), collective, ROOTS.get(collective))
            for artefact in api.compile(problem, "torch", level=0).artefacts:
                found.append(folder / artefact.name)
                found[-1].write_bytes(artefact.data)
    return found


def job(places, folder, *jobs, **more):
    """Return the lines of jobs, one per rank, without the name of the job."""
    names = os.pathsep.join(map(str, places))
    result = subprocess.run(
        [sys.executable, "-m", "tests.torch.jobs", str(folder), *map(str, jobs)],
        env={**os.environ, "COLSYNTH_BUNDLE": names, "OMP_NUM_THREADS": "1", **more},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.slow
def test_jobs(places, tmp_path):
    """One process imports PyTorch and forks all ranks of all jobs, which saves most of the time."""
    example = re.search(
        r"```python\n(.*?)```", (ROOT / "colsynth/guide/torch.md").read_text(), re.S
    )
    assert sum(bool(line) for line in example[1].splitlines()) <= 30
    (tmp_path / "train.py").write_text(example[1])
    jobs = ("calls", 4, "calls", 8, "training", 4, "failure", 4)
    jobs += ("mismatch", 4, "unread", 4, "example", 4)
    lines = job(places, tmp_path, *jobs, COLSYNTH_OTHER=str(places[-1]))
    of = {}
    for line in lines:
        name, size, rank, text = line.split(" ", 3)
        of.setdefault((name, int(size)), {})[int(rank)] = text
    assert {key: len(ranks) for key, ranks in of.items()} == {
        (name, int(size)): int(size) for name, size in zip(jobs[::2], jobs[1::2], strict=True)
    }
    for name in (("calls", 4), ("calls", 8), ("training", 4), ("example", 4)):
        assert all(text.startswith("ok ") for text in of[name].values()), of[name]
    *others, last = of["failure", 4].values()
    assert last == "ValueError: this rank gives up"
    assert all(re.match(r"ok colsynth: allreduce of 15360 bytes by .* failed", x) for x in others)
    assert all("not those of rank 0 on rank 1" in text for text in of["mismatch", 4].values())
    assert "nothing.json" in of["unread", 4].pop(1)
    assert all("not those of rank 0 on rank 1" in text for text in of["unread", 4].values())


@pytest.mark.slow
def test_jobs_on_a_gpu(places, tmp_path):
    """All ranks share one GPU, and NCCL takes each for a host of its own."""
    import torch

    if not (torch.cuda.is_available() and torch.distributed.is_nccl_available()):
        pytest.skip("needs a GPU of NVIDIA")
    jobs = ("calls", 4, "calls", 8, "training", 4, "streams", 4, "graph", 4)
    lines = job(places, tmp_path, *jobs, COLSYNTH_TEST_DEVICE="cuda")
    assert len(lines) == sum(jobs[1::2])
    assert all(line.split(" ", 3)[3].startswith("ok ") for line in lines), lines


def test_schedules_that_are_missing_damaged_or_wrong_are_refused(places, tmp_path, monkeypatch):
    from colsynth.torch.shelf import read_shelf

    bundle = places[0]
    shelf = read_shelf(os.pathsep.join(map(str, places)), 4)
    assert {collective.value for collective, _ in shelf.files} == set(COLLECTIVES)
    manifest = json.loads((bundle / "manifest.json").read_text())
    left = {item["collective"] for item in manifest["left_to_library"]}
    assert "allreduce" in left  # two rounds are slower than NCCL's ring, as predicted
    assert manifest["files"][0]["collective"] == "alltoall"
    refused = partial(pytest.raises, InputError)
    monkeypatch.delenv("COLSYNTH_BUNDLE", raising=False)
    with refused(match="is not set"):
        read_shelf(None, 4)
    with refused(match="nothing.json"):
        read_shelf(str(tmp_path / "nothing.json"), 4)
    wrong = tmp_path / "wrong.json"
    wrong.write_bytes(places[2].read_bytes().replace(b'"o",0', b'"o",1', 1))
    with refused(match="cannot be used"):
        read_shelf(str(wrong), 4)
    (file,) = (bundle / "schedules").iterdir()
    file.write_bytes(file.read_bytes() + b" ")
    with refused(match="checksum"):
        read_shelf(str(bundle), 4)


class Recorder:
    """Stands for NCCL's backend: notes what is posted, moves nothing."""

    def __init__(self):
        self.posted = []

    def allreduce(self, tensors):
        return self

    def wait(self):
        return True

    def _start_coalescing(self):
        self.posted.append([])

    def _end_coalescing(self):
        return self

    def send(self, tensors, peer, _tag):
        self.posted[-1].append(("send", peer, tensors[0].numel()))

    def recv(self, tensors, peer, _tag):
        self.posted[-1].append(("recv", peer, tensors[0].numel()))


def busy_pairs():
    """Return a program of which pairs have several messages in a round, of several lengths."""
    hops = ((1, 0, 1), (1, 2, 2), (2, 3, 1), (1, 1, 1))
    messages = tuple(
        Message(rank, (rank + hop) % 8, Slot("i", first), Slot("s", first), count)
        for hop, first, count in hops
        for rank in range(8)
    )
    header = Header("", Collective.ALLREDUCE, "Simple", 8, 8, 1, True, True)
    return RoundProgram(header, (8,) * 8, (Round(messages),))


@pytest.mark.parametrize("name", ["hypercube-3-allreduce-torch.json", None])
def test_nccl_gets_one_group_per_round_with_pairs_in_one_order(places, name):
    import torch

    from colsynth.torch.rounds import execute, part_of
    from colsynth.torch.transport import NcclTransport

    program, posted = busy_pairs(), []
    if name is not None:
        (path,) = (x for x in places if x.name == name)
        program = parse_rounds(path.read_bytes())
    for rank in range(8):
        recorder, data = Recorder(), torch.ones(640)
        part = part_of("", program, rank)
        execute(part, data, data, 640, torch.add, NcclTransport(recorder))
        assert len(recorder.posted) == sum(bool(found.posts) for found in part.parts)
        posted.append([entry for group in recorder.posted for entry in group])
    for one in range(8):
        for other in range(8):
            sent = [size for way, peer, size in posted[one] if (way, peer) == ("send", other)]
            got = [size for way, peer, size in posted[other] if (way, peer) == ("recv", one)]
            assert sent == got


def test_cuts_give_every_run_once():
    """Runs of a buffer may overlap, touch, or be equal."""
    import torch

    from colsynth.torch.runs import Runs, cut

    buffers = {"i": torch.arange(60), "o": torch.arange(100, 160)}
    runs = Runs()
    asked = [("i", 0, 2), ("i", 1, 3), ("i", 2, 2), ("o", 5, 7), ("o", 19, 1), ("i", 0, 20)]
    numbers = [runs.number(Slot(buffer, first), count) for buffer, first, count in asked]
    assert numbers == [runs.number(Slot(buffer, first), count) for buffer, first, count in asked]
    views = cut(buffers, runs.cuts(), 3)
    assert len(views) == len(asked) == len(set(numbers))
    for number, (buffer, first, count) in zip(numbers, asked, strict=True):
        assert torch.equal(views[number], buffers[buffer][3 * first :][: 3 * count])
        assert views[number].data_ptr() == buffers[buffer][3 * first :].data_ptr()
