"""How lowering refuses what no file of a runtime can hold.

What would fit is not known here: `colsynth.compile.advice` finds it and adds it as help.
"""

from __future__ import annotations

from colsynth.errors import Diagnostic, LimitError
from colsynth.runtimes.profile import Profile


def over_limit(what: str, found: int, most: int, profile: Profile) -> LimitError:
    """Return the refusal of a figure above the runtime's limit (CS402)."""
    return LimitError(Diagnostic("CS402", f"{what}: {found}, but {profile.name} allows {most}"))
