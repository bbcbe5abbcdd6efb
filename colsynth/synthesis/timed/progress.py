"""How far a synthesis is, and how much work it may still do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

STEP = 2**18
"""Transfers between two reports of progress, which are also where Ctrl-C is heard."""


@dataclass
class WorkMeter:
    """Counts the transfers placed; tells of them.

    Parameters
    ----------
    total : int
        Transfers that one try will place, as far as is known.
    unit : Fraction
        Seconds of a tick.
    tell : callable
        Told (what, done, total).
    """

    total: int
    unit: Fraction
    tell: Callable[[str, int, int], None]
    placed: int = field(default=0)
    _try: int = field(default=0)

    def begin(self) -> None:
        """Note that a new try begins."""
        self._try = 0

    def add(self, transfers: int, ticks: int) -> None:
        """Note transfers placed up to a simulated time."""
        self.placed += transfers
        self._try += transfers
        micros = float(ticks * self.unit * 10**6)
        self.tell(f"simulated {micros:.1f} us", min(self._try, self.total), self.total)
