import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from colsynth.errors import InputError
from colsynth.jobs.workers import Workers


def test_one_worker_is_this_process():
    with Workers(1) as workers:
        assert list(workers.run(abs, [-1, 2, -3])) == [1, 2, 3]
        assert workers.pool is None


def test_several_give_the_same_in_some_order_and_are_kept_for_the_next_list():
    with Workers(2) as workers:
        assert sorted(workers.run(partial(pow, 2), range(6))) == [1, 2, 4, 8, 16, 32]
        pool = workers.pool
        assert sorted(workers.run(abs, [-1, -2])) == [1, 2]
        assert workers.pool is pool


def test_nothing_to_do_starts_no_process():
    with Workers(4) as workers:
        assert list(workers.run(abs, [])) == []


def test_an_executor_works_instead_and_stays_open():
    with ThreadPoolExecutor(2) as executor:
        with Workers(1, executor) as workers:
            assert sorted(workers.run(abs, [-1, 2, -3])) == [1, 2, 3]
            assert list(workers.run(partial(pow, 2), [5])) == [32]
        assert workers.pool is None
        assert executor.submit(abs, -1).result() == 1


def test_a_fault_in_the_work_is_the_callers():
    with Workers(2) as workers, pytest.raises(ValueError, match="invalid literal"):
        list(workers.run(int, ["1", "x"]))


def test_a_process_that_the_system_ends_is_reported():
    with Workers(2) as workers, pytest.raises(InputError) as caught:
        list(workers.run(os._exit, [1, 1]))
    assert caught.value.diagnostic.code == "CS218"


UNGUARDED = """
from colsynth.errors import InputError
from colsynth.jobs.workers import Workers
with Workers(2) as workers:
    try:
        list(workers.run(abs, [1, 2]))
    except InputError as fault:
        print(fault)
"""


def test_a_script_that_every_process_would_run_again_is_told_how_to_call(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.startswith("error[CS218]: no process could start")
    assert "under `if __name__ == '__main__':`" in done.stdout


SLEEPER = """
import os, sys, time
from functools import partial
from pathlib import Path
from colsynth.jobs.workers import Workers

def sleep(folder, number):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    with Workers(2) as workers:
        list(workers.run(partial(sleep, sys.argv[1]), [1, 2, 3]))
"""


def test_processes_end_with_the_one_that_started_them(tmp_path):
    """Also when it is killed and cannot tell them."""
    script, folder = tmp_path / "sleeper.py", tmp_path / "pids"
    script.write_text(SLEEPER)
    folder.mkdir()
    parent = subprocess.Popen([sys.executable, str(script), str(folder)])
    assert until(lambda: len(list(folder.iterdir())) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    pids = [int(path.name) for path in folder.iterdir()]
    assert until(lambda: not any(runs(pid) for pid in pids))


def until(holds, seconds=60):
    """Whether something comes to hold; in vain only after a time that no machine takes."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def runs(pid):
    """Whether a process is there and is more than the record of one that ended."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def say(item):
    logging.getLogger("colsynth.kernels").info("compiling %s", item)
    return item


def test_what_processes_say_is_said_here(caplog):
    with caplog.at_level(logging.INFO, "colsynth"), Workers(2) as workers:
        list(workers.run(say, [1, 2, 3]))
    assert sorted(caplog.messages) == ["compiling 1", "compiling 2", "compiling 3"]


def finish_later(place, item):
    if item == 0:
        os.kill(os.getppid(), signal.SIGINT)
    time.sleep(5)
    (place / str(item)).touch()


def test_ctrl_c_waits_for_no_process(tmp_path):
    with pytest.raises(KeyboardInterrupt), Workers(2) as workers:
        list(workers.run(partial(finish_later, tmp_path), [0, 1, 2]))
    assert multiprocessing.active_children() == []
    assert list(tmp_path.iterdir()) == []


def blocks_ctrl_c(_item):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize(("stops", "cancelled"), [("ctrl-c", False), ("close", True)])
def test_ctrl_c_cancels_no_work_of_processes_that_are_about_to_end(monkeypatch, stops, cancelled):
    """Their pool's thread would tell a cancelled future that they end, and print a traceback."""
    done, waits = Future(), Future()
    done.set_result(1)
    workers = Workers(2)
    workers.pool = object()
    monkeypatch.setattr(workers, "_submitted", lambda _work, _items: {done, waits})
    results = workers.run(abs, [1, 2])
    assert next(results) == 1
    if stops == "close":
        results.close()
    else:
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
    assert waits.cancelled() == cancelled


def test_processes_never_hear_of_ctrl_c_not_even_while_they_start():
    with Workers(2) as workers:
        assert all(workers.run(blocks_ctrl_c, [1, 2, 3, 4]))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


QUIET = """
import os, sys, time
from functools import partial
from pathlib import Path
from colsynth.cli.streams import hush_warnings
from colsynth.jobs.workers import Workers

if __name__ != "__main__" and sys.argv[2] == "starting":
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(1)

def sleep(folder, number):
    Path(folder, str(os.getpid())).touch()
    time.sleep(2)

if __name__ == "__main__":
    hush_warnings()
    try:
        with Workers(2) as workers:
            list(workers.run(partial(sleep, sys.argv[1]), [1, 2, 3]))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize(
    ("moment", "number", "code"),
    [
        ("starting", signal.SIGINT, 130),
        ("working", signal.SIGINT, 130),
        ("working", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_processes_that_are_interrupted_or_killed_say_nothing(moment, number, code, tmp_path):
    """Ctrl-C goes to all; no traceback of theirs, nothing of Python about semaphores."""
    script, folder = tmp_path / "quiet.py", tmp_path / "pids"
    script.write_text(QUIET)
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, str(script), str(folder), moment],
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"},
    )
    assert until(lambda: any(folder.iterdir()))
    if number == signal.SIGINT:
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    assert parent.communicate(timeout=60)[1] == b""
    assert parent.returncode == code
