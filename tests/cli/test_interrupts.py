import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from colsynth.cli import interrupts
from colsynth.cli import main as module
from colsynth.cli.main import run
from colsynth.cli.progress import progress

BUSY = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 2 * 10**9)"
DEAF = """
import time
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
"""


def interrupted(probe, tmp_path, arguments=()):
    """Return (code, stderr) of a program that gets Ctrl-C once it has begun."""
    ready = tmp_path / "ready"
    listen = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    # Shells start background jobs, such as a whole run of the tests, with Ctrl-C ignored.
    code = f"{listen}from pathlib import Path\nready = Path({str(ready)!r})\n{probe}"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True
    )
    try:
        while not ready.exists():
            assert child.poll() is None
            time.sleep(0.01)
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        shown = child.communicate(timeout=30)[1]
    finally:
        child.kill()
    return child.returncode, shown


@pytest.mark.parametrize("work", [BUSY, DEAF], ids=["no instruction of Python", "deaf"])
def test_ctrl_c_ends_what_does_not_listen(work, tmp_path):
    probe = f"from colsynth.cli.interrupts import watch\nwatch()\nready.touch()\n{work}"
    code, shown = interrupted(probe, tmp_path)
    assert (code, shown) == (130, "interrupted\n")


def test_a_kernel_that_returns_arrays_survives_ctrl_c(tmp_path):
    probe = (
        "import time\n"
        "import numpy as np\n"
        "from colsynth.cli import interrupts\n"
        "from colsynth.kernels.distances import farthest\n"
        "interrupts.GRACE = 2\n"
        "n = 2 * 10**5\n"
        "ring = np.arange(n + 1), np.roll(np.arange(n), -1), np.ones(n, np.int64)\n"
        "group = np.zeros(n, np.int64)\n"
        "farthest(*ring, np.arange(1), group)\n"
        "interrupts.watch()\n"
        "ready.touch()\n"
        "farthest(*ring, np.arange(40), group)\n"
        "time.sleep(60)\n"
    )
    assert interrupted(probe, tmp_path) == (130, "interrupted\n")


def test_nothing_half_written_stays(tmp_path):
    probe = (
        "from colsynth.cli.interrupts import watch\n"
        "from colsynth.writing import stage\n"
        "watch()\n"
        "with stage(ready.parent) as drafts:\n"
        "    (drafts / 'half').write_text('half')\n"
        "    ready.touch()\n"
        f"    {BUSY}\n"
    )
    code, _ = interrupted(probe, tmp_path)
    assert code == 130
    assert list(tmp_path.iterdir()) == [tmp_path / "ready"]


def test_it_says_what_was_reached(tmp_path):
    probe = (
        "from colsynth.cli.interrupts import watch\n"
        "from colsynth.cli.progress import progress\n"
        "watch()\n"
        "with progress('start it again to go on') as show:\n"
        "    show('packing trees', 1, 2)\n"
        "    ready.touch()\n"
        f"    {BUSY}\n"
    )
    code, shown = interrupted(probe, tmp_path)
    assert code == 130
    assert shown == "interrupted: packing trees, 1 of 2; start it again to go on\n"


def test_a_large_command_is_interrupted_at_any_time(tmp_path):
    probe = (
        "import sys\n"
        "sys.argv[0] = 'colsynth'\n"
        "from colsynth.__main__ import main\n"
        "from colsynth.cli import interrupts\n"
        "ready.touch()\n"
        "main()\n"
    )
    out = tmp_path / "out.xml"
    arguments = ["compile", "ring:128", "-c", "allgather", "-r", "msccl", "-o", str(out)]
    code, shown = interrupted(probe, tmp_path, arguments)
    assert code == 130
    assert "interrupted" in shown
    assert "Error" not in shown
    assert list(tmp_path.iterdir()) == [tmp_path / "ready"]


def test_an_interrupt_during_the_imports_needs_no_traceback():
    probe = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "from colsynth.__main__ import main\n"
        "sys.meta_path.insert(0, Finder)\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_the_program_of_the_package_watches_from_the_start():
    root = Path(__file__).resolve().parents[2]
    assert 'colsynth = "colsynth.__main__:main"' in (root / "pyproject.toml").read_text("utf-8")


def test_where_ctrl_c_is_ignored_it_stays_ignored():
    probe = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from colsynth.cli.interrupts import watch\n"
        "watch()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)


@pytest.mark.parametrize("inside", [True, False], ids=["with progress", "without"])
def test_what_fails_after_ctrl_c_is_its_consequence(inside, monkeypatch, capsys):
    def fail(_name):
        if not inside:
            raise SystemError("a kernel returned a result with an exception set")
        with progress() as show:
            show("packing", 1, 2)
            raise SystemError("a kernel returned a result with an exception set")

    monkeypatch.setattr(interrupts, "_arrived", [signal.SIGINT])
    monkeypatch.setattr(module, "_load", fail)
    assert run(["passes"]) == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith("interrupted")) == ("", True)
    assert ("packing" in shown.err) is inside


def test_every_kernel_lets_other_threads_run():
    probe = (
        "import importlib, json, pkgutil\n"
        "import colsynth.kernels as room\n"
        "found = {}\n"
        "for entry in pkgutil.iter_modules(room.__path__):\n"
        "    module = importlib.import_module(f'{room.__name__}.{entry.name}')\n"
        "    for name, item in vars(module).items():\n"
        "        if hasattr(item, 'targetoptions'):\n"
        "            found[f'{entry.name}.{name}'] = item.targetoptions.get('nogil', False)\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) > 100
    assert [name for name, free in found.items() if not free] == []
