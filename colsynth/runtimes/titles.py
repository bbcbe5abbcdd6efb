"""The name in a file's header: which collective it is, and for which topology."""

from __future__ import annotations

import re

from colsynth.model import Collective, Header
from colsynth.runtimes.header import NAME_LIMIT


def title(collective: Collective, topology: str) -> str:
    """Return a name for a file, in letters that every runtime's scanner reads alike."""
    text = f"colsynth {collective} {topology}"
    return re.sub(r"[^A-Za-z0-9 ._:,=+-]", "_", text)[:NAME_LIMIT]


def made_for(header: Header) -> str | None:
    """Return the topology that a file names, None where its name is not one of ours."""
    start = title(header.collective, "")
    return header.name.removeprefix(start) if header.name.startswith(start) else None


def fits(header: Header, topology: str) -> bool:
    """Whether a file may have been made for a topology: its name says so, or says nothing."""
    return made_for(header) is None or header.name == title(header.collective, topology)
