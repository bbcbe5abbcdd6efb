"""Wires -> rules of the compact form: which word says which nodes are joined, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from colsynth.topology.importers.plan import Group, Rate, Ref, Wire

Pairs = dict[tuple[int, int], int]
"""Parallel links by (index into the sources, index into the targets)."""


def rules(
    wires: Sequence[Wire], groups: Sequence[Group], spell: Callable[[Rate], str]
) -> list[str]:
    """Return the lines of rules that stand for wires, each without indentation.

    Parameters
    ----------
    wires : sequence of Wire
    groups : sequence of Group
        All that the wires join.
    spell : callable
        Returns ``"bandwidth: ..., latency: ..."`` of a rate.
    """
    sizes = {group.name: len(group.members) for group in groups}
    kinds: dict[tuple[str, str, Rate, bool], list[Wire]] = {}
    for wire in wires:
        key = wire.source[0], wire.target[0], wire.rate, wire.one_way
        kinds.setdefault(key, []).append(wire)
    lines: list[str] = []
    for (source, target, rate, one_way), alike in kinds.items():
        for note in dict.fromkeys(x.note for x in alike if x.note):
            lines += [f"# {note}"]
            break
        pairs = _pairs(alike, source == target and not one_way)
        ends = (source, sizes[source]), (target, sizes[target])
        words, rows = _joined(pairs, *ends, by_matrix=one_way and source == target)
        tail = f"{words}, {spell(rate)}" + (", one-way: true" if one_way else "")
        if rows is None:
            lines.append(f"- {{{tail}}}")
        else:
            lines += [f"- {part}" if i == 0 else f"  {part}" for i, part in enumerate(_split(tail))]
            lines += ["  counts:", *(f"    - [{', '.join(map(str, row))}]" for row in rows)]
    return lines


def _pairs(wires: Sequence[Wire], both: bool) -> Pairs:
    pairs: Pairs = {}
    for wire in wires:
        i, j = wire.source[1], wire.target[1]
        pairs[i, j] = pairs.get((i, j), 0) + wire.count
        if both:
            pairs[j, i] = pairs.get((j, i), 0) + wire.count
    return pairs


def _joined(
    pairs: Pairs, source: tuple[str, int], target: tuple[str, int], by_matrix: bool
) -> tuple[str, list[list[int]] | None]:
    """Return the keys that select the pairs, and the matrix of counts where there must be one."""
    (name, m), (other, n) = source, target
    ends = f"from: {name}, to: {other}"
    counts = set(pairs.values())
    if len(counts) == 1 and not by_matrix:
        (count,) = counts
        times = f", count: {count}" if count > 1 else ""
        found = set(pairs)
        same = name == other
        whole = {(i, j) for i in range(m) for j in range(n) if not (same and i == j)}
        if found == whole:
            return f"{ends}{times}", None
        if not same:
            rows, columns = sorted({i for i, _ in found}), sorted({j for _, j in found})
            chosen = f"from: {_chosen(name, rows, m)}, to: {_chosen(other, columns, n)}"
            if len(found) == len(rows) * len(columns):
                return f"{chosen}{times}", None
            small = {(rows.index(i), columns.index(j)) for i, j in found}
            for word, partner in _SPREADS.items():
                large, least = sorted((len(rows), len(columns)), reverse=True)
                if large % least == 0 and small == partner(len(rows), len(columns)):
                    return f"{chosen}, join: {word}{times}", None
    return ends, [[pairs.get((i, j), 0) for j in range(n)] for i in range(m)]


def _blocks(m: int, n: int) -> set[tuple[int, int]]:
    small, large = min(m, n), max(m, n)
    found = {(x, x * small // large) for x in range(large)}
    return {(j, i) for i, j in found} if m < n else found


def _round_robin(m: int, n: int) -> set[tuple[int, int]]:
    small, large = min(m, n), max(m, n)
    found = {(x, x % small) for x in range(large)}
    return {(j, i) for i, j in found} if m < n else found


_SPREADS: Mapping[str, Callable[[int, int], set[tuple[int, int]]]] = {
    "blocks": _blocks,
    "round-robin": _round_robin,
}


def _chosen(name: str, members: Sequence[int], size: int) -> str:
    if len(members) == size:
        return name
    if len(members) == 1:
        return f"{name}{members[0]}"
    return f"[{', '.join(f'{name}{i}' for i in members)}]"


def _split(text: str) -> list[str]:
    """Return the keys of a flow mapping, one a line."""
    return text.split(", ")


def node_name(ref: Ref, box: int | None, sizes: Mapping[str, int]) -> str:
    """Return what the compact form calls a node of a box, or of the fabric."""
    group, number = ref
    if sizes[group] == 1 and group != "gpu":
        return group if box is None else f"{group}{box}"
    return f"{group}{number}" if box is None else f"{group}{box}.{number}"
