"""Memory of all ranks: who wrote and read each cell last, and which value it holds.

Accesses are stamped (component, tick). A clock says, for every component, up to which tick its
accesses have happened before. Two accesses to a cell of which one writes, and that no clock
orders, are a race, whatever the order in which this execution met them (Flanagan and Freund,
FastTrack, PLDI 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from colsynth.verify.contents import UNDEFINED, Values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Clock = NDArray[np.int32]

Told = Callable[[int, int, str], None]
"""Called with the component that a race was found with, the cell, and what was done there."""


class Memory:
    """Cells, with what is needed to find races."""

    def __init__(self, locations: int, told: Told) -> None:
        self.values = Values()
        self.value = [UNDEFINED] * locations
        self._writer = [-1] * locations
        self._written = [0] * locations
        self._reads: list[dict[int, int] | None] = [None] * locations
        self.flag = [-1] * locations
        self.packet_clock: list[Any] = [None] * locations
        self._told = told

    def read(self, cell: int, component: int, tick: int, clock: Clock) -> int:
        """Return the value of a cell."""
        writer = self._writer[cell]
        if (
            writer >= 0
            and clock[writer] < self._written[cell]
            and not (writer == component and tick == self._written[cell])
        ):
            self._told(writer, cell, "read while it is written")
        reads = self._reads[cell]
        if reads is None:
            self._reads[cell] = {component: tick}
        else:
            reads[component] = tick
        return self.value[cell]

    def write(self, cell: int, value: int, component: int, tick: int, clock: Clock) -> None:
        """Put a value into a cell, which holds no packet then."""
        writer = self._writer[cell]
        if (
            writer >= 0
            and clock[writer] < self._written[cell]
            and not (writer == component and tick == self._written[cell])
        ):
            self._told(writer, cell, "written twice at once")
        reads = self._reads[cell]
        if reads:
            for reader, when in reads.items():
                if clock[reader] < when and not (reader == component and tick == when):
                    self._told(reader, cell, "written while it is read")
            self._reads[cell] = None
        self.value[cell] = value
        self._writer[cell], self._written[cell] = component, tick
        self.flag[cell] = -1
