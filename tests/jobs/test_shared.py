"""Work that a process and a copy of it share: who learns what, and what no end of one breaks."""

import logging
import os
import sys
from pathlib import Path
from time import sleep

import pytest

from colsynth.jobs import process_copy
from colsynth.jobs.shared import Shared

pytestmark = [
    pytest.mark.usefixtures("copies"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes copy themselves here"),
]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def until(shared, key):
    """Return the other process's result, whenever it comes."""
    while (found := shared.result(key)) is None:
        shared.wait()
    return found


def test_each_process_learns_what_the_other_has_done():
    def work(shared):
        shared.give("first", os.getpid())
        shared.give("sum", until(shared, "here") + 1)

    with Shared(work) as shared:
        shared.give("here", 41)
        assert until(shared, "first") != os.getpid()
        assert until(shared, "sum") == 42
        assert shared.result("here") is None  # that is known from doing it
        assert set(shared.results()) == {42, until(shared, "first")}
        assert not shared.is_copy


def test_it_is_seen_what_the_other_process_is_at():
    def work(shared):
        shared.begin("long")
        until(shared, "go on")
        shared.give("long", 1)

    with Shared(work) as shared:
        while not shared.is_begun("long"):
            shared.wait()
        assert not shared.is_begun("go on")
        assert shared.result("long") is None
        shared.give("go on", 0)
        assert until(shared, "long") == 1
        assert not shared.is_begun("long")


def test_what_a_process_leaves_is_not_begun():
    def work(shared):
        shared.begin("long")
        shared.leave()
        shared.wish(["left"])
        sleep(600)

    with Shared(work) as shared:
        while shared.wished() is None:
            assert shared.wait()
        assert not shared.is_begun("long")


def test_a_python_without_files_in_memory_shares_work_too(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")  # those of conda, and older ones of uv
    with Shared(lambda shared: shared.give("large", 1, value=bytes(10**6))) as shared:
        assert until(shared, "large") == 1
        assert shared.value("large") == bytes(10**6)


@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: 1 / 0, lambda: None])
def test_nobody_waits_for_a_process_that_has_ended(end, capfd):
    def work(shared):
        shared.begin("long")
        end()

    with Shared(work) as shared:
        while shared.wait():
            pass
        assert not shared.is_begun("long")
        assert not shared.wait()
        shared.give("unread", 1)
    assert capfd.readouterr() == ("", "")


def test_values_are_read_only_where_they_are_asked_for():
    """Nor does a process wait until another has room for its values."""

    def work(shared):
        shared.give("large", "small", value=bytes(10**7))
        shared.give("next", 2)
        sleep(600)

    with Shared(work) as shared:
        assert until(shared, "next") == 2
        assert shared.result("large") == "small"
        assert shared.value("large") == bytes(10**7)
        assert shared.value("next") is shared.value("unknown") is None


def test_wishes_replace_those_before_and_are_met_once():
    def work(shared):
        met = []
        while (wish := shared.wished()) != "end":
            if wish is None:
                shared.wait()
            else:
                met.append(wish)
                shared.give("met", tuple(met))
        shared.give("all", tuple(met))

    with Shared(work) as shared:
        shared.wish(["b", "a"])
        while shared.result("met") != ("a", "b"):
            shared.wait()
        shared.wish(["end", "c"])
        assert until(shared, "all") == ("a", "b", "c")
        assert shared.wished() is None


def test_notices_of_the_copy_appear_once_its_result_is_taken(caplog):
    def work(shared):
        logging.getLogger("colsynth.jobs").info("%d kernels", 2)
        shared.give("kernels", 2)
        shared.give("more", 0)

    with caplog.at_level(logging.INFO, "colsynth"), Shared(work) as shared:
        assert until(shared, "more") == 0
        assert not caplog.records
        assert [until(shared, "kernels") for _ in range(2)] == [2, 2]
    assert [record.getMessage() for record in caplog.records] == ["2 kernels"]


@pytest.mark.parametrize("failing", ["is_possible", "memfd_create", "fork"])
def test_without_a_copy_there_are_no_results(failing, monkeypatch):
    def refuse(*_):
        raise OSError("too many")

    if failing == "is_possible":
        monkeypatch.setattr(process_copy, failing, lambda: False)
    else:
        monkeypatch.setattr(os, failing, refuse)
    before = open_files()
    with Shared(lambda _: None) as shared:
        shared.begin("here")
        shared.give("here", 1, value=2)
        shared.wish(["here"])
        shared.wait()
        assert shared.result("here") is shared.value("here") is shared.wished() is None
        assert not shared.is_begun("here")
    assert open_files() == before


@pytest.mark.parametrize("failing", ["memfd_create", "pipe"])
def test_nothing_stays_open_where_the_second_file_is_one_too_many(failing, monkeypatch):
    create, made = getattr(os, failing), []

    def refuse(*names):
        if made:
            raise OSError("too many")
        made.append(create(*names))
        return made[0]

    monkeypatch.setattr(os, failing, refuse)
    before = open_files()
    with Shared(lambda _: None) as shared:
        assert made
        assert not shared.wait()
    assert open_files() == before


def test_nothing_stays_open_and_no_copy_outlives_its_block():
    before = open_files()
    with Shared(lambda _: sleep(600)) as shared:
        process = shared._process
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert open_files() == before
