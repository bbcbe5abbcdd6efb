"""What hardware and protocols cost, and which links data takes: below lowering and simulate."""

from colsynth.cost.model import NAMES, Model, default_model, ideal_model, model_of

__all__ = ["NAMES", "Model", "default_model", "ideal_model", "model_of"]
