import io
import sys

import pytest

from colsynth.cli import progress as module
from colsynth.cli.failure import Interrupted
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
    monkeypatch.setattr(module, "kernels_are_compiled", lambda _kernels: compiled)
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


def test_the_bar_says_how_far_it_is_and_starts_anew_with_other_work(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with progress() as show:
        show("simulated 12.3 us", 250, 1000)
        show("write", 1, 3)
    shown = screen.getvalue()
    assert "write" in shown
    assert "1/3" in shown
    assert "left" in shown


@pytest.mark.parametrize("terminal", [False, True])
def test_ctrl_c_says_what_was_reached(terminal, monkeypatch):
    if terminal:
        monkeypatch.setattr(sys, "stderr", Terminal())

    def work():
        with progress() as show:
            show("simulated 12.3 us", 250, 1000)
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        work()
    assert str(caught.value) == "simulated 12.3 us, 250 of 1000"


def test_a_ctrl_c_inside_a_kernel_is_no_defect():
    """A compiled kernel returns to Python with a SystemError around the interrupt."""
    fault = SystemError("returned a result with an exception set")
    fault.__cause__ = KeyboardInterrupt()
    with pytest.raises(Interrupted), progress():
        raise fault
    with pytest.raises(SystemError), progress():
        raise SystemError
