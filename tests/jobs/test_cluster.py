"""Work on a Dask cluster: the answers and bytes of this process, whatever ends meanwhile."""

import json
import logging
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from colsynth import api
from colsynth.cli import progress as shown
from colsynth.cli.main import run
from colsynth.errors import InputError
from colsynth.jobs import cluster, evaluation
from colsynth.jobs.evaluation import fingerprint

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs colsynth[dask]")

SURVEY = ["survey", "mesh:2x3", "-c", "allreduce", "-o"]
FAILURES = 7
"""Links of the mesh."""


def contents(place):
    return {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}


def client_of(*place, **named):
    from distributed import Client  # 0.5 s, which only these tests need

    return Client(*place, set_as_default=False, **named)


class Dask:
    """A scheduler and two workers, as people start them."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.processes = {}
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0")
        for name in ("one", "two"):
            self.join(name)
        with client_of(scheduler_file=str(self.file)) as client:
            client.wait_for_workers(2)
        self.address = json.loads(self.file.read_text())["address"]

    def join(self, name):
        """Start a worker."""
        alone = ("--nthreads", "1", "--no-nanny", "--local-directory", str(self.folder))
        self._start(name, "worker", *alone)

    def _start(self, name, *arguments):
        with (self.folder / f"{name}.log").open("w") as log:
            plain = ("--no-dashboard", "--scheduler-file", str(self.file))
            command = [sys.executable, "-m", "dask", *arguments, *plain]
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    found = Dask(tmp_path_factory.mktemp("dask"))
    yield found
    for name in found.processes:
        found.kill(name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A survey by this process alone."""
    place = tmp_path_factory.mktemp("survey") / "whole"
    assert run([*SURVEY, str(place), "--jobs", "1"]) == 0
    return contents(place)


@pytest.fixture
def at_row(monkeypatch):
    """Return a function that calls another once a survey has some rows, and keeps what was told."""

    def watch(row, act):
        told, tell = [], shown._Last.__call__

        def telling(self, what, done, total):
            tell(self, what, done, total)
            told.append(what)
            if done == row:
                act()

        monkeypatch.setattr(shown._Last, "__call__", telling)
        return told

    return watch


def interrupt():
    raise KeyboardInterrupt


def test_workers_must_have_the_versions_of_this_process(dask, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(evaluation, "version", lambda _name: "0.1")
    fingerprint.cache_clear()
    place = tmp_path / "out"
    assert run([*SURVEY, str(place), "--scheduler", dask.address]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error[CS254]: 2 workers of ")
    assert said.count(f"numba {version('numba')}, here 0.1") == 2
    assert not place.exists()
    fingerprint.cache_clear()


def test_workers_that_came_late_are_checked_too(dask, monkeypatch):
    monkeypatch.setattr("colsynth.jobs.workers.fingerprint", dict)
    with pytest.raises(InputError, match="CS254"), cluster.connected(dask.address) as workers:
        api.survey(api.make_problem(api.load_topology("ring:3"), "allgather"), executor=workers)


def test_ctrl_c_cancels_what_was_sent(dask, at_row, tmp_path, capsys):
    at_row(1, interrupt)
    assert run([*SURVEY, str(tmp_path / "out"), "--scheduler", dask.address]) == 130
    said = capsys.readouterr().err
    assert said.startswith("interrupted: surveyed healthy (2 workers), 1 of 8; start the same")
    with client_of(dask.address) as client:
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    assert left <= 2  # those that the workers are busy with


def test_any_executor_will_do(dask, whole, tmp_path):
    problem = api.make_problem(api.load_topology("mesh:2x3"), "allreduce")
    with client_of(dask.address) as client:
        api.survey(problem, executor=client.get_executor(), folder=tmp_path / "out")
    assert contents(tmp_path / "out") == whole


def test_a_worker_that_is_killed_costs_no_byte(dask, whole, at_row, tmp_path):
    told = at_row(3, lambda: dask.kill("one"))
    assert run([*SURVEY, str(tmp_path / "out"), "--scheduler", dask.address]) == 0
    assert contents(tmp_path / "out") == whole
    assert told[1].endswith("(2 workers)")
    assert told[-1].endswith("(1 worker, 1 lost)")


def test_where_no_worker_is_left_it_waits_for_one(dask, whole, at_row, tmp_path, monkeypatch):
    warned = []

    def warn(*_):
        warned.append(1)
        if len(warned) == 1:
            dask.join("three")

    # The test before, which kills a worker, may have run in another process with its own.
    alive = [name for name in ("one", "two") if dask.processes[name].poll() is None]
    monkeypatch.setattr(cluster._LOG, "warning", warn)
    told = at_row(2, lambda: [dask.kill(name) for name in alive])
    assert run([*SURVEY, str(tmp_path / "out"), "--scheduler", dask.address]) == 0
    assert contents(tmp_path / "out") == whole
    lost = f"(no worker left, waiting for one, {len(alive)} lost)"
    assert any(what.endswith(lost) for what in told)
    assert warned


def test_a_search_is_the_same_too(dask, tmp_path):
    command = ["tune", "ring:4", "-c", "allgather", "-r", "rccl", "--budget", "6", "-o"]
    assert run([*command, str(tmp_path / "there"), "--scheduler", dask.address]) == 0
    assert run([*command, str(tmp_path / "here"), "--jobs", "1"]) == 0
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_scheduler_that_goes_away_ends_with_one_message(dask, whole, at_row, tmp_path, capsys):
    """The last test, which leaves no cluster; the work goes on here."""
    place = tmp_path / "out"
    at_row(3, lambda: dask.kill("scheduler"))
    assert run([*SURVEY, str(place), "--scheduler", dask.address]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"error[CS253]: the Dask scheduler {dask.address} went away during the work"
    assert len(said) == 2
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.ERROR)  # a traceback
    known = (place / "journal.jsonl").read_text().count('"failure"')
    assert 3 <= known < FAILURES + 1
    assert run([*SURVEY, str(place), "--jobs", "1"]) == 0
    assert contents(place) == whole


def test_nothing_answers_there_or_dask_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(cluster, "_PATIENCE", 1)
    command = ["compare", "ring:3", "-c", "allgather", "--scheduler"]
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        assert run([*command, address]) == 2
        assert f"error[CS253]: no Dask scheduler answers at '{address}'" in capsys.readouterr().err
    assert run([*command, "tcp://127.0.0.1:9", "--jobs", "2"]) == 2
    assert "error[CS217]" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run([*command, "tcp://127.0.0.1:9"]) == 2
    assert "error[CS252]" in capsys.readouterr().err
