import logging
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from colsynth.kernels import folders, kept, maxflow
from colsynth.kernels.compiled import njit

RESIDUAL = np.array([1, 2], np.int64)


def call(caplog):
    """Use a kernel as a new process would; return whether it was compiled, and all warnings."""
    caplog.clear()
    kept._warn.cache_clear()
    fresh = njit(cache=True, nogil=True)(maxflow.reset.py_func)
    residual = np.zeros(4, np.int64)
    with caplog.at_level(logging.INFO, "colsynth"):
        fresh(residual, RESIDUAL)
    assert residual.tolist() == [1, 0, 2, 0]
    warnings = [x.getMessage() for x in caplog.records if x.levelno >= logging.WARNING]
    return kept.COMPILING in caplog.messages, warnings


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Let all folders lie in a folder of the test; return it."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(folders, "_PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    for name in ("package", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path


def block(folder):
    """Let a folder refuse every file, for root too."""
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.write_bytes(b"")


def test_a_kernel_is_compiled_once_and_kept_in_the_first_folder(places, caplog):
    assert call(caplog) == (True, [])
    (file,) = (places / "package/__pycache__").iterdir()
    assert file.name.startswith("maxflow.reset.")
    assert call(caplog) == (False, [])


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[:-1],
        lambda data: data[:20],
        lambda data: data[:-9] + bytes(9),
        lambda data: data[: kept._CHECKSUM] + b"x" * 99,
    ],
    ids=["empty", "cut", "stub", "zeros at the end", "other content"],
)
def test_a_damaged_file_is_made_again(damage, places, caplog):
    call(caplog)
    (file,) = (places / "package/__pycache__").iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert call(caplog) == (True, [])
    assert call(caplog) == (False, [])


def test_a_file_with_other_content_than_numba_expects_is_made_again(places, caplog):
    call(caplog)
    (file,) = (places / "package/__pycache__").iterdir()
    file.unlink()
    kept._write(file.parent, file.name, b"no pickle")
    assert call(caplog) == (True, [])
    assert call(caplog) == (False, [])


@pytest.mark.parametrize(
    "order", [("package", "home", "tmp"), ("named", "tmp")], ids=["by itself", "NUMBA_CACHE_DIR"]
)
def test_where_a_folder_cannot_be_written_the_next_one_is_used(order, places, caplog, monkeypatch):
    if order[0] == "named":
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(places / "named"))
    found = []
    for name in order:
        compiled, warnings = call(caplog)
        assert compiled
        (file,) = places.rglob("*.kernel")
        found.append(file.relative_to(places).parts[0])
        assert bool(warnings) == (name == "tmp")
        assert call(caplog) == (False, [])
        block(places / name)
    assert tuple(found) == order
    compiled, (warning,) = call(caplog)
    assert compiled
    assert "cannot be kept" in warning
    assert "NUMBA_CACHE_DIR" in warning


def test_a_full_disk_costs_no_more_than_the_file(places, caplog, monkeypatch):
    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept, "_write", full)
    compiled, (warning,) = call(caplog)
    assert compiled
    assert "No space left on device" in warning
    assert not list(places.rglob("*.kernel"))


def refuse(_folder):
    raise PermissionError(13, "Permission denied")


@pytest.mark.usefixtures("places")
def test_an_unwritable_installation_that_was_warmed_is_read(caplog, monkeypatch):
    call(caplog)
    monkeypatch.setattr(kept, "prepare", refuse)
    assert call(caplog) == (False, [])


@pytest.mark.parametrize("name", ["home/colsynth", f"tmp/colsynth-{os.geteuid()}"])
def test_a_folder_that_others_can_fill_is_not_read(name, places):
    folder = places / name
    assert folder in set(folders.folders())
    folders.prepare(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert folder not in set(folders.folders())
    folder.chmod(0o700)
    assert folder in set(folders.folders())
    away = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(away)
    assert folder not in set(folders.folders())
    with pytest.raises(OSError, match="belongs to somebody else"):
        folders.prepare(folder)


@pytest.mark.parametrize(
    ("changed", "same"), [("maxflow", False), ("kept", False), ("reach", True)]
)
def test_code_is_made_again_when_a_kernel_it_calls_has_changed(
    changed, same, tmp_path, monkeypatch
):
    source = Path(kept.__file__).parent
    for path in source.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "kept.py"))
    digest = kept._sources.__wrapped__
    before = digest("colsynth.kernels.packing")
    with (tmp_path / f"{changed}.py").open("a") as stream:
        stream.write("# changed\n")
    assert (digest("colsynth.kernels.packing") == before) is same


def test_a_constant_argument_makes_no_version_of_its_own():
    @njit(cache=False)
    def _inner(x):
        return x + 1

    @njit(cache=False)
    def outer(n):
        found = 0
        for _ in range(n):
            found = _inner(found)
        return found + _inner(7)

    assert outer(3) == 11
    assert len(_inner.overloads) == 1
