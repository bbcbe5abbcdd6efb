"""How lowering refuses what no file of a runtime can hold.

What would fit is not known here: `colsynth.compile.advice` finds it and adds it as help.
"""

from __future__ import annotations

import numpy as np

from colsynth.errors import Diagnostic, LimitError
from colsynth.lowering.columns import Columns
from colsynth.runtimes.profile import Profile


def over_limit(what: str, found: int, most: int, profile: Profile) -> LimitError:
    """Return the refusal of a figure above the runtime's limit (CS402)."""
    return LimitError(Diagnostic("CS402", f"{what}: {found}, but {profile.name} allows {most}"))


def require_nodes(columns: Columns, ranks: int, profile: Profile, *, fuses: bool) -> None:
    """Refuse early a program whose file certainly has too many lines for a rank (CS402).

    Every operation is a step, but a receive and a send may share one, and local copies may be
    joined. For a grid of trees in copies on 72 GPUs, it takes six seconds to learn that from the
    file.

    Parameters
    ----------
    columns : Columns
        Of all transfers.
    ranks : int
    profile : Profile
    fuses : bool
        Whether a receive and a send may share a step.
    """
    if not profile.xml:
        return
    away = ~columns.local
    sends, receives = (
        np.bincount(ends[away], minlength=ranks) for ends in (columns.source, columns.target)
    )
    steps = np.maximum(sends, receives) if fuses else sends + receives
    sums = columns.local & (columns.reduces > 0)
    steps += np.bincount(columns.source[sums], minlength=ranks)
    nodes = ranks + int(steps.max(initial=0))
    if nodes > profile.max_xml_nodes:
        raise over_limit("XML nodes per rank at least", nodes, profile.max_xml_nodes, profile)
