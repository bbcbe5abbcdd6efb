import io
import sys

import pytest

from colsynth.cli import progress as module
from colsynth.cli.progress import COMPILING, kernels_are_compiled, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_shown_without_a_terminal(capsys):
    with progress() as show:
        show("packing", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("compiled", "said"), [(False, f"{COMPILING}: packing"), (True, "packing")]
)
def test_a_cold_start_says_what_takes_so_long(compiled, said, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(module, "kernels_are_compiled", lambda: compiled)
    with progress() as show:
        show("packing", 1, 2)
    assert said in screen.getvalue()
    assert (COMPILING in screen.getvalue()) is not compiled


def test_kernels_are_compiled_once_numba_has_kept_one(tmp_path, monkeypatch):
    from colsynth.kernels import maxflow

    class Stats:
        cache_path = str(tmp_path)

    class Kernel:
        stats = Stats()

    for name, item in list(vars(maxflow).items()):
        if hasattr(item, "stats"):
            monkeypatch.setattr(maxflow, name, Kernel())
    assert not kernels_are_compiled()
    (tmp_path / "maxflow.max_flow-1.py311.nbi").write_bytes(b"")
    assert kernels_are_compiled()
