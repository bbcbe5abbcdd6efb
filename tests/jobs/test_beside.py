"""Work in a copy of the process: its result, its failures, its end."""

import logging
import os
import pickle
import signal
import sys
from contextlib import suppress
from threading import Lock
from time import sleep

import pytest

from colsynth import api
from colsynth.jobs.beside import Beside

pytestmark = [
    pytest.mark.usefixtures("copies"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes copy themselves here"),
]


def test_the_copy_has_what_was_made_and_gives_its_result():
    made = {"numbers": list(range(1000)), "lock": Lock()}  # a lock cannot be sent to a process
    with Beside(lambda: [(os.getpid(), sum(made["numbers"]))]) as beside:
        process, total = beside.result()
    assert total == sum(range(1000))
    assert process != os.getpid()


def test_results_come_one_after_the_other_until_the_copy_fails():
    def work():
        yield "first"
        yield "second"
        raise KeyError("lost")

    with Beside(work) as beside:
        assert [beside.result() for _ in range(4)] == ["first", "second", None, None]


def test_a_copy_that_fails_gives_nothing(capfd):
    def fail():
        raise KeyError("lost")

    with Beside(fail) as beside:
        assert beside.result() is None
    with Beside(lambda: [os._exit(3)]) as beside:
        assert beside.result() is None
    with Beside(lambda: [os.write(2, b"why") and os._exit(3)]) as beside:
        assert beside.result() is None
    with Beside(lambda: [Lock()]) as beside:  # not to be pickled
        assert beside.result() is None
    assert capfd.readouterr() == ("", "")


def test_a_copy_that_is_killed_while_it_tells_gives_nothing(monkeypatch):
    whole = pickle.dumps
    monkeypatch.setattr(pickle, "dumps", lambda *given: whole(*given)[:-2])
    with Beside(lambda: [list(range(1000))]) as beside:
        assert beside.result() is None


def test_a_copy_may_be_gone_before_it_is_ended():
    """Where a parent process ignores SIGCHLD, so does this one, and copies leave nothing."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with Beside(lambda: [os.getpid()]) as beside:
            assert beside.result()
            sleep(0.1)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_closed_standard_output_does_not_matter(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with Beside(lambda: [os.getpid()]) as beside:
        assert beside.result()


def test_without_a_copy_there_is_no_result():
    with Beside(lambda: [os.getpid()], wanted=False) as beside:
        assert beside.result() is None


def test_no_copy_outlives_its_block():
    reader, writer = os.pipe()
    with suppress(ZeroDivisionError), Beside(lambda: [sleep(600)]):
        os.close(writer)
        raise ZeroDivisionError
    assert os.read(reader, 1) == b""  # nobody holds the other end any more
    os.close(reader)


def test_a_large_result_does_not_block_the_copy():
    with Beside(lambda: [bytes(10**7)]) as beside:
        assert beside.result() == bytes(10**7)


def test_notices_of_the_copy_appear_here_once_its_result_is_taken(caplog):
    def work():
        logging.getLogger("colsynth.jobs").info("%d kernels", 2)
        return [None]

    with caplog.at_level(logging.INFO, "colsynth"), Beside(work) as beside:
        assert not caplog.records
        beside.result()
    assert [record.getMessage() for record in caplog.records] == ["2 kernels"]


@pytest.mark.parametrize(
    ("machine", "collective", "runtime", "size", "wins"),
    [
        ("mesh:2x3", "allgather", "rccl", 2**16, "allpairs"),  # which the copy tried
        ("dgx-a100", "allgather", "msccl", None, "forest"),  # near the bound: nothing else is tried
        ("dgx-a100", "alltoall", "mscclpp", None, "ten"),
    ],
)
def test_copies_change_nothing(machine, collective, runtime, size, wins):
    problem = api.make_problem(api.load_topology(machine), collective)
    alone, shared = (api.compile(problem, runtime, size=size, jobs=jobs) for jobs in (1, 2))
    assert alone.summary()["algorithm"] == wins
    assert [file.data for file in alone.artefacts] == [file.data for file in shared.artefacts]
    assert alone.pipeline == shared.pipeline
    assert alone.notes == shared.notes
    assert alone.predicted == shared.predicted
    assert alone.limited_by == shared.limited_by
    assert alone.seconds.keys() == shared.seconds.keys()
