import os
from pathlib import Path

import pytest

from colsynth.cli.output import Destination, refuse_to_overwrite
from colsynth.errors import InputError
from colsynth.writing import write_files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("text", "path", "is_directory"),
    [("-", None, False), ("a.xml", Path("a.xml"), False), ("new/", Path("new"), True)],
)
def test_a_text_names_stdout_a_file_or_a_directory(text, path, is_directory):
    found = Destination.parse(text)
    assert (found.path, found.is_directory) == (path, is_directory)


def test_an_existing_folder_is_a_directory_without_its_slash(tmp_path):
    assert Destination.parse(str(tmp_path)).is_directory


def test_names_are_used_inside_directories_alone(tmp_path):
    assert Destination(tmp_path, True).paths(("a", "b")) == (tmp_path / "a", tmp_path / "b")
    assert Destination(tmp_path / "x").paths(("a",)) == (tmp_path / "x",)
    assert Destination(None).paths(("a",)) == ()


def test_files_are_written_into_new_folders_and_leave_nothing_else(tmp_path):
    folder = tmp_path / "new" / "deep"
    write_files({folder / "a": b"1", folder / "b": b"2"})
    assert [(folder / name).read_bytes() for name in names(folder)] == [b"1", b"2"]


def test_when_one_file_cannot_be_written_none_is(tmp_path, monkeypatch):
    old = tmp_path / "a"
    old.write_bytes(b"old")
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left") as caught:
        write_files({old: b"new", tmp_path / "b": b"new"})
    assert caught.value.diagnostic.code == "CS208"
    assert names(tmp_path) == ["a"]
    assert old.read_bytes() == b"old"


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    def interrupt(_descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "a": b"new"})
    assert names(tmp_path) == []


def test_a_link_keeps_pointing_at_the_file_that_is_written(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_files({tmp_path / "link": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_written_to_and_not_replaced():
    write_files({Path("/dev/null"): b"gone"})
    assert not Path("/dev/null").is_file()


def test_existing_files_are_refused_unless_forced(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    refuse_to_overwrite((path,), force=True)
    with pytest.raises(InputError, match="exists") as caught:
        refuse_to_overwrite((path,), force=False)
    assert caught.value.diagnostic.code == "CS207"


def test_a_file_in_place_of_a_folder_is_refused_early(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(InputError, match="is not a directory"):
        refuse_to_overwrite((tmp_path / "a" / "b",), force=False)


@pytest.mark.parametrize("name", ["loop", "loop/a"])
def test_links_that_lead_in_a_circle_are_refused_early(name, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError) as caught:
        refuse_to_overwrite((tmp_path / name,), force=True)
    assert caught.value.diagnostic.code == "CS208"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that takes no files")
def test_a_place_where_no_file_can_be_made_is_refused_early(tmp_path):
    """Also where the way there is a link, and for those who may do everything."""
    (tmp_path / "link").symlink_to("/proc/colsynth.xml")
    for path in (Path("/proc/colsynth.xml"), tmp_path / "link"):
        with pytest.raises(InputError, match="cannot write") as caught:
            refuse_to_overwrite((path,), force=False)
        assert "/proc may not be written to" in caught.value.diagnostic.notes[0]


def test_a_link_to_a_file_that_is_not_there_yet_is_no_hindrance(tmp_path):
    (tmp_path / "link").symlink_to("new")
    refuse_to_overwrite((tmp_path / "link", Path("/dev/null")), force=False)
    write_files({tmp_path / "link": b"data"})
    assert (tmp_path / "new").read_bytes() == b"data"
