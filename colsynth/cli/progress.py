"""Progress of long work, on stderr and only if that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from colsynth.cli.interrupts import Interrupted, arrived, interrupted, last_words
from colsynth.errors import is_interrupt
from colsynth.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress

RESUMES = "start the same command again to resume from there"
"""What becomes of interrupted work that keeps a journal."""

Show = Callable[[str, int, int], None]


@contextmanager
def progress(outcome: str = "nothing was written", *, late: bool = False) -> Iterator[Show]:
    """Yield a function that shows (what, done, total) while the block runs.

    Parameters
    ----------
    outcome : str
        What happens to interrupted work, for the message.
    late : bool
        Whether to show nothing before the first report, for work that is usually short.

    Raises
    ------
    Interrupted
        On Ctrl-C, with the progress that was shown last.
    """
    last = _Last()
    display = _display() if sys.stderr.isatty() else None

    def cut_short() -> None:
        _stop(display)
        interrupted(Interrupted(str(last), outcome))

    try:
        with last_words(cut_short), _shown(display, late):
            yield last if display is None else _Bar(display, last)
    except KeyboardInterrupt:
        raise Interrupted(str(last), outcome) from None
    except Exception as fault:
        if arrived() or is_interrupt(fault):
            raise Interrupted(str(last), outcome) from None
        raise


@contextmanager
def _shown(display: Progress | None, late: bool) -> Iterator[None]:
    """Show a bar while the block runs; a late bar starts with the first report."""
    if display is not None and not late:
        display.start()
    try:
        yield
    finally:
        _stop(display)


def _stop(display: Progress | None) -> None:
    if display is not None and display.live.is_started:
        display.stop()


@dataclass
class _Last:
    """Remembers the last progress."""

    what: str = ""
    done: int = 0
    total: int = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        self.what, self.done, self.total = what, done, total

    def __str__(self) -> str:
        if self.total:
            return f"{self.what}, {self.done} of {self.total}"
        return f"{self.what}, {self.done} done" if self.done else self.what


class _Bar:
    """Shows one bar; it restarts for work of another size, so that the remaining time is right."""

    def __init__(self, display: Progress, last: _Last) -> None:
        self.display, self.last = display, last
        self.task = display.add_task("starting", total=None)

    def __call__(self, what: str, done: int, total: int) -> None:
        self.display.start()  # unless it has started
        if total != self.last.total or done < self.last.done:
            self.display.reset(self.task, total=total or None)
        self.last(what, done, total)
        self.display.update(self.task, description=printable(what), completed=done)


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
        """Column with the time since the command began, across all bars."""

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
