"""Tensors of a call as a program can take them, whichever memory they share.

Which program serves a call must not depend on that: ranks would choose differently where some call
in place and others do not, and wait for each other for ever. So a rank copies where it must.
"""

from __future__ import annotations

import torch

from colsynth.model import Collective, Header


def fitted(
    header: Header, rank: int, source: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return input and output for a program, those of the call where it serves its mode.

    Parameters
    ----------
    header : Header
        Of the program.
    rank : int
    source, target : Tensor
        Input and output of the call, flat. The result belongs into `target`.
    """
    place = _aliased(header.collective, source, target, rank)
    if header.in_place if place else header.out_of_place and place is False:
        return source, target
    if header.out_of_place:
        return source.clone(), target
    if header.collective is Collective.REDUCE_SCATTER:
        source = source.clone()
        return source, source.narrow(0, rank * target.numel(), target.numel())
    first = rank * source.numel() if header.collective is Collective.ALLGATHER else 0
    own = target.narrow(0, first, source.numel())
    own.copy_(source.clone())  # they may overlap
    return own, target


def _aliased(
    collective: Collective, source: torch.Tensor, target: torch.Tensor, rank: int
) -> bool | None:
    """Return whether a call is in place; None where its tensors overlap otherwise."""
    begin, end = source.data_ptr(), source.data_ptr() + source.nbytes
    first, last = target.data_ptr(), target.data_ptr() + target.nbytes
    if end <= first or last <= begin:
        return False
    shift = {
        Collective.ALLGATHER: rank * source.nbytes,
        Collective.REDUCE_SCATTER: -rank * target.nbytes,
    }.get(collective, 0)
    return True if begin == first + shift else None
