"""Plan -> YAML: compact where all boxes are attached alike, else flat; with all sources."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction

from colsynth.text import listed, printable
from colsynth.topology.importers.plan import Group, Plan, Rate, Ref, Wire
from colsynth.topology.importers.rules import node_name, rules
from colsynth.topology.scalars import plain_scalar
from colsynth.topology.schema import VERSION
from colsynth.units import neat_bandwidth, spell_duration

_WIDTH = 100
_SHOWN = 64
"""Nodes whose origin a comment names before it counts the rest."""


def write(plan: Plan) -> str:
    """Return the YAML of a topology."""
    alike = len(set(plan.uplinks)) == 1
    body = _compact(plan) if alike and plan.boxed else _flat(plan)
    return "\n".join(body) + "\n"


def _head(plan: Plan) -> list[str]:
    lines = [f"version: {VERSION}", f"name: {quoted(plan.name)}"]
    if plan.title:
        lines.append(f"title: {quoted(plan.title)}")
    lines.append("")
    return [*lines, *(line for note in plan.notes for line in _comment(note))]


def _comment(text: str, indent: int = 0) -> list[str]:
    """Return the lines of a comment; what came from outside cannot end it."""
    start = f"{' ' * indent}# "
    plain = printable(" ".join(text.split()))
    return textwrap.wrap(
        plain[:1].upper() + plain[1:],
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_on_hyphens=False,
    )


def quoted(text: str) -> str:
    """Return a text as a YAML scalar: as it is where that is safe."""
    plain = printable(" ".join(text.split()))
    if re.fullmatch(r"[A-Za-z0-9][\w .,()/+-]*", plain, re.ASCII) and _is_word(plain):
        return plain
    return "'" + plain.replace("'", "''") + "'"


def _is_word(text: str) -> bool:
    try:
        return plain_scalar(text) == text
    except ValueError:
        return False


def _speed(rate: Rate) -> str:
    return rate.text or neat_bandwidth(rate.bandwidth)


def _names(rates: Iterable[Rate]) -> dict[Rate, str]:
    """Return the name of the parameter of each bandwidth: its own, and a number if it is taken."""
    names: dict[Rate, str] = {}
    for rate in rates:
        same = sum(other.name == rate.name for other in names)
        names[rate] = f"{rate.name}-{same + 1}" if same else rate.name
    return names


def _delays(rates: Iterable[Rate]) -> dict[tuple[str, Fraction], str]:
    """Return the name of the parameter of each latency, by kind of link and seconds."""
    names: dict[tuple[str, Fraction], str] = {}
    for rate in rates:
        key = rate.kind, rate.latency
        if rate.latency and key not in names:
            same = sum(kind == rate.kind for kind, _ in names)
            names[key] = f"{rate.kind}-latency" + (f"-{same + 1}" if same else "")
    return names


def _compact(plan: Plan) -> list[str]:
    wires = [*plan.box.wires, *plan.uplinks[0], *plan.fabric.wires]
    rates = list(dict.fromkeys(wire.rate for wire in wires))
    delays, names = _delays(rates), _names(rates)

    def spell(rate: Rate) -> str:
        text = f"bandwidth: ${names[rate]}"
        delay = delays.get((rate.kind, rate.latency))
        return f"{text}, latency: ${delay}" if delay else text

    lines = [*_head(plan), "# All figures are per direction.", "parameters:"]
    for rate in rates:
        lines += [*_comment(rate.source, 2), f"  {names[rate]}: {_speed(rate)}"]
    for (kind, latency), name in delays.items():
        source = next(r.latency_source for r in rates if (r.kind, r.latency) == (kind, latency))
        lines += [*_comment(source, 2), f"  {name}: {spell_duration(latency)}"]
    lines += ["", f"boxes: {len(plan.hosts)}"]
    if any(plan.hosts):
        lines += _comment(f"Boxes, in order: {listed(plan.hosts, _SHOWN)}.")
    lines += ["box:", *_groups(plan.box.groups)]
    lines += _rules(rules(plan.box.wires, plan.box.groups, spell))
    if plan.fabric.groups:
        every = [*plan.box.groups, *plan.fabric.groups]
        lines += ["fabric:", *_groups(plan.fabric.groups)]
        lines += _rules(rules([*plan.uplinks[0], *plan.fabric.wires], every, spell))
    return lines


def _groups(groups: Sequence[Group]) -> list[str]:
    lines = ["  nodes:"]
    for group in groups:
        lines += _comment(_origin(group), 4)
        count = len(group.members)
        number = f", count: {count}" if count > 1 or group.kind == "gpu" else ""
        powers = f", capabilities: [{', '.join(group.capabilities)}]" if group.capabilities else ""
        lines.append(f"    - {{name: {group.name}, kind: {group.kind}{number}{powers}}}")
    return lines


def _origin(group: Group) -> str:
    """Return what a comment says of a group: its source, and what each node is called there."""
    if not any(group.members):
        return group.note
    one = len(group.members) == 1
    named = [
        f"{group.name}{'' if one else i} is {name}" for i, name in enumerate(group.members) if name
    ]
    return f"{group.note} {listed(named, _SHOWN)}.".strip()


def _rules(lines: list[str]) -> list[str]:
    found = []
    for line in lines:
        if line.startswith("# "):
            found += _comment(f"{line[2:3].upper()}{line[3:]}.", 4)
        else:
            found.append(f"    {line}")
    return ["  links:", *found] if found else []


def _flat(plan: Plan) -> list[str]:
    """Return every node and link; comments stand above the nodes and links of each box."""
    sizes = {x.name: len(x.members) for x in (*plan.box.groups, *plan.fabric.groups)}
    lines = [*_head(plan), "# All figures are per direction."]
    wires = [*plan.box.wires, *(x for row in plan.uplinks for x in row), *plan.fabric.wires]
    for rate in dict.fromkeys(wire.rate for wire in wires):
        text = f"{rate.name}, {_speed(rate)}: {rate.source}."
        delay = f" Latency {spell_duration(rate.latency)}: {rate.latency_source}."
        lines += _comment(text + (delay if rate.latency else ""))
    lines += ["nodes:"]
    for group in plan.box.groups:
        lines += _comment(f"{group.name}: {_origin(group)}", 2)
    for box, host in enumerate(plan.hosts):
        number = box if plan.boxed else None
        if host:
            lines += _comment(f"Box {box} is {host}.", 2)
        lines += _flat_nodes(plan.box.groups, number, sizes, dict(plan.places))
    for group in plan.fabric.groups:
        lines += _comment(_origin(group), 2)
    lines += _flat_nodes(plan.fabric.groups, None, sizes, {})
    lines += ["links:"]
    for box, uplinks in enumerate(plan.uplinks):
        number = box if plan.boxed else None
        if plan.hosts[box]:
            lines += _comment(f"Of box {box}, {plan.hosts[box]}.", 2)
        lines += [_flat_link(x, number, plan, sizes) for x in (*plan.box.wires, *uplinks)]
    lines += _flat_fabric(plan, sizes)
    return lines


def _flat_fabric(plan: Plan, sizes: dict[str, int]) -> list[str]:
    found: list[str] = []
    for note in dict.fromkeys(wire.note for wire in plan.fabric.wires):
        found += _comment(note, 2) if note else []
        same = [wire for wire in plan.fabric.wires if wire.note == note]
        found += [_flat_link(wire, None, plan, sizes) for wire in same]
    return found


def _flat_nodes(
    groups: Sequence[Group], box: int | None, sizes: dict[str, int], places: dict[Ref, int]
) -> list[str]:
    found = []
    for group in groups:
        powers = f", capabilities: [{', '.join(group.capabilities)}]" if group.capabilities else ""
        for i in range(len(group.members)):
            number = places.get((group.name, i), box)
            place = "" if number is None else f", box: {number}"
            name = node_name((group.name, i), box, sizes)
            found.append(f"  - {{name: {name}, kind: {group.kind}{place}{powers}}}")
    return found


def _flat_link(wire: Wire, box: int | None, plan: Plan, sizes: dict[str, int]) -> str:
    inside = {group.name for group in plan.box.groups}
    ends = [
        node_name(ref, box if ref[0] in inside else None, sizes)
        for ref in (wire.source, wire.target)
    ]
    text = f"from: {ends[0]}, to: {ends[1]}, bandwidth: {_speed(wire.rate)}"
    if wire.rate.latency:
        text += f", latency: {spell_duration(wire.rate.latency)}"
    if wire.count > 1:
        text += f", count: {wire.count}"
    if wire.one_way:
        text += ", one-way: true"
    return f"  - {{{text}}}"
