"""Requests to end: SIGTERM of schedulers and ``kill``, SIGHUP of terminals that close.

Both interrupt a command as Ctrl-C does, so it cleans up in the same way. The exit code says
which signal it was, as shells have it: 143 after SIGTERM, 129 after SIGHUP.
"""

from __future__ import annotations

import signal
from types import FrameType

_received: list[int] = []


def heed_requests_to_end() -> None:
    """Let signals interrupt the command; those that the caller ignores, as nohup does, stay so."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def exit_code(otherwise: int) -> int:
    """Return the exit code of the signal that ended the command; without one, `otherwise`."""
    return 128 + _received[0] if _received else otherwise


def _interrupt(number: int, frame: FrameType | None) -> None:
    _received.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):  # Ctrl-C is ignored, as in the background of a script
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)
