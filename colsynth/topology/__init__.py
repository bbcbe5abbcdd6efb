"""The outside world -> Topology: presets, YAML files, generators.

``load`` is the way in and ``export_flat`` the way out; programs that hold a networkx
graph use ``from_networkx`` and ``to_networkx`` of :mod:`colsynth.topology.graph`. Every
mistake of a file is an InputError with its line and column.
"""

from colsynth.topology.export import export_flat
from colsynth.topology.load import load
from colsynth.topology.presets import Preset, presets
from colsynth.topology.schema import json_schema

__all__ = ["Preset", "export_flat", "json_schema", "load", "presets"]
