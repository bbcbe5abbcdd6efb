"""Arguments of calls in one form, whichever of PyTorch's forms they come in."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def normal(tensors: Any, opts: Any, kind: Any) -> tuple[list[torch.Tensor], Any]:
    """Return tensors and options of a call in any of the forms that PyTorch's class takes."""
    if opts is None or not isinstance(opts, kind):
        made = kind()
        if opts is not None:
            made.reduceOp = opts
        opts = made
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors), opts


def rooted(tensors: Any, opts: Any, rest: Any, kind: Any) -> tuple[list[torch.Tensor], Any]:
    """Do as `normal` for calls with a root, which may come by itself."""
    root = opts if isinstance(opts, int) else None
    op = rest[0] if rest and kind is dist.ReduceOptions else None
    tensors, opts = normal(tensors, op if root is not None else opts, kind)
    if root is not None:
        opts.rootRank = root
    return tensors, opts


def flat(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a dense tensor as one row of the same memory; None of others."""
    dense = tensor.layout is torch.strided and tensor.is_contiguous() and not tensor.is_complex()
    if not dense or tensor.is_quantized:
        return None
    # Not `view`, which lets a single element keep any stride; such a row has no view of bytes.
    return tensor.detach().as_strided((tensor.numel(),), (1,))
