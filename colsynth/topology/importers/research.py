"""Topologies of other synthesizers: JSON of TACCL and of TE-CCL.

Both name a kind of machine whose graph is in their own source; ours is the preset of that machine.
TACCL also knows matrices, ``[target][source]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from colsynth.errors import Diagnostic
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.existing import box_of
from colsynth.topology.importers.json_text import looks_like_json, parse_json
from colsynth.topology.importers.machine import Source, limited, refusal
from colsynth.topology.importers.plan import Box, Group, Part, Port, Rate, Wire
from colsynth.units import neat_bandwidth, spell_duration

_SCALES = {"1KB": 100, "32KB": 10, "1MB": 1}
"""By the size of a chunk in the name of a file of TACCL: its times are multiplied, so that they
round to whole numbers."""

_SIZE = re.compile(r"_([1-9][0-9]{0,5})([KM])B$")
_MOST_COST = 10**9
"""Microseconds, and GB/s; far from where sums leave 64 bits."""

_LEAST = 1e-9
"""Seconds, or microseconds, that are more than zero."""

_TECCL = {
    "NDv2": ("ndv2", 1, 4),
    "DGX1": ("dgx-1v", 1, 4),
    "DGX2": ("dgx2", 2, 4),
    "AMD": ("mi250", 1, 2),
}
"""The preset of each kind, and over how many links it spreads the latency inside and between
boxes."""


def sniff_taccl(text: str) -> bool:
    """Whether a text is a topology of TACCL."""
    return looks_like_json(text, '"gpus_per_node"')


def sniff_teccl(text: str) -> bool:
    """Whether a text is an input of TE-CCL."""
    return looks_like_json(text, '"TopologyParams"')


def parse_teccl(source: Source) -> Box:
    """Return the box that the name of a machine means."""
    data = parse_json(source)
    found = data.get("TopologyParams") if isinstance(data, dict) else None
    if not isinstance(found, dict):
        raise refusal("TopologyParams is no object", source.find("TopologyParams"))
    name = str(found.get("name"))
    if name not in _TECCL:
        at = source.find(f'"{name}"')
        advice = "colsynth has meshes of its own, such as mesh:4x4" if name == "Mesh" else None
        raise refusal(f"the graph of {name!r} is not in this file", at, advice=advice)
    preset, inner, outer = _TECCL[name]
    settings = {"nic": "12.5 GB/s"}  # per GPU and per NIC, in all of their graphs
    delays = found.get("alpha")
    if isinstance(delays, list) and len(delays) == 2:
        medium = "xgmi" if preset == "mi250" else "nvlink"
        near, far = (_number(source, "alpha", x) for x in delays)
        settings[f"{medium}-latency"] = spell_duration(near / inner)
        settings["nic-latency"] = spell_duration(far / outer)
    count = found.get("chassis", 1)
    if not isinstance(count, int) or not 1 <= count <= 10**5:
        raise refusal(f"chassis {count!r} is no number of boxes", source.find("chassis"))
    return replace(box_of(preset, settings=settings, file=source.file), count=count)


def parse_taccl(source: Source) -> Box:
    """Return the box that a topology of TACCL describes, its times in microseconds again.

    Raises
    ------
    InputError
        CS152: the file has no links, and its name is that of no known machine.
    """
    data = parse_json(source)
    if not isinstance(data, dict):
        raise refusal("expected an object", source.span(1))
    return _Taccl(source, data).box()


class _Taccl:
    def __init__(self, source: Source, data: Mapping[str, Any]) -> None:
        self.source, self.data = source, data
        self.name = str(data.get("name", ""))
        size = _SIZE.search(self.name)
        label = f"{size[1]}{size[2]}B" if size else ""
        self.scale = Fraction(_SCALES.get(label, 1))
        kib = Fraction(int(size[1]) * (1024 if size[2] == "M" else 1)) if size else Fraction(1024)
        self.share = (kib or Fraction(1)) / 1024
        """Of a MB that a chunk holds."""
        self.warnings: list[Diagnostic] = []
        at = source.find('"name"')
        if label not in _SCALES:
            phrase = "the file does not tell the size of its chunks: betas are taken for us/MB"
            self.warnings.append(warning("W26", phrase, at, "names such as NDv2_1MB tell it"))
        elif self.scale > 1:
            phrase = f"times of {self.name} are {self.scale} times too large, on purpose"
            self.warnings.append(warning("W26", phrase, at, "they are divided again"))

    def box(self) -> Box:
        kind = self.name.lower()
        gpus = self._count("gpus_per_node")
        if "links" in self.data:
            found = self._custom(gpus)
        elif "dgx2" in kind and gpus == 16:
            found = self._preset("dgx2", 2)
        elif "ndv2" in kind and gpus == 8:
            found = self._preset("ndv2", 1)
        elif "mi300x" in kind:
            found = self._clique(gpus)
        else:
            at = self.source.find('"name"')
            note = "the graph is in the source of TACCL for DGX2, NDv2 and MI300X alone"
            raise refusal(f"the graph of {self.name[:40]!r} is not in this file", at, note)
        return replace(found, warnings=(*found.warnings, *self.warnings))

    def _count(self, key: str) -> int:
        value = self.data.get(key, 1)
        if not isinstance(value, int) or not 1 <= value <= 1024:
            at = self.source.find(f'"{key}"')
            raise refusal(f"{key} {value!r} is no number from 1 to 1024", at)
        return value

    def _time(self, key: str, value: Any) -> Fraction:
        return _number(self.source, key, value) / self.scale

    def _bandwidth(self, key: str, beta: Any) -> Fraction:
        """Return bytes per second of a beta."""
        cost = self._time(key, beta) / self.share  # us per MB
        if not cost:
            raise refusal(f"{key} holds a zero", self.source.find(f'"{key}"'))
        return Fraction(10**12) / cost

    def _settings(self, medium: str, halves: int, beta: Any, links: int) -> dict[str, str]:
        alpha, far = (self._time(key, self.data.get(key)) for key in ("alpha", "remote_alpha"))
        return {
            medium: neat_bandwidth(self._bandwidth("node_betas_list", beta)),
            "nic": neat_bandwidth(self._bandwidth("remote_beta", self.data.get("remote_beta"))),
            f"{medium}-latency": spell_duration(alpha / halves / 10**6),
            "nic-latency": spell_duration(far / links / 10**6),
        }

    def _preset(self, preset: str, halves: int) -> Box:
        betas = self.data.get("node_betas_list")
        if not isinstance(betas, list) or not betas:
            raise refusal("node_betas_list is no list", self.source.find("node_betas_list"))
        slowest = max(betas, key=lambda x: _number(self.source, "node_betas_list", x))
        settings = self._settings("nvlink", halves, slowest, 4)
        box = box_of(preset, settings=settings, file=self.source.file)
        # TACCL says how many NICs there are, and leaves to sketches which GPUs use them: all can.
        nics = next(len(x.members) for x in box.part.groups if x.name == "nic")
        wires = [x for x in box.part.wires if "nic" not in (x.source[0], x.target[0])]
        groups = [x for x in box.part.groups if x.name != "nic"]
        ports = self._nics(self._count("gpus_per_node"), nics, groups, wires)
        return replace(box, part=Part(tuple(groups), tuple(wires)), ports=ports)

    def _clique(self, gpus: int) -> Box:
        betas = self.data.get("node_betas_list")
        if not isinstance(betas, list) or len(betas) != 1:
            raise refusal("expected one beta", self.source.find("node_betas_list"))
        off = [[betas[0] * (i != j) for j in range(gpus)] for i in range(gpus)]
        return self._graph(gpus, off, "node_betas_list")

    def _custom(self, gpus: int) -> Box:
        links, betas = self._matrix("links", gpus), self._matrix("betas", gpus)
        both = [
            [beta if count else 0 for beta, count in zip(*rows, strict=True)]
            for rows in zip(betas, links, strict=True)
        ]
        return self._graph(gpus, both, "betas")

    def _matrix(self, key: str, gpus: int) -> list[list[Any]]:
        rows = self.data.get(key)
        at = self.source.find(f'"{key}"')
        if not isinstance(rows, list) or len(rows) != gpus:
            raise refusal(f"{key} is no matrix with {gpus} rows", at)
        for row in rows:
            if not isinstance(row, list) or len(row) != gpus:
                raise refusal(f"a row of {key} has not {gpus} numbers", at)
            for value in row:
                _number(self.source, key, value)
        return rows

    def _graph(self, gpus: int, betas: Sequence[Sequence[Any]], key: str) -> Box:
        """Return the box with a link from j to i where betas[i][j] is not zero."""
        limited(betas, "GPUs", self.source.span(1))
        alpha = self._time("alpha", self.data.get("alpha", 0)) / 10**6
        delay = f"alpha of {self.source.file}"
        wires = []
        for i in range(gpus):
            for j in range(gpus):
                back = betas[j][i]
                if not betas[i][j] or i == j or (j > i and back == betas[i][j]):
                    continue
                speed = self._bandwidth(key, betas[i][j])
                text = f"{key} of {self.source.file}: {betas[i][j]}"
                rate = Rate("link", speed, text, "link", alpha, delay)
                one_way = back != betas[i][j]
                wires.append(Wire(("gpu", j), ("gpu", i), rate, one_way=one_way))
        groups = [Group("gpu", "gpu", ("",) * gpus)]
        ports = self._nics(gpus, self._count("nics_per_node"), groups, wires)
        title = f"{gpus} GPUs of {self.name}"
        return Box(title, Part(tuple(groups), tuple(wires)), ports)

    def _nics(
        self, gpus: int, nics: int, groups: list[Group], wires: list[Wire]
    ) -> tuple[Port, ...]:
        if "remote_beta" not in self.data:
            return ()
        speed = self._bandwidth("remote_beta", self.data["remote_beta"])
        far = self._time("remote_alpha", self.data.get("remote_alpha", 0)) / 4 / 10**6
        note = f"remote_alpha of {self.source.file}, over four links"
        rate = Rate("nic", speed, f"remote_beta of {self.source.file}", "nic", far, note)
        groups.append(Group("nic", "nic", ("",) * nics))
        wires += [
            Wire(("gpu", i), ("nic", k), rate)
            for i in range(gpus)
            for k in range(nics)
            if k * gpus // nics == i or i * nics // gpus == k
        ]
        return tuple(Port(("nic", k), "", rate) for k in range(nics))


def _number(source: Source, key: str, value: Any) -> Fraction:
    """Return a time or a cost, zero or more."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not (value == 0 or _LEAST <= value <= _MOST_COST):
        raise refusal(f"{key} holds {str(value)[:40]!r}, no number", source.find(f'"{key}"'))
    return Fraction(str(value))
