"""How lowering refuses what no file of a runtime can hold.

What would fit is not known here: `colsynth.compile.advice` finds it and adds it as help.
"""

from __future__ import annotations

import numpy as np

from colsynth.errors import Diagnostic, LimitError
from colsynth.lowering.columns import Columns
from colsynth.model import ChunkProgram, Ordering
from colsynth.runtimes.profile import Profile


def over_limit(what: str, found: int, most: int, profile: Profile) -> LimitError:
    """Return the refusal of a figure above the runtime's limit (CS402)."""
    return LimitError(Diagnostic("CS402", f"{what}: {found}, but {profile.name} allows {most}"))


def require_nodes(steps: int, ranks: int, profile: Profile) -> None:
    """Refuse a program whose file certainly has too many lines, given a rank's steps (CS402)."""
    nodes = ranks + steps
    if nodes > profile.max_xml_nodes:
        raise over_limit("XML nodes per rank at least", nodes, profile.max_xml_nodes, profile)


def may_fuse(program: ChunkProgram, profile: Profile) -> bool:
    """Whether a receive and a send may share a step, for runtime and order of the program."""
    return profile.fuses and program.ordering is not Ordering.FIXED


def require_room(
    program: ChunkProgram, columns: Columns, profile: Profile, *, fuses: bool = True
) -> None:
    """Refuse early a program whose file certainly has too many lines for a rank (CS402).

    Every operation is a step, but a receive and a send may share one, and local copies may be
    joined. For a grid of trees in copies on 72 GPUs, it takes six seconds to learn that from the
    file.

    Parameters
    ----------
    program : ChunkProgram
    columns : Columns
        Of all its transfers.
    profile : Profile
    fuses : bool
        Whether steps are fused where they may be (`may_fuse`).
    """
    if not profile.xml:
        return
    ranks, away = program.problem.topology.size, ~columns.local
    sends, receives = (
        np.bincount(ends[away], minlength=ranks) for ends in (columns.source, columns.target)
    )
    fused = fuses and may_fuse(program, profile)
    steps = np.maximum(sends, receives) if fused else sends + receives
    sums = columns.local & (columns.reduces > 0)
    steps += np.bincount(columns.source[sums], minlength=ranks)
    require_nodes(int(steps.max(initial=0)), ranks, profile)
