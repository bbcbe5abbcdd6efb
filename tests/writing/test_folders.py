"""Folders come whole; what stood in a place never goes without something else there."""

import random
import signal
import stat
import time

import pytest

from colsynth.errors import InputError
from colsynth.writing import folders, put, stage, write_folder
from tests.writing.test_files import age, ended, names, started

LOOP = """
import sys
from pathlib import Path
from colsynth.writing import folders, put, write_folder
place, text = Path(sys.argv[1]), sys.argv[2].encode()

def fill(folder):
    for name in "abcd":
        put(folder / name, text)

print(flush=True)
while True:
    write_folder(place, fill, replace=True)
"""


def filled(text):
    def fill(folder):
        for name in "abcd":
            put(folder / name, text)

    return fill


def texts(place):
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_two_writers_that_are_killed_leave_one_whole_folder(tmp_path):
    place, chance = tmp_path / "bundle", random.Random(3)
    write_folder(place, filled(b"x"))
    for _ in range(6):
        writers = [started(LOOP, place, text) for text in "xy"]
        until = time.monotonic() + chance.uniform(0.01, 0.1)
        while time.monotonic() < until:
            assert place.is_dir(), "for a moment there was nothing"
        for writer, number in zip(writers, (signal.SIGKILL, signal.SIGTERM), strict=True):
            ended(writer, number)
        found = texts(place)
        assert found in (dict.fromkeys("abcd", text) for text in (b"x", b"y"))
    age(tmp_path)
    write_folder(place, filled(b"z"), replace=True)
    assert names(tmp_path) == ["bundle"]


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_gives_way_to_replace_alone_and_keeps_its_mode(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr(folders, "exchange", lambda *_: False)
    place = tmp_path / "new" / "bundle"
    write_folder(place, filled(b"1"))
    place.chmod(0o750)
    with pytest.raises(InputError) as caught:
        write_folder(place, filled(b"2"))
    assert caught.value.diagnostic.code == "CS207"
    assert texts(place)["a"] == b"1"
    write_folder(place, filled(b"2"), replace=True)
    assert texts(place)["a"] == b"2"
    assert stat.S_IMODE(place.stat().st_mode) == 0o750
    assert names(place.parent) == ["bundle"]


def test_where_folders_cannot_be_swapped_the_old_one_comes_back(tmp_path, monkeypatch):
    """Also when the process is killed between its two renames: then with the next run."""
    monkeypatch.setattr(folders, "exchange", lambda *_: False)
    place = tmp_path / "bundle"
    write_folder(place, filled(b"old"))
    rename, done = type(place).rename, []

    def failing(self, target):
        if self.name == "new" and done:
            raise OSError(28, "No space left on device")
        done.extend([1] if target.parent.name == "replaced" else [])
        return rename(self, target)

    monkeypatch.setattr(type(place), "rename", failing)
    with pytest.raises(InputError, match="No space left"):
        write_folder(place, filled(b"new"), replace=True)
    assert done
    monkeypatch.undo()
    assert texts(place)["a"] == b"old"
    with stage(tmp_path) as own:  # as a killed process leaves it
        (own / "replaced").mkdir()
        place.rename(own / "replaced" / "bundle")
        killed = tmp_path / f".colsynth-{'a' * 32}"
        own.rename(killed)
    assert not place.exists()
    write_folder(tmp_path / "other", filled(b"new"))
    assert texts(place)["a"] == b"old"
    assert names(tmp_path) == ["bundle", "other"]


def test_a_link_leads_to_the_folder_that_is_replaced(tmp_path):
    write_folder(tmp_path / "version-1", filled(b"1"))
    (tmp_path / "current").symlink_to("version-1")
    write_folder(tmp_path / "current", filled(b"2"), replace=True)
    assert (tmp_path / "current").is_symlink()
    assert texts(tmp_path / "version-1")["a"] == b"2"


def test_a_failure_leaves_what_stood_there(tmp_path):
    place = tmp_path / "bundle"
    write_folder(place, filled(b"1"))

    def interrupted(folder):
        put(folder / "a", b"2")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(place, interrupted, replace=True)
    assert texts(place) == dict.fromkeys("abcd", b"1")
    assert names(tmp_path) == ["bundle"]
