"""Exports name what the runtime reads, and sets that cannot work are refused."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from colsynth.errors import InputError
from colsynth.runtimes import exports, profile, range_notes, variables, write
from tests.verify.programs import ALL


def _file(path, runtime, **header):
    program = ALL["allpairs-allgather"]
    given = {"out_of_place": runtime != "msccl", "max_bytes": 4096, **header}
    changed = replace(program, header=replace(program.header, **given))
    path.write_bytes(write(changed, profile(runtime)))
    return path


def test_msccl_lists_files(tmp_path):
    one, two = (_file(tmp_path / name, "msccl") for name in ("a.xml", "b c.xml"))
    lines = exports(variables([one, two], profile("msccl")))
    listed = f"{one}:{two}"
    assert lines == (
        f"export NCCL_ALGO_FILE={shlex.quote(listed)}",
        f"export MSCCL_XML_FILES={shlex.quote(listed)}",
        "export NCCL_ALGO=MSCCL,RING,TREE",
    )


def test_msccl_enables_ll128(tmp_path):
    path = _file(tmp_path / "a.xml", "msccl", protocol="LL128")
    assert dict(variables([path], profile("msccl")))["NCCL_PROTO"] == "LL,LL128,Simple"


@pytest.mark.parametrize(
    ("runtime", "extra"),
    [
        ("msccl-executor", {"NCCL_MSCCL_ENABLE": "1"}),
        ("rccl", {"RCCL_MSCCL_ENABLE": "1", "RCCL_MSCCL_FORCE_ENABLE": "1"}),
    ],
)
def test_directory_runtimes_name_the_directory(tmp_path, runtime, extra):
    path = _file(tmp_path / "a.xml", runtime)
    wanted = {"NCCL_ALGO_FILE": str(path), "MSCCL_ALGO_DIR": str(tmp_path), **extra}
    assert dict(variables([path], profile(runtime))) == wanted


def test_paths_become_absolute(tmp_path, monkeypatch):
    _file(tmp_path / "a.xml", "rccl")
    monkeypatch.chdir(tmp_path)
    from pathlib import Path

    assert dict(variables([Path("a.xml")], profile("rccl")))["MSCCL_ALGO_DIR"] == str(tmp_path)


def test_missing_files(tmp_path):
    with pytest.raises(InputError, match="CS502"):
        variables([tmp_path / "none.xml"], profile("rccl"))


def test_files_of_another_dialect(tmp_path):
    path = _file(tmp_path / "a.xml", "msccl")
    with pytest.raises(InputError, match="CS503") as caught:
        variables([path], profile("rccl"))
    assert any("A01" in note for note in caught.value.diagnostic.notes)
    path.write_text("{")
    with pytest.raises(InputError, match="CS503") as caught:
        variables([path], profile("mscclpp"))
    assert caught.value.diagnostic.notes[0].startswith("P01: ")


@pytest.mark.parametrize("name", ["README.md", ".hidden", "reduce_scatter.xml"])
def test_directories_that_hold_anything_else(tmp_path, name):
    path = _file(tmp_path / "a.xml", "rccl")
    variables([path], profile("rccl"))
    (tmp_path / name).write_text("notes\n")
    with pytest.raises(InputError, match="CS503") as caught:
        variables([path], profile("rccl"))
    assert name in caught.value.diagnostic.phrase


@pytest.mark.parametrize("runtime", ["rccl", "msccl-executor"])
def test_hidden_files_are_named_even_where_they_hold_a_schedule(tmp_path, runtime):
    """A draft that a killed program left may be whole; sorted by name, it is read first."""
    path = _file(tmp_path / "a.xml", runtime)
    (tmp_path / ".a.xml.123.tmp").write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="CS504") as caught:
        variables([path], profile(runtime))
    assert ".a.xml.123.tmp" in caught.value.diagnostic.phrase


def test_dangling_links_are_found(tmp_path):
    path = _file(tmp_path / "a.xml", "rccl")
    (tmp_path / "b.xml").symlink_to(tmp_path / "gone.xml")
    with pytest.raises(InputError, match="CS502"):
        variables([path], profile("rccl"))


def test_subdirectories_do_not_matter(tmp_path):
    path = _file(tmp_path / "a.xml", "rccl")
    (tmp_path / "more").mkdir()
    variables([path], profile("rccl"))


def test_more_than_four_files_on_msccl(tmp_path):
    paths = [_file(tmp_path / f"{n}.xml", "msccl") for n in range(5)]
    variables(paths[:4], profile("msccl"))
    with pytest.raises(InputError, match="5 files"):
        variables(paths, profile("msccl"))


def test_colons_in_paths(tmp_path):
    path = _file(tmp_path / "a:b.xml", "msccl")
    with pytest.raises(InputError, match="splits its list"):
        variables([path], profile("msccl"))


def test_files_in_two_directories(tmp_path):
    (tmp_path / "x").mkdir()
    paths = [_file(tmp_path / "a.xml", "rccl"), _file(tmp_path / "x" / "b.xml", "rccl")]
    with pytest.raises(InputError, match="one directory"):
        variables(paths, profile("rccl"))


@pytest.mark.parametrize(
    ("least", "most", "in_place", "clash"),
    [
        (4096, 8192, True, True),
        (4097, 8192, True, False),
        (1, None, True, True),
        (1, 4096, False, False),
    ],
)
def test_overlapping_ranges_on_rccl(tmp_path, least, most, in_place, clash):
    one = _file(tmp_path / "a.xml", "rccl", in_place=True, out_of_place=False)
    other = {"min_bytes": least, "max_bytes": most, "in_place": in_place}
    two = _file(tmp_path / "b.xml", "rccl", out_of_place=not in_place, **other)
    if clash:
        with pytest.raises(InputError, match="serve the same calls"):
            variables([one, two], profile("rccl"))
    else:
        variables([one, two], profile("rccl"))


def test_overlapping_ranges_where_the_order_is_fixed(tmp_path):
    paths = [_file(tmp_path / name, "msccl-executor") for name in ("a.xml", "b.xml")]
    variables(paths, profile("msccl-executor"))


@pytest.mark.parametrize(("runtime", "first"), [("msccl", "b.xml"), ("msccl-executor", "a.xml")])
def test_ranges_that_overlap_or_leave_a_gap_are_told(tmp_path, runtime, first):
    paths = [_file(tmp_path / name, runtime) for name in ("b.xml", "a.xml")]
    (note,) = range_notes(paths, profile(runtime))
    assert note.startswith("F02: ")
    assert f"takes {first} for them" in note
    _file(paths[0], runtime, min_bytes=4097, max_bytes=8192)
    assert range_notes(paths, profile(runtime)) == ()
    _file(paths[0], runtime, min_bytes=6000, max_bytes=8192)
    notes = range_notes(paths, profile(runtime))
    modes = ["in-place"] if runtime == "msccl" else ["in-place", "out-of-place"]
    assert [note.split(" on ")[0] for note in notes] == [
        f"F03: no file serves {mode} allgather" for mode in modes
    ]
    assert all("4 ranks from 4097 to 5999 bytes" in note for note in notes)


def test_files_behind_links_go_by_the_names_of_the_links(tmp_path):
    """The executor reads a directory in order of its names, wherever they lead."""
    for name, of in (("a.xml", "2.xml"), ("b.xml", "1.xml")):
        (tmp_path / "links").mkdir(exist_ok=True)
        (tmp_path / "links" / name).symlink_to(_file(tmp_path / of, "msccl-executor"))
    paths = sorted((tmp_path / "links").iterdir())
    (note,) = range_notes(paths, profile("msccl-executor"))
    assert "takes a.xml for them" in note
