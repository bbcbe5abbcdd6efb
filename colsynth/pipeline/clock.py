"""Where time goes: seconds by name, also of work that ends in an error."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Clock:
    """Adds up seconds under names, in the order in which they first appear."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add the time that the block takes to `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add({name: time.perf_counter() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add seconds that were measured elsewhere."""
        for name, more in seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + more

    def seconds(self) -> dict[str, float]:
        """Return a copy of what has been added up."""
        return dict(self._seconds)
