"""What results depend on, and an evaluation where somebody else started the process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from threading import Lock
from typing import TypeVar

from colsynth.errors import Diagnostic, InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

_DECIDE = ("colsynth", "highspy", "networkx", "numba", "numpy")
"""Packages whose versions may change a schedule."""

_MAY = ("ortools",)
"""Those that need not be installed; without them some schedules are refused."""

_alone = Lock()


@cache
def fingerprint() -> dict[str, str]:
    """Return what results depend on: versions of packages, and a hash of the sources."""
    found = {name: version(name) for name in _DECIDE}
    for name in _MAY:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    digest = hashlib.sha256(b"".join(_sources(files("colsynth"))))
    return {**found, "sources": digest.hexdigest()[:12]}


def _sources(folder: Traversable) -> Iterator[bytes]:
    """Yield the code and data of a package; presets travel with the work that needs them."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "_topologies":
            yield from _sources(entry)
        elif entry.name.endswith((".py", ".yaml")):
            yield f"{entry.name}\n".encode() + entry.read_bytes()


def evaluate(ours: dict[str, str], work: Callable[[Item], Result], item: Item) -> Result:
    """Return ``work(item)``, in a process that was to be like ours and may have come late.

    Threads of one process take turns, because evaluations pause the garbage collector.

    Raises
    ------
    InputError
        CS254: other versions are installed here.
    """
    if fingerprint() != ours:
        phrase = "a worker has other versions than the process that sends it work"
        advice = "install the same packages on all workers, and start them again"
        raise InputError(Diagnostic("CS254", phrase, help=advice))
    with _alone:
        return work(item)
