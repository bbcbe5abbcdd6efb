"""Matrices of capacities as CSV: GB/s from the node of a row to the node of a column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from colsynth.errors import Diagnostic
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.machine import Source, limited, refusal
from colsynth.topology.importers.plan import Box, Group, Part, Plan, Rate, Ref, Wire, unit_of

_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_SWITCHES = re.compile(r"(?i)(nv)?(s|sw|switch|leaf|spine|core|ib)[0-9._-]*$|.*switch")
_NICS = re.compile(r"(?i)(nic|mlx5|hca|cxi|efa)")
_MOST_COUNT = 1000
"""Links of a pair; where more would be needed, each bandwidth is a rate of its own."""


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    line: int
    column: int


def _rows(text: str) -> list[list[_Cell]]:
    """Return the cells of every line that is not empty, and no comment."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        mark = next((x for x in (",", ";", "\t") if x in line), None)
        cells, column = [], 1
        for part in line.split(mark):
            begin = column + len(part) - len(part.lstrip())
            cells.append(_Cell(part.strip().strip('"'), number, begin))
            column += len(part) + 1
        rows.append(cells)
    return rows


def sniff(text: str) -> bool:
    """Whether the last line of a text is a row of numbers, as long as the text has rows."""
    if len(text) > 2**22 or text.lstrip()[:1] in ("<", "{", "["):
        return False
    lines = [x for x in text.split("\n") if x.strip() and not x.lstrip().startswith("#")]
    if len(lines) < 2 or not any(mark in lines[-1] for mark in ",;\t"):
        return False
    last = re.split(r"[,;\t]", lines[-1])
    return len(last) > 1 and all(_NUMBER.fullmatch(x.strip()) or not x.strip() for x in last[1:])


def parse(source: Source) -> Box | Plan:
    """Return the network: a box of GPUs and switches, or any graph where there are NICs.

    Raises
    ------
    InputError
        CS152: the matrix is not square, or a cell holds no number.
    """
    rows = _rows(source.text)
    limited(rows, "rows", source.span(1))
    names, body = _named(rows, source)
    if len(names) < 2 or len(body) != len(names):
        phrase = f"{len(body)} rows for {len(names)} nodes"
        raise refusal(phrase, source.span(1), "expected a square matrix of two nodes or more")
    links: dict[tuple[int, int], Fraction] = {}
    warnings: list[Diagnostic] = []
    for i, row in enumerate(body):
        at = source.span(row[0].line if row else 1)
        if len(row) != len(names):
            raise refusal(f"{len(row)} numbers for {len(names)} nodes", at)
        for j, cell in enumerate(row):
            at = source.span(cell.line, cell.column)
            if cell.text and not _NUMBER.fullmatch(cell.text):
                raise refusal(f"{cell.text[:40]!r} is no capacity in GB/s", at)
            value = Fraction(cell.text or 0) * 10**9
            if i == j and value:
                phrase = f"{names[i]} is linked to itself"
                warnings.append(warning("W02", phrase, at, "the link is left out"))
            elif value:
                links[i, j] = value
    if not links:
        raise refusal("no node is linked to another one", source.span(1))
    return _network(source, names, links, tuple(warnings))


def _named(rows: list[list[_Cell]], source: Source) -> tuple[list[str], list[list[_Cell]]]:
    """Return the names of the nodes, and the rows without them, in the same order."""
    head = rows[0]
    # The corner above names may be empty; a single odd cell beside numbers is a slip.
    odd = [not _NUMBER.fullmatch(cell.text) for cell in head]
    if all(odd) and all(cell.text for cell in head[1:]):
        body = rows[1:]
        beside = all(len(row) == len(head) for row in body) and len(body) == len(head) - 1
        if beside:
            return _labelled([cell.text for cell in head[1:]], body, source)
        if body and all(len(row) == len(head) + 1 for row in body):
            return [cell.text for cell in head], [row[1:] for row in body]
        return [cell.text for cell in head], body
    return [f"GPU {i}" for i in range(len(rows))], rows


def _labelled(
    names: list[str], body: list[list[_Cell]], source: Source
) -> tuple[list[str], list[list[_Cell]]]:
    """Return names and rows in the order of the columns; rows without labels are in it already."""
    if not any(row[0].text for row in body):
        return names, [row[1:] for row in body]
    found: dict[str, list[_Cell]] = {}
    for label, *cells in body:
        at = source.span(label.line, label.column)
        if label.text not in names:
            raise refusal(f"no column is called {label.text[:40]!r}, as this row is", at)
        if label.text in found or names.count(label.text) > 1:
            raise refusal(f"the name {label.text[:40]!r} is there twice", at)
        found[label.text] = cells
    return names, [found[name] for name in names]


def _network(
    source: Source,
    names: list[str],
    links: dict[tuple[int, int], Fraction],
    warnings: tuple[Diagnostic, ...],
) -> Box | Plan:
    kinds = ["switch" if _SWITCHES.match(x) else "nic" if _NICS.match(x) else "gpu" for x in names]
    if kinds.count("gpu") < 2:
        raise refusal("the matrix has fewer than two GPUs", source.span(1), f"names: {names[:8]}")
    groups: list[Group] = []
    place: dict[int, Ref] = {}
    for kind in ("gpu", "switch", "nic"):
        members = [i for i, other in enumerate(kinds) if other == kind]
        place |= {i: (kind, k) for k, i in enumerate(members)}
        if members:
            labels = tuple(names[i] for i in members)
            groups.append(Group(kind, kind, labels, f"Names of {source.file}."))
    wires = _wires(source, links, place)
    part = Part(tuple(groups), wires)
    title = f"{kinds.count('gpu')} GPUs of {source.file}"
    if "nic" in kinds:
        return Plan("capacities", title, (), part, boxed=False, warnings=warnings)
    return Box(title, part, warnings=warnings)


def _wires(
    source: Source, links: dict[tuple[int, int], Fraction], place: dict[int, Ref]
) -> tuple[Wire, ...]:
    """Return the links as multiples of their greatest common divisor, if they are small ones."""
    values = set(links.values())
    unit = unit_of(values)
    text = f"capacities of {source.file}"
    if max(values) / unit > _MOST_COUNT:
        known = {x: Rate("link", x, text, "link") for x in sorted(values)}
    else:
        known = dict.fromkeys(values, Rate("link", unit, text, "link"))
    found = []
    for (i, j), value in links.items():
        both = links.get((j, i)) == value
        if both and i > j:
            continue
        count = int(value / known[value].bandwidth)
        found.append(Wire(place[i], place[j], known[value], count, one_way=not both))
    return tuple(found)
