"""``nvidia-smi topo -m``, and beside it ``nvidia-smi nvlink -s`` or ``nvidia-smi -L``.

The matrix says how many NVLinks join two GPUs, and else how far two devices are from each other on
PCIe. It names neither the GPU nor any bandwidth; the other two name the GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from colsynth.errors import Diagnostic
from colsynth.topology.importers import rates
from colsynth.topology.importers.doubts import bond_doubts, kind_of, warning
from colsynth.topology.importers.machine import (
    NUMBERED,
    SWITCHED,
    Bond,
    Gpu,
    Hub,
    Machine,
    Nic,
    Source,
    limited,
    refusal,
)
from colsynth.topology.importers.nvidia_gpus import clean, with_products
from colsynth.topology.importers.nvidia_gpus import parse as parse_products

_HEADER = re.compile(r"\s*GPU(?:0\s*$|[0-9]{1,4}(?=\s+(?:GPU[0-9]|NIC\d|mlx|CPU|\S*_\d)))")
_END = re.compile(r"CPU\s+Affinity|NUMA\s+Affinity|GPU\s+NUMA")
_CELL = re.compile(r"\s*(X|NV[0-9]{1,4}|PIX|PXB|PHB|NODE|SYS|SOC)")
_NAMED_NIC = re.compile(r"\s*(NIC[0-9]+):\s*(\S+)\s*$")

_FORMAT = "nvidia-smi matrix"
_SWITCHLESS = ("", "sm60", "sm86", "sm89")
"""Generations of which no machine has NVSwitches."""

_PIX, _PXB, _PHB, _NODE, _SYS = 1, 2, 3, 4, 5
_LEVELS = {"PIX": _PIX, "PXB": _PXB, "PHB": _PHB, "NODE": _NODE, "SYS": _SYS, "SOC": _SYS}
_MOST_LINKS = 18
"""NVLinks of one GPU, in all generations up to Blackwell; more in a row are those of a switch."""

_BRIDGED, _GUESSES, _NEWEST = "sm86", ((6, "sm70"), (12, "sm80")), "sm90"
"""What few and many NVLinks of a GPU mean; four between two GPUs are a bridge."""


def sniff(text: str) -> bool:
    """Whether a text has the header of the matrix."""
    return any(_HEADER.match(line) for line in clean(text[:200_000]).split("\n"))


def parse(source: Source) -> Machine:
    """Return the node that the matrix describes.

    Raises
    ------
    InputError
        CS152: a row is missing or cut off, at its line and column.
    """
    source = replace(source, text=clean(source.text))
    found = _Matrix(source)
    products = parse_products(source)
    machine = found.machine()
    return with_products(machine, products) if products.gpus else machine


def with_switches(machine: Machine, gpu: str) -> Machine:
    """Return a machine whose links lead to NVSwitches where its GPUs have too few for all peers.

    Parameters
    ----------
    machine : Machine
    gpu : str
        The generation that ``--gpu`` names; empty where the file's counts.
    """
    model = gpu or machine.gpus[0].model
    most, peers = rates.row(machine.medium, model).get("links", 0), len(machine.gpus) - 1
    counts = {bond.count for bond in machine.bonds}
    direct = all(bond.target != SWITCHED for bond in machine.bonds)
    every = direct and len(machine.bonds) == len(machine.gpus) * peers
    if machine.format != _FORMAT or model in _SWITCHLESS or not every or len(counts) != 1:
        return machine
    (count,) = counts
    if not count <= most < count * peers:
        return machine
    doubts = list(machine.warnings)
    if count < most:  # such as 8 of the 12 links of A800, or a slip
        usual = f"{kind_of(machine.medium, model)} has {most}"
        phrase = f"{machine.gpus[0].name} has {count * peers} links, but {usual}"
        note = f"taken for {count} links of each GPU to NVSwitches"
        advice = "check the counts in the file, and --gpu"
        doubts.append(warning("W27", phrase, machine.gpus[0].at, note, advice=advice))
    bonds = tuple(Bond(i, SWITCHED, count, gpu.at) for i, gpu in enumerate(machine.gpus))
    return replace(machine, bonds=bonds, warnings=tuple(doubts))


class _Matrix:
    """The cells of the matrix, by name of row and column."""

    def __init__(self, source: Source) -> None:
        self.source = source
        lines = source.text.split("\n")
        self.top = next(i for i, line in enumerate(lines) if _HEADER.match(line))
        header = lines[self.top]
        end = _END.search(header)
        self.names = header[: end.start() if end else len(header)].split()
        at = source.span(self.top + 1)
        limited(self.names, "GPUs and NICs", at)
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise refusal(f"column {twice[0]} is there twice", at)
        self.gpus = [name for name in self.names if NUMBERED.fullmatch(name)]
        self.nics = [name for name in self.names if name not in self.gpus]
        self.cells: dict[tuple[str, str], str] = {}
        self.rest: dict[str, str] = {}
        self.rows: dict[str, int] = {}
        self.warnings: list[Diagnostic] = []
        self.labels: dict[str, str] = {}
        for number, line in enumerate(lines[self.top + 1 :], self.top + 2):
            if not self._row(line, number):
                break
        self._legend(lines)
        self._check()

    def _row(self, line: str, number: int) -> bool:
        """Read a row; whether more may follow."""
        if not line.strip():
            return not self.rows
        name = line.split(maxsplit=1)[0]
        if (
            NUMBERED.fullmatch(name)
            and name not in self.names
            and not self.rows.keys() >= {*self.gpus}
        ):
            advice = "copy the whole matrix, or pipe it in"
            raise refusal(
                f"{name} has a row, but no column", self.source.span(number), advice=advice
            )
        if name not in self.names or name in self.rows:
            return False
        place = line.index(name) + len(name)
        for other in self.names:
            cell = _CELL.match(line, place)
            if cell is None:
                if name in self.nics:
                    return False  # of the rows of NICs, none is needed
                at = self.source.span(number, place + 1)
                seen = line[place:].split()
                phrase = f"{name} has no cell for {other}"
                note = f"found {seen[0][:20]!r}" if seen else "the row ends"
                raise refusal(phrase, at, note, advice="copy the whole matrix, or pipe it in")
            self.cells[name, other] = cell[1]
            place = cell.end()
        if more := _CELL.match(line, place):
            at = self.source.span(number, more.start(1) + 1)
            raise refusal(f"{name} has more cells than the header has columns", at)
        self.rows[name] = number
        self.rest[name] = " ".join(line[place:].split())
        return True

    def _legend(self, lines: list[str]) -> None:
        """Read the names of the NICs; refuse a second matrix with other links."""
        for number, line in enumerate(lines[self.top + 1 :], self.top + 2):
            at = self.source.span(number)
            if _HEADER.match(line) and self._differs(lines[number:]):
                note = f"the first begins at line {self.top + 1}"
                advice = "import one output at a time"
                raise refusal("a second matrix begins here", at, note, advice=advice)
            if found := _NAMED_NIC.match(line):
                others = {name for nic, name in self.labels.items() if nic != found[1]}
                if found[2] in others:
                    raise refusal(f"two NICs are called {found[2]}", at)
                self.labels[found[1]] = found[2]

    def _differs(self, lines: list[str]) -> bool:
        """Whether rows of another matrix have other links; those of -p2p say nothing of links."""
        for line in lines:
            name, *cells = line.split() or [""]
            if name not in self.gpus:
                if NUMBERED.fullmatch(name):
                    return True
                continue
            ours = (self.cells.get((name, other)) for other in self.names)  # its row may be away
            pairs = zip(ours, cells, strict=False)
            if any(_CELL.fullmatch(cell) and cell != own for own, cell in pairs):
                return True
        return False

    def _check(self) -> None:
        end = self.source.span(self.source.text.count("\n") + 1)
        missing = [name for name in self.gpus if name not in self.rows]
        if missing:
            advice = "copy the whole matrix, or pipe it in"
            raise refusal(f"the row of {missing[0]} is missing", end, advice=advice)
        lost = [name for name in self.nics if name not in self.rows]
        nameless = [x for x in self.nics if x.startswith("NIC") and x not in self.labels]
        if lost or nameless:
            what = f"the row of {lost[0]}" if lost else f"the name of {nameless[0]}"
            note = "the rows of the GPUs are enough; NICs may lack their names"
            phrase = f"the text was cut off: {what} is missing"
            self.warnings.append(warning("W10", phrase, end, note))
        for (i, j), cell in self.cells.items():
            if (cell == "X") != (i == j) and i in self.rows:
                phrase = f"{i} is {cell} to {j if i != j else 'itself'}"
                note = "expected X where a row meets its own column, and nowhere else"
                raise refusal(phrase, self.source.span(self.rows[i]), note)
        for i, j in combinations(self.rows, 2):
            one, other = self.cells[i, j], self.cells[j, i]
            if one != other and not (one.startswith("NV") and other.startswith("NV")):
                at = self.source.span(self.rows[j])
                phrase = f"{i} and {j} are {one}, but {other} in the other direction"
                raise refusal(phrase, at, "the matrix is symmetric where a machine printed it")

    def machine(self) -> Machine:
        place = {name: i for i, name in enumerate(self.gpus)}
        bonds = self._bonds(place)
        sums = Counter[int]()
        for bond in bonds:
            sums[bond.source] += bond.count
        total = max(sums.values(), default=0)
        model = next((key for most, key in _GUESSES if total <= most), _NEWEST) if bonds else ""
        if bonds and len(self.gpus) == 2 and total == 4:
            model = _BRIDGED
        at = self.source.span(self.top + 1)
        if bonds:
            phrase = f"the matrix does not name the GPU: {total} NVLinks, taken for {model}"
            note = "links of V100, A100 and H100 carry 25 GB/s, those of B200 50 GB/s"
            advice = "give --gpu, or the output of `nvidia-smi nvlink -s` as another file"
            self.warnings.append(warning("W16", phrase, at, note, advice=advice))
        hubs, parents = self._tree()
        if not bonds:
            phrase = "the matrix does not tell the speed of PCIe"
            advice = "give --gpu, or import a dump of NCCL, which tells it"
            self.warnings.append(warning("W15", phrase, at, "taken for 8 GT/s", advice=advice))
        gpus = tuple(
            Gpu(name, self.source.span(self.rows[name]), parents[name], None, model)
            for name in self.gpus
        )
        nics = tuple(self._nic(name, parents[name]) for name in self.nics)
        found = Machine(_FORMAT, self.source.file, gpus, nics, hubs, tuple(bonds))
        return replace(found, warnings=(*self.warnings, *bond_doubts(found)))

    def _nic(self, name: str, hub: int) -> Nic:
        at = self.source.span(self.rows.get(name, self.top + 1))
        return Nic(self.labels.get(name, name), at, hub)

    def _bonds(self, place: dict[str, int]) -> list[Bond]:
        """Return the NVLinks: between pairs, or to the switches where a row has more than a GPU.

        NV12 between all of 8 GPUs means 12 links of each, not 84.
        """
        counts = {
            (i, j): int(cell[2:])
            for (i, j), cell in self.cells.items()
            if cell.startswith("NV") and i in place and j in place
        }
        none = [pair for pair, count in counts.items() if not count]
        if none:
            i, j = none[0]
            phrase = f"{len(none)} cells are NV0, such as that of {i} and {j}"
            at, note = self.source.span(self.rows[i]), "they count as not linked"
            self.warnings.append(warning("W11", phrase, at, note))
        counts = {pair: count for pair, count in counts.items() if count}
        rows = {i: [counts.get((i, j), 0) for j in self.gpus] for i in self.gpus}
        totals = {i: sum(row) for i, row in rows.items()}
        most, alike = max(totals.values()), len(set(counts.values())) == 1
        if most > _MOST_LINKS:
            best = {i: max(row) for i, row in rows.items()}
            self._uneven(counts, best)
            return [
                Bond(place[i], SWITCHED, n, self.source.span(self.rows[i]))
                for i, n in best.items()
                if n
            ]
        if most == _MOST_LINKS and alike and len(place) > 2:
            phrase = f"{most} NVLinks of a GPU may lead to its peers, or all to a switch"
            at = self.source.span(self.top + 1)
            self.warnings.append(warning("W16", phrase, at, "taken for links to the peers"))
        return [
            Bond(place[i], place[j], n, self.source.span(self.rows[i]))
            for (i, j), n in counts.items()
        ]

    def _uneven(self, counts: Mapping[tuple[str, str], int], best: Mapping[str, int]) -> None:
        """Name cells of a box with switches that are neither of the two GPUs' numbers."""
        for (i, j), count in counts.items():
            if count not in (best[i], best[j]):
                phrase = f"{i} has {count} links to {j}, but {best[i]} to others"
                note = "all of them lead to the NVSwitches: the largest number of its row counts"
                at = self.source.span(self.rows[i])
                self.warnings.append(warning("W13", phrase, at, note))

    def _levels(self) -> Iterator[tuple[str, str, int]]:
        for i, j in combinations(self.names, 2):
            cell = self.cells.get((i, j)) or self.cells.get((j, i), "")
            same = self.rest.get(i, i) == self.rest.get(j, j)
            yield i, j, _LEVELS.get(cell, _NODE if same else _SYS)

    def _tree(self) -> tuple[tuple[Hub, ...], dict[str, int]]:
        """Return the PCIe tree that the words mean, and the hub above each device."""
        pairs = list(self._levels())
        at = self.source.span(self.top + 1)
        hubs: list[Hub] = []
        above = dict.fromkeys(self.names, -1)
        for level, kind in ((_NODE, "root"), (_PHB, "host"), (_PXB, "switch"), (_PIX, "switch")):
            label = {name: name for name in self.names}
            for i, j, far in pairs:
                if far <= level and label[i] != label[j]:
                    old, new = label[j], label[i]
                    label = {x: new if y == old else y for x, y in label.items()}
            for first in dict.fromkeys(label.values()):
                members = [name for name in self.names if label[name] == first]
                if kind == "root" or len(members) > 1:
                    title = f"{'sockets' if kind == 'root' else 'bridge'} of {members[0]}"
                    hubs.append(Hub(title, kind, above[members[0]], None, at, "unknown"))
                    above |= dict.fromkeys(members, len(hubs) - 1)
        return tuple(hubs), above
