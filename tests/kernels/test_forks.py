"""Kernels in forked processes: numba would end those whose parent has threads of OpenMP."""

import subprocess
import sys
from textwrap import dedent

PARENT = """
    import os, sys
    import numpy as np
    from colsynth.kernels.sequences import reverse_sequences

    def turned():
        places = np.array([0, 2, 5])
        return reverse_sequences(
            np.arange(5, dtype=np.uint16), places, np.arange(2), places
        ).tolist()

    def late():
        from colsynth.kernels.timed_check import clear
        table = np.ones((2, 3), np.uint8)
        clear(table, 7)
        return table.tolist()

    def in_copy(work, wanted):
        child = os.fork()
        if not child:
            os._exit(work() != wanted)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def run(script):
    text = dedent(PARENT) + dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_copies_of_a_process_with_threads_run_kernels():
    run("sys.exit(in_copy(turned, turned()))")


def test_so_they_do_where_the_copy_alone_imports_them():
    run("turned()\nsys.exit(in_copy(late, [[7] * 3] * 2))")


def test_so_do_copies_of_copies_and_the_parent_afterwards():
    run("""
        wanted = turned()
        assert in_copy(lambda: (turned(), in_copy(turned, wanted)), (wanted, 0)) == 0
        assert turned() == wanted
    """)


def test_a_process_without_threads_leaves_them_to_its_copies():
    run("""
        def with_threads():
            turned()
            return reverse_sequences.targetoptions["parallel"]
        sys.exit(in_copy(with_threads, True))
    """)
