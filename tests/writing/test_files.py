"""Files come whole or not at all, whoever else is at work and whatever ends the writer."""

import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from colsynth.errors import InputError
from colsynth.writing import files, stage, write_files

LOOP = """
import sys
from pathlib import Path
from colsynth.writing import write_files
place, text, replace = Path(sys.argv[1]), sys.argv[2].encode(), sys.argv[3] == "replace"
print(flush=True)
while True:
    write_files({place / "a": text * 200_000, place / "b": text * 200_000}, replace=replace)
    if not replace:
        for name in "ab":
            (place / name).unlink()
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def started(script, *arguments):
    """Start a script; return it once it is at work."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def ended(process, number=signal.SIGKILL):
    process.send_signal(number)
    process.wait()
    process.stdout.close()


def age(*folders):
    """Let what lies there be some minutes old."""
    for folder in folders:
        for entry in folder.glob(".colsynth-*"):
            os.utime(entry, (time.time() - 200,) * 2)


@pytest.mark.parametrize("replace", ["replace", "new"])
def test_a_killed_writer_leaves_whole_files_and_the_next_one_cleans_up(tmp_path, replace):
    place = tmp_path / "schedules"
    place.mkdir()
    chance = random.Random(7)
    left = rounds = 0
    while rounds < 8 or (not left and rounds < 200):  # it takes luck to kill one amid a file
        rounds += 1
        process = started(LOOP, place, "xy"[rounds % 2], replace)
        until = time.monotonic() + chance.uniform(0, 0.05)
        while time.monotonic() < until:
            for entry in list(os.scandir(place)):  # what a runtime would read
                assert entry.name in "ab" or not entry.is_file()
        ended(process)
        left += any(name.startswith(".colsynth-") for name in names(tmp_path))
        for name in "ab":
            if (place / name).exists():
                assert (place / name).read_bytes() in (b"x" * 200_000, b"y" * 200_000)
    assert left, "no draft was ever in the way: the test shows nothing"
    age(tmp_path, place)
    write_files({place / "a": b"1"})
    assert names(tmp_path) == ["schedules"]
    assert set(names(place)) <= {"a", "b"}


@pytest.mark.parametrize("beside", [True, False])
def test_drafts_of_those_who_live_and_of_others_are_left_alone(tmp_path, beside, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    with stage(folder, beside=beside) as own:
        (own / "draft").write_bytes(b"mine")
        (tmp_path / ".colsynth-mine").mkdir()
        write_files({folder / "a": b"1"})
        assert (own / "draft").read_bytes() == b"mine"
        assert own.parent == (tmp_path if beside else folder)
    assert names(tmp_path) == [".colsynth-mine", "out"]
    abandoned = tmp_path / f".colsynth-{'0' * 32}"
    abandoned.mkdir()
    (abandoned / "lock").write_bytes(b"another machine, whose locks are not seen here")
    write_files({folder / "a": b"1"})
    assert abandoned.exists()
    os.utime(abandoned, (1, 1))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    write_files({folder / "a": b"1"})
    assert abandoned.exists()
    monkeypatch.undo()
    write_files({folder / "a": b"1"})
    assert not abandoned.exists()


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    """Names cannot be guessed; and were one guessed, the system would refuse the draft."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"good")
    made = []
    keep = os.open

    def planting(path, flags, *rest, **options):
        if Path(path).name == "draft":
            Path(path).symlink_to(victim)
            made.append(path)
        return keep(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", planting)
    with pytest.raises(InputError, match="File exists"):
        write_files({tmp_path / "a": b"new"})
    assert made
    assert victim.read_bytes() == b"good"
    assert names(tmp_path) == ["victim"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444, 0o775])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    place = tmp_path / "a"
    place.write_bytes(b"old")
    place.chmod(mode)
    write_files({place: b"new"})
    assert place.read_bytes() == b"new"
    assert stat.S_IMODE(place.stat().st_mode) == mode


def test_a_new_file_has_the_mode_and_group_that_its_folder_gives(tmp_path):
    folder = tmp_path / "team"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, -1, 12345)
    folder.chmod(0o2775)
    (folder / "plain").write_bytes(b"")
    write_files({folder / "a": b"1"})
    wanted, found = (folder / "plain").stat(), (folder / "a").stat()
    assert (found.st_gid, found.st_mode) == (wanted.st_gid, wanted.st_mode)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path, monkeypatch, links):
    place = tmp_path / "a"
    if not links:
        monkeypatch.setattr(type(place), "hardlink_to", no_links)

    def slow(stream):
        stream.write(b"late")
        place.write_bytes(b"first")

    with pytest.raises(InputError) as caught:
        write_files({place: slow}, replace=False)
    assert caught.value.diagnostic.code == "CS207"
    assert place.read_bytes() == b"first"
    place.unlink()
    write_files({place: b"alone"}, replace=False)
    assert place.read_bytes() == b"alone"
    assert names(tmp_path) == ["a"]


def no_links(_new, _old):
    raise OSError(files._NO_LINKS[0], "Operation not permitted")


def test_a_failure_makes_no_folders(tmp_path):
    def full(_stream):
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="No space left"):
        write_files({tmp_path / "new" / "deep" / "a": full})
    assert names(tmp_path) == []


def test_the_longest_name_that_a_file_may_have_can_be_written(tmp_path):
    name = "n" * os.pathconf(tmp_path, "PC_NAME_MAX")
    write_files({tmp_path / name: b"1"})
    write_files({tmp_path / name: b"2"})
    assert (tmp_path / name).read_bytes() == b"2"


def test_an_open_stream_goes_on_where_it_is(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before ")
        log.flush()
        write_files({writing_path(log): b"the file"})
        log.write(b" after")
    assert (tmp_path / "log").read_bytes() == b"before the file after"


def writing_path(stream):
    return Path(f"/dev/fd/{stream.fileno()}")


def test_a_socket_and_a_pipe_take_the_bytes():
    one, other = socket.socketpair()
    with one, other:
        write_files({writing_path(one): b"data"})
        assert other.recv(10) == b"data"
    source, sink = os.pipe()
    with os.fdopen(source, "rb") as reader, os.fdopen(sink, "wb") as writer:
        write_files({writing_path(writer): b"data"})
        assert os.read(reader.fileno(), 10) == b"data"
        os.set_blocking(source, False)


def test_a_reader_that_has_gone_is_no_fault_of_the_place():
    source, sink = os.pipe()
    os.close(source)
    with os.fdopen(sink, "wb") as writer, pytest.raises(BrokenPipeError):
        write_files({writing_path(writer): b"data"})
