"""What launches left in the outputs, compared with what the collective promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from colsynth.verify.contents import WORD, mask_of, ranks, words_for
from colsynth.verify.contract import EVERYONE, wanted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from colsynth.verify.plans.cut import Cut
    from colsynth.verify.plans.machine import Outcome


def first_fault(pieces: Cut, found: Outcome, root: int | None) -> tuple[str, int] | None:
    """Return what is wrong with the outputs, and on which rank; None where nothing is.

    Parameters
    ----------
    pieces : Cut
        What was executed.
    found : Outcome
        Of launches that all finished.
    root : int or None
        For broadcast and reduce.
    """
    header, cells = pieces.program.header, pieces.cells
    launches, size, _ = found.chunks.shape
    for rank in range(size):
        chunk, who = wanted(header, rank, root)
        number = (chunk[:, None] * cells + np.arange(cells)).ravel()
        masks = np.repeat(_masks(who, header.ranks), cells, axis=0)
        for launch in range(launches):
            held = found.chunks[launch, rank, : len(number)]
            wrong = held != launch * found.period + number
            wrong |= (found.masks[launch, rank, : len(number)] != masks).any(axis=1)
            if wrong.any():
                cell = int(np.flatnonzero(wrong)[0])
                place = cell // cells
                text = f"launch {launch}: output chunk {place} must hold "
                text += f"{ranks(mask_of(masks[cell].tolist()))} of chunk {chunk[place]}; it holds "
                return text + _held(pieces, found, (launch, rank, cell)), rank
    return None


def _masks(who: NDArray[np.int64], size: int) -> NDArray[np.uint64]:
    """Return sets of ranks as words of 64."""
    words = np.zeros((len(who), words_for(size)), np.uint64)
    for rank in range(size):
        bit = np.uint64(1 << rank % WORD)
        words[(who == EVERYONE) | (who == rank), rank // WORD] |= bit
    return words


def _held(pieces: Cut, found: Outcome, place: tuple[int, int, int]) -> str:
    from colsynth.kernels.cells import UNDEFINED, WRONG

    chunk = int(found.chunks[place])
    if chunk == UNDEFINED:
        return "what no rank sent"
    if chunk == WRONG:
        return "a sum of different chunks, or one twice"
    when, rest = divmod(chunk, found.period)
    old = "" if when == place[0] else f", left by launch {when}"
    return f"{ranks(mask_of(found.masks[place].tolist()))} of chunk {rest // pieces.cells}{old}"
