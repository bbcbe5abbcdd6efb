import io
import sys

import pytest

from colsynth.cli import main
from colsynth.cli.failure import Interrupted
from colsynth.cli.main import run
from colsynth.cli.notices import notices
from colsynth.cli.progress import progress
from colsynth.kernels.kept import COMPILING, LOG


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_shown_without_a_terminal(capsys):
    with progress() as show:
        show("packing", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_cold_start_says_once_what_takes_so_long(terminal, monkeypatch):
    """Told at the moment of compiling, also below a bar, and in plain lines elsewhere."""
    screen = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with notices(), progress() as show:
        show("packing", 1, 2)
        for _ in range(3):
            LOG.info(COMPILING)
    assert screen.getvalue().count(f"{COMPILING}\n") == 1
    assert terminal or screen.getvalue() == f"{COMPILING}\n"


def test_compiling_is_told_on_stderr_by_every_command(monkeypatch, capsys):
    monkeypatch.setattr(main, "_load", lambda _name: LOG.info(COMPILING))
    run(["passes"])
    assert capsys.readouterr().err.startswith(f"{COMPILING}\n")


def test_a_warning_is_marked_as_one(capsys):
    with notices():
        LOG.warning("no folder can be written")
    LOG.info("not told outside")
    assert capsys.readouterr() == ("", "warning: no folder can be written\n")


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
