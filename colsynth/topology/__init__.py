"""The outside world -> Topology: presets, YAML files, generators.

``load`` is the one way in; ``export_flat`` the one way out. Every mistake of a
file is an InputError with its line and column.
"""

from colsynth.topology.export import export_flat
from colsynth.topology.load import load
from colsynth.topology.presets import Preset, presets
from colsynth.topology.schema import json_schema

__all__ = ["Preset", "export_flat", "json_schema", "load", "presets"]
