import io
import sys

import pytest

from colsynth.cli import main
from colsynth.cli.interrupts import Interrupted
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


def large(path, gpus):
    ring = range(gpus)
    nodes = "".join(f"  - {{name: g{i}, kind: gpu, box: {i}}}\n" for i in ring)
    links = "".join(f"  - {{from: g{i}, to: g{(i + 1) % gpus}, bandwidth: 1 GB/s}}\n" for i in ring)
    path.write_text(f"version: 1\nname: ring\nnodes:\n{nodes}links:\n{links}")
    return str(path)


@pytest.mark.parametrize(("gpus", "shown"), [(3, False), (4200, True)])
def test_reading_a_large_topology_shows_how_far_it_is(gpus, shown, tmp_path, monkeypatch, capsys):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")
    path = large(tmp_path / "ring.yaml", gpus)
    assert run(["topology", "check", path]) == 0
    assert capsys.readouterr().out.startswith("ok: ring")
    for what in (f"line of {path}", f"link of {path}"):
        assert (what in screen.getvalue()) is shown
    assert bool(screen.getvalue()) is shown


def test_a_ctrl_c_while_a_topology_is_read_says_where(tmp_path, monkeypatch, capsys):
    path = large(tmp_path / "ring.yaml", 4200)

    def stop(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("colsynth.topology.builder.Builder.finish", stop)
    assert run(["topology", "check", path]) == 130
    assert capsys.readouterr().err.startswith(f"interrupted: link of {path}, 4095 of 4200; ")


def test_ctrl_c_says_how_much_was_done_where_nobody_knows_of_how_much():
    def work():
        with progress() as show:
            show("compiling allreduce", 74, 0)
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        work()
    assert str(caught.value) == "compiling allreduce, 74 done"
