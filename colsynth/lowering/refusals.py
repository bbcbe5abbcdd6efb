"""How lowering refuses what no file of a runtime can hold."""

from __future__ import annotations

from colsynth.errors import Diagnostic, LimitError
from colsynth.runtimes.profile import Profile

ADVICE = "use fewer trees (--trees), fewer chunks (--chunks-per-gpu) or fewer --instances"
"""What makes a program smaller, whichever algorithm it comes from."""


def over_limit(what: str, found: int, most: int, profile: Profile) -> LimitError:
    """Return the refusal of a figure above the runtime's limit (CS402)."""
    phrase = f"{what}: {found}, but {profile.name} allows {most}"
    return LimitError(Diagnostic("CS402", phrase, help=ADVICE))
