"""Requests to end: SIGTERM of schedulers and ``kill``, SIGHUP of terminals that close.

Both interrupt a command as Ctrl-C does, so it cleans up in the same way. The exit code says
which signal it was, as shells have it: 143 after SIGTERM, 129 after SIGHUP.
"""

from __future__ import annotations

import os
import signal
import time
from threading import Thread
from types import FrameType

GRACE = 2.0
"""Seconds that a command has to clean up, which takes milliseconds.

Python heeds a signal only between two of its own instructions, and a kernel can take longer than
schedulers wait before they kill. No drafts exist while a kernel runs.
"""

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_received: list[int] = []


def heed_requests_to_end() -> None:
    """Let signals interrupt the command; those that the caller ignores, as nohup does, stay so."""
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    Thread(target=_see_to_it, args=(source,), daemon=True).start()


def exit_code(otherwise: int) -> int:
    """Return the exit code of the signal that ended the command; without one, `otherwise`."""
    return 128 + _received[0] if _received else otherwise


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # Ctrl-C is ignored, as in the background of a script
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


def _see_to_it(source: int) -> None:
    """End the process some time after a request to end, whatever it is doing then."""
    while (number := os.read(source, 1)[0]) not in _ENDING:
        pass
    time.sleep(GRACE)
    os.write(2, b"interrupted\n")
    os._exit(128 + number)
