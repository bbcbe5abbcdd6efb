"""Checks of MSCCL++ execution plans, independent of what writes them (contract 13)."""

from colsynth.verify.plans.check import verify_plan

__all__ = ["verify_plan"]
