"""Files that are being written beside their places, to be removed however the program ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_WAITING: list[Path] = []


@contextmanager
def drafts(*paths: Path) -> Iterator[None]:
    """Remove files at the end of the block, as far as they have not been moved to their places."""
    _WAITING.extend(paths)
    try:
        yield
    finally:
        for path in paths:
            _remove(path)
            _WAITING.remove(path)


def remove_drafts() -> None:
    """Remove all drafts of this process, for one that ends without unwinding."""
    for path in tuple(_WAITING):
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
