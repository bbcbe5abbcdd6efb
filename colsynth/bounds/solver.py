"""HiGHS, the solver of linear programs, without its own output."""

from __future__ import annotations

from functools import cache
from typing import Any


def silent(**options: Any) -> Any:
    """Return a solver of one thread that prints nothing, with these options of HiGHS set.

    Standard output belongs to the command: a table, JSON or the schedule itself.
    """
    solver = _silent_class()()
    for option, value in {"threads": 1, **options}.items():
        solver.setOptionValue(option, value)
    return solver


@cache
def _silent_class() -> Any:
    import highspy

    class Silent(highspy.Highs):
        """Obeys before it speaks: highspy 1.16 prints its banner when callbacks are enabled."""

        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    return Silent
