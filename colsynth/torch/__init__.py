"""Schedules inside a PyTorch job: ``import colsynth.torch`` registers the backend ``colsynth``.

``dist.init_process_group("colsynth")`` and ``dist.new_group(backend="colsynth")`` make process
groups that serve calls from the bundle in ``COLSYNTH_BUNDLE`` (`colsynth tune -r torch`), and
everything else from NCCL or Gloo. See `colsynth guide torch`.
"""

from __future__ import annotations

try:
    import torch.distributed as _dist
except ModuleNotFoundError as fault:
    raise ImportError("colsynth.torch needs PyTorch: pip install 'colsynth[torch]'") from fault

from colsynth.torch.group import RoundsGroup, create, served

__all__ = ["RoundsGroup", "served"]

if "colsynth" not in _dist.Backend.backend_list:
    _dist.Backend.register_backend("colsynth", create, extended_api=True, devices=["cpu", "cuda"])
