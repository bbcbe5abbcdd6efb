"""The cores that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress

from colsynth.memory import GROUP

_VERSION_1 = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")


def usable_cores() -> int:
    """Return how many processes can work at a time.

    The system may bind this process to some cores, and grant a container a share of their time: the
    CPU limit of a Kubernetes pod, or ``docker run --cpus``. Two processes that share one core's
    worth of time take a quarter longer than one alone, so fractions of cores do not count.
    """
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable is not None else os.cpu_count() or 1
    quota = _quota()
    return cores if quota is None else max(1, min(cores, int(quota)))


def _quota() -> float | None:
    """Return the cores whose time a container may use; None without a limit."""
    with suppress(OSError, ValueError):
        quota, period = (GROUP / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        quota, period = ((GROUP / name).read_text(encoding="ascii") for name in _VERSION_1)
        return None if int(quota) < 0 else int(quota) / int(period)
    return None
