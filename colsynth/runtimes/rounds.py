"""Files of rounds, for `colsynth.torch`: JSON, one file for all ranks, one line per round."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from colsynth.model import (
    Collective,
    Header,
    LocalStep,
    Message,
    Round,
    RoundProgram,
    Slot,
)
from colsynth.reading import in_form, parse_json
from colsynth.runtimes.kinds import written_for
from colsynth.runtimes.reader import Reading
from colsynth.runtimes.rules import Findings

if TYPE_CHECKING:
    from colsynth.runtimes.profile import Profile

FORMAT, VERSION = "colsynth rounds", 1
_Message = tuple[int, int, str, int, str, int, int]
_Step = tuple[int, str, int, str, int, str | None, int | None, int]
_ROUNDS = list[tuple[list[_Message], list[_Step]]]
"""Messages as (source, target, read, write, count), steps as (rank, read, write, operand, count).

A slot is its buffer and its offset.
"""
_HEAD: dict[str, Any] = {
    "name": str,
    "collective": Collective,
    "root": int | None,
    "ranks": int,
    "chunks": int,
    "in_place": bool,
    "out_of_place": bool,
    "min_bytes": int,
    "max_bytes": int | None,
}
"""The header's fields, in the order of the file, by type."""


def write_rounds(program: RoundProgram) -> bytes:
    """Return the file of a program; equal programs give equal bytes."""
    head = {name: getattr(program.header, name) for name in _HEAD}
    head = {"format": FORMAT, "version": VERSION, **head, "scratch": program.scratch}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    rows = ",\n".join(json.dumps(_plain(found), separators=(",", ":")) for found in program.rounds)
    lines.append(f'"rounds": [\n{rows}\n]')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _plain(found: Round) -> list[list[Any]]:
    messages = [(m.source, m.target, *m.read, *m.write, m.count) for m in found.messages]
    steps = [
        (s.rank, *s.read, *s.write, *(s.operand or (None, None)), s.count) for s in found.local
    ]
    return [messages, steps]


def read_rounds(data: bytes, profile: Profile) -> Reading:
    """Read a file; where it is none, the first fault is reported (N01)."""
    findings = Findings(profile.name)
    try:
        program = parse_rounds(data)
    except ValueError as fault:
        is_xml = written_for(data) == "xml"
        findings.add("N01", "the file is XML, for another runtime" if is_xml else str(fault))
        return Reading(None, findings.all())
    return Reading(program, ())


def parse_rounds(data: bytes) -> RoundProgram:
    """Return the program of a file.

    Raises
    ------
    ValueError
        The bytes are no file of rounds.
    """
    entries = parse_json(data, dict[str, Any])
    if (entries.get("format"), entries.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"the file does not say that it is '{FORMAT}', version {VERSION}")
    missing = [name for name in (*_HEAD, "scratch", "rounds") if name not in entries]
    if missing:
        raise ValueError(f"there is no {missing[0]!r}")
    head = {name: in_form(entries[name], form) for name, form in _HEAD.items()}
    found = in_form(entries["rounds"], _ROUNDS)
    rounds = (Round(tuple(map(_message, some)), tuple(map(_step, rest))) for some, rest in found)
    return RoundProgram(
        Header(protocol="Simple", channels=1, **head),
        tuple(in_form(entries["scratch"], list[int])),
        tuple(rounds),
    )


def _message(row: _Message) -> Message:
    source, target, read, at, write, to, count = row
    return Message(source, target, Slot(read, at), Slot(write, to), count)


def _step(row: _Step) -> LocalStep:
    rank, read, at, write, to, operand, place, count = row
    if (operand is None) != (place is None):
        text = f"the local step {json.dumps(row)} has half an operand"
        raise ValueError(f"{text}: give its buffer and its offset, or null for both")
    added = None if operand is None or place is None else Slot(operand, place)
    return LocalStep(rank, Slot(read, at), Slot(write, to), added, count)
