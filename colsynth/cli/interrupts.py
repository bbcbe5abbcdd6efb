"""Ctrl-C ends the program within a second, whatever it is doing.

Python raises KeyboardInterrupt between two of its own instructions, so never while a compiled
kernel or a solver runs, which may be minutes. Besides, code that ignores all exceptions
ignores this one too. So a thread watches: the system tells it of the signal at once, through a
pipe. Usually the interrupt ends the program by itself; where it has not after `GRACE` seconds,
the thread ends it. Kernels release Python's lock, so the thread runs while they do.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from time import sleep
from typing import Any

from colsynth.drafts import remove_drafts

GRACE = 0.3
"""Seconds that the program gets to end by itself: to remove drafts and to end its processes."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_arrived: list[int] = []
_settled: list[bool] = []
_last_words: list[Callable[[], None]] = []


def watch() -> None:
    """Begin to watch for Ctrl-C; do nothing where the caller has it ignored, as nohup does."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _interrupt)
    Thread(target=_follow, args=(reader,), daemon=True).start()


def arrived() -> bool:
    """Whether Ctrl-C was pressed; then whatever went wrong afterwards is its consequence."""
    return bool(_arrived)


@contextmanager
def last_words(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` if the thread ends the program while the block runs."""
    _last_words.append(say)
    try:
        yield
    finally:
        _last_words.remove(say)


def settled() -> None:
    """Say that the user has been told; the thread then ends the program without a word."""
    _settled.append(True)


def _interrupt(number: int, _frame: Any) -> None:
    """Raise KeyboardInterrupt, once: a second one would cut off what the first one set right."""
    if not _arrived:
        _arrived.append(number)
        sys.unraisablehook = lambda _: None  # an interrupt in a callback is lost with a traceback
        raise KeyboardInterrupt


def _follow(reader: int) -> None:
    while os.read(reader, 1) != bytes([signal.SIGINT]):
        pass
    sleep(GRACE)
    remove_drafts()
    with suppress(Exception):
        if not _settled:
            (_last_words[-1] if _last_words else _say)()
            sys.stderr.flush()
    os._exit(INTERRUPTED)


def _say() -> None:
    sys.stderr.write("interrupted\n")
