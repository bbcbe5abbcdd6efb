"""The formats that are imported, told apart by their content; and files of other kinds, by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from colsynth.errors import Diagnostic, InputError
from colsynth.topology.importers import (
    amd,
    astra_sim,
    capacity,
    existing,
    ibnetdiscover,
    nccl_xml,
    nvidia_gpus,
    nvidia_smi,
    research,
    slurm,
)
from colsynth.topology.importers.existing import Ready
from colsynth.topology.importers.fabric import Fabric
from colsynth.topology.importers.machine import Machine, Source
from colsynth.topology.importers.nvidia_gpus import Products
from colsynth.topology.importers.plan import Box, Plan

Found = Machine | Box | Fabric | Plan | Products | Ready


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, and what recognizes and reads it."""

    name: str
    sniff: Callable[[str], bool]
    parse: Callable[[Source], Found]


FORMATS = (
    Format("topology XML of NCCL or RCCL", nccl_xml.sniff, nccl_xml.parse),
    Format("rocm-smi --showtopo or amd-smi topology", amd.sniff, amd.parse),
    Format("nvidia-smi topo -m", nvidia_smi.sniff, nvidia_smi.parse),
    Format("nvidia-smi nvlink -s", nvidia_gpus.sniff, nvidia_gpus.parse),
    Format("ibnetdiscover", ibnetdiscover.sniff, ibnetdiscover.parse),
    Format("topology.conf of Slurm", slurm.sniff, slurm.parse),
    Format("topology.yaml of Slurm", slurm.sniff_yaml, slurm.parse_yaml),
    Format("topology of TACCL", research.sniff_taccl, research.parse_taccl),
    Format("input of TE-CCL", research.sniff_teccl, research.parse_teccl),
    Format("network of ASTRA-sim", astra_sim.sniff, astra_sim.parse),
    Format("topology file of colsynth", existing.sniff, existing.parse),
    Format("matrix of capacities as CSV", capacity.sniff, capacity.parse),
)

_DUMP = "NCCL_TOPO_DUMP_FILE=topo.xml writes a topology"
_OTHERS = (
    (r"\s*(<!--.*?-->\s*|<\?.*?\?>\s*)*<graphs\b", "a dump of NCCL's graph search", _DUMP),
    (r"\s*(<!--.*?-->\s*|<\?.*?\?>\s*)*<algo\b", "a schedule file", "see colsynth verify"),
    (r"\s*(<!DOCTYPE html|<html)", "a page of HTML", "download the file itself"),
    (r"\s*(<!--.*?-->\s*|<\?.*?\?>\s*)*<topology\b", "hwloc XML", _DUMP),
    (r"(?s).*\balgbw\b.*\bbusbw\b", "a log of nccl-tests", "it measures a machine; see calibrate"),
    (r"(?s).*NCCL INFO", "a log of NCCL", _DUMP),
    (r"(?s)\s*\{.*\"(intranode|internode)_sketch\"", "a sketch of TACCL", "see --sketch"),
    (r"(?s)#\s*(lspci|PCI)|[0-9a-f:.]+ (VGA|3D|PCI bridge)", "a list of lspci", _DUMP),
    (r"(?s).*GPU\s+Name\s+Persistence-M", "the summary of nvidia-smi", "run nvidia-smi topo -m"),
)


def detect(source: Source) -> Format:
    """Return the format of a text.

    Raises
    ------
    InputError
        CS150: it has none of them; a file of another kind is named for what it is.
    """
    for known in FORMATS:
        if known.sniff(source.text):
            return known
    at = source.span(1)
    for pattern, name, advice in _OTHERS:
        if re.match(pattern, source.text[:100_000]):
            raise InputError(Diagnostic("CS150", f"this is {name}, not a topology", at, (), advice))
    what = "the file is empty" if not source.text.strip() else "no known format begins like this"
    names = ", ".join(known.name for known in FORMATS)
    raise InputError(Diagnostic("CS150", what, at, (f"known formats: {names}",)))
