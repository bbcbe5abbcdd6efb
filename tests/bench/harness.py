"""What the benchmarks share: a process for every case, its peak memory, a wide table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from colsynth.pipeline.memory import peak_megabytes

if TYPE_CHECKING:
    from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 190
"""Columns of a table that goes to a file."""


def in_process_of_its_own(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Return the figures that a module prints as JSON, with the wall time of its process.

    A process that fails gives the last line of its error as ``failed``; so does one that
    takes more than some seconds.
    """
    command = [sys.executable, "-m", module, *arguments]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {seconds:g} s", "wall": seconds}
    elapsed = time.perf_counter() - start
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"failed": lines[-1], "wall": elapsed}
    figures: dict[str, Any] = json.loads(done.stdout)
    return {**figures, "wall": elapsed}


def from_shell(words: Sequence[str]) -> float:
    """Return the least seconds of two runs of ``colsynth compile`` with some words."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "colsynth", "compile", *words]
        command += ["-o", f"{folder}/a.xml", "--force"]
        return min(_seconds(command) for _ in range(2))


def _seconds(command: Sequence[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    return time.perf_counter() - begun


def peak_mebibytes() -> float:
    """Return the most memory this process has held, in MiB; 0 where the system does not tell."""
    return (peak_megabytes() or 0.0) * 10**6 / 2**20


def show(table: Table) -> None:
    """Print a table, on a terminal in its width."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)
