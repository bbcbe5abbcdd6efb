"""What long work is doing, on stderr and only when that is a terminal."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.cli.failure import Interrupted
from colsynth.errors import is_interrupt
from colsynth.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress

COMPILING = "compiling kernels, first run only"
OF_TREES, OF_TIME = ("maxflow",), ("rounds", "matching", "sending")
OF_TUNING, OF_CHECKS = ("execution",), ("precedence",)
"""Kernels of the algorithms; where none is compiled, the first run is the slow one."""

RESUMES = "start the same command again to resume from there"
"""What becomes of interrupted work that keeps a journal."""

Show = Callable[[str, int, int], None]


@contextmanager
def progress(
    kernels: tuple[str, ...] = OF_TREES,
    outcome: str = "nothing was written",
    *,
    late: bool = False,
) -> Iterator[Show]:
    """Give a function that shows (what, done, total) while the block runs.

    Parameters
    ----------
    kernels : tuple of str
        Modules of kernels that the work needs, if any.
    outcome : str
        What becomes of work that is interrupted.
    late : bool
        Whether nothing is shown before the first report, for work that is short most often.

    Raises
    ------
    Interrupted
        On Ctrl-C, with what was shown last.
    """
    last = _Last()
    try:
        if sys.stderr.isatty():
            display = _display()
            if not late:
                display.start()
            try:
                yield _Bar(display, last, kernels)
            finally:
                if display.live.is_started:
                    display.stop()
        else:
            yield last
    except (KeyboardInterrupt, SystemError) as stop:
        if not is_interrupt(stop):
            raise
        raise Interrupted(str(last), outcome) from None


@dataclass
class _Last:
    """Remembers what was shown last."""

    what: str = ""
    done: int = 0
    total: int = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        self.what, self.done, self.total = what, done, total

    def __str__(self) -> str:
        return f"{self.what}, {self.done} of {self.total}" if self.total else self.what


class _Bar:
    """Shows one bar; work of another size starts it anew, so that the time left is its own."""

    def __init__(self, display: Progress, last: _Last, kernels: tuple[str, ...]) -> None:
        self.display, self.last = display, last
        self.notice = f"{COMPILING}: " if kernels and not kernels_are_compiled(kernels) else ""
        self.task = display.add_task(f"{self.notice}starting", total=None)

    def __call__(self, what: str, done: int, total: int) -> None:
        self.display.start()  # unless it has begun
        if total != self.last.total or done < self.last.done:
            self.display.reset(self.task, total=total or None)
        self.last(what, done, total)
        self.display.update(self.task, description=self.notice + printable(what), completed=done)


def _display() -> Progress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    from colsynth.cli.console import SafeConsole

    start = time.monotonic()

    class Elapsed(ProgressColumn):
        """Time since the command began, whatever bar it is at."""

        def render(self, task: Any) -> Text:
            return Text(f"{time.monotonic() - start:.0f} s")

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Elapsed(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=SafeConsole(stderr=True),
        transient=True,
    )


def kernels_are_compiled(kernels: tuple[str, ...] = OF_TREES) -> bool:
    """Whether an earlier run left one of the kernels compiled where numba will look for it."""
    return any(_is_compiled(name) for name in kernels)


def _is_compiled(name: str) -> bool:
    module = importlib.import_module(f"colsynth.kernels.{name}")
    stats = (getattr(item, "stats", None) for item in vars(module).values())
    folders = {path for path in (getattr(stat, "cache_path", None) for stat in stats) if path}
    return any(any(Path(folder).glob(f"{name}.*.nbi")) for folder in sorted(folders))
