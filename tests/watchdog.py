"""Ends a test that hangs, with the place where it hung."""

import signal
from contextlib import contextmanager


class TooLong(BaseException):
    """Raised in the midst of the work; no Exception, which the work might catch."""


@contextmanager
def at_most(seconds):
    """Raise `TooLong` in a block that takes longer, far beyond what it ever needs."""

    def stop(_number, _frame):
        raise TooLong(f"still busy after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
