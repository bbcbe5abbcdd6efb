"""What long work is doing, on stderr and only when that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

COMPILING = "compiling kernels, first run only"


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows (what, done, total) while the block runs."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    notice = "" if kernels_are_compiled() else f"{COMPILING}: "
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(f"{notice}starting", total=None)

        def show(what: str, done: int, total: int) -> None:
            display.update(task, description=notice + what, completed=done, total=total or None)

        yield show


def kernels_are_compiled() -> bool:
    """Whether an earlier run left compiled kernels where numba will look for them."""
    from colsynth.kernels import maxflow

    stats = (getattr(item, "stats", None) for item in vars(maxflow).values())
    folders = {path for path in (getattr(stat, "cache_path", None) for stat in stats) if path}
    return any(any(Path(folder).glob("maxflow.*.nbi")) for folder in sorted(folders))


def _silent(_what: str, _done: int, _total: int) -> None:
    """Show nothing."""
