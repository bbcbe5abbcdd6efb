"""How much memory this process has needed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB$", re.MULTILINE)


def peak_megabytes() -> float | None:
    """Return the most memory held at once, in 10**6 bytes; None where the system tells nobody.

    Linux counts what a process that was started by a larger one never held, unless asked
    through /proc.
    """
    try:
        found = _PEAK.search(Path("/proc/self/status").read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        found = None
    if found is not None:
        return int(found[1]) * 1024 / 10**6
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 10**6
