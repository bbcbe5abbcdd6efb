"""Ctrl-C, SIGTERM and SIGHUP end the program within a second, whatever it is doing.

Python raises KeyboardInterrupt only between two of its own instructions, never while a compiled
kernel or a solver runs, which may take minutes. Besides, code that swallows all exceptions swallows
this one too. So a thread watches for signals, which the system reports at once through a pipe.
Usually the interrupt itself ends the program. If it has not after `GRACE` seconds, the thread does.
Kernels release Python's lock, so that the thread can run.

Batch schedulers and ``kill`` send SIGTERM, and closing terminals send SIGHUP. Both interrupt a
command as Ctrl-C does. The exit code names the signal, as in shells.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock, Thread
from time import sleep
from types import FrameType

from colsynth.cli.streams import tell
from colsynth.writing.stage import discard_stages

GRACE = 0.3
"""Seconds that the program gets to end by itself: to remove drafts and to end its processes."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNALLED = 128
"""What shells add to the number of the signal that ended a command."""

_UNPICKLES = "numba.core.serialize"
"""Module of numba whose functions kernels call."""

_arrived: list[int] = []
_settled: list[bool] = []
_speech = RLock()
_last_words: list[Callable[[], None]] = []


class Interrupted(BaseException):
    """Ctrl-C, with the progress of the work and its outcome.

    It is not a KeyboardInterrupt, because typer ends a command on one without a message.
    """

    def __init__(self, reached: str = "", outcome: str = "nothing was written") -> None:
        super().__init__(reached)
        self.outcome = outcome


def watch() -> None:
    """Start to watch for signals; those that the caller ignores, as nohup does, stay ignored."""
    usual = (signal.SIG_DFL, signal.default_int_handler)
    heeded = [number for number in _ENDING if signal.getsignal(number) in usual]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in heeded:
        signal.signal(number, _interrupt)
    Thread(target=_follow, args=(reader, frozenset(heeded)), daemon=True).start()


def arrived() -> bool:
    """Whether a signal arrived; later errors are then its consequence."""
    return bool(_arrived)


def exit_code(otherwise: int) -> int:
    """Return the exit code of the signal that ended the command; without one, `otherwise`.

    A signal that came in a kernel may find the command done before the thread acts. The user is
    told of it here, as of any other.
    """
    if not _arrived:
        return otherwise
    if not _settled:
        interrupted()
    return _SIGNALLED + _arrived[0]


@contextmanager
def last_words(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` if the thread ends the program while the block runs."""
    _last_words.append(say)
    try:
        yield
    finally:
        _last_words.remove(say)


@contextmanager
def telling() -> Iterator[None]:
    """Tell the user in the block; the thread waits for its end and does not repeat the message."""
    with _speech:
        yield
        _settled.append(True)


def interrupted(stop: BaseException | None = None) -> None:
    """Print one line: the user ended the command, and how far it had come."""
    text = "interrupted"
    if isinstance(stop, Interrupted):
        text = f"interrupted: {stop}; {stop.outcome}" if str(stop) else f"{text}; {stop.outcome}"
    with telling(), suppress(OSError):
        tell(text)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt once; a second one would interrupt the cleanup after the first."""
    if not _arrived:
        _arrived.append(number)
        sys.unraisablehook = lambda _: None  # an interrupt in a callback is lost with a traceback
        if not _in_a_kernel(frame):
            raise KeyboardInterrupt


def _in_a_kernel(frame: FrameType | None) -> bool:
    """Whether a kernel called the interrupted function; the thread must then end the program.

    A kernel that returns arrays asks numba for their type in Python. It does not expect that to
    fail: the process would die of a segmentation fault, or report a defect.
    """
    while frame is not None:
        if frame.f_globals.get("__name__") == _UNPICKLES:
            return True
        frame = frame.f_back
    return False


def _follow(reader: int, heeded: frozenset[int]) -> None:
    while (number := os.read(reader, 1)[0]) not in heeded:
        pass
    sleep(GRACE)
    discard_stages()
    if _speech.acquire(timeout=GRACE) and not _settled:
        _speak()
    os._exit(_SIGNALLED + number)


def _speak() -> None:
    """Say the last words; where the main thread was stopped amid a line of its own, a plain one."""
    for say in (*_last_words[-1:], _say):
        with suppress(Exception):
            say()
            sys.stderr.flush()
            return


def _say() -> None:
    os.write(sys.stderr.fileno(), b"interrupted\n")
