"""From files of a machine and its fabric to the text of a topology file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Topology
from colsynth.text import listed
from colsynth.topology.importers.cluster import repeated
from colsynth.topology.importers.fabric import Fabric
from colsynth.topology.importers.formats import Found, detect
from colsynth.topology.importers.layout import Wishes, layout
from colsynth.topology.importers.machine import Machine, Source
from colsynth.topology.importers.nvidia_smi import Products, with_products
from colsynth.topology.importers.plan import Plan
from colsynth.topology.importers.write import write
from colsynth.topology.load import load


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked beside the files.

    Parameters
    ----------
    boxes : int or None
    wishes : Wishes
    strict : bool
        Whether the first warning is an error.
    """

    boxes: int | None = None
    wishes: Wishes = field(default_factory=Wishes)
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """A topology file, and what is odd about its sources.

    Parameters
    ----------
    text : str
    topology : Topology
        What the text describes.
    formats : tuple of str
        Of the files, in their order.
    warnings : tuple of Diagnostic
        Their codes begin with W.
    """

    text: str
    topology: Topology
    formats: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]


def decoded(data: bytes, file: str) -> Source:
    """Return the text of a file; raise CS150 where it is none."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()  # how some shells of Windows redirect
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data[: fault.start].count(b"\n") + 1
        note = f"byte 0x{data[fault.start]:02X} is no UTF-8"
        at = Source(file, "").span(line)
        raise InputError(Diagnostic("CS150", "the file is no text", at, (note,))) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        at = Source(file, text).find("\0")
        raise InputError(Diagnostic("CS150", "the file is no text", at, ("it holds a zero byte",)))
    return Source(file, text)


def import_topology(files: Sequence[tuple[str, bytes]], request: Request) -> Imported:
    """Return the topology that files of a machine describe.

    Parameters
    ----------
    files : sequence of (str, bytes)
        What diagnostics call each file, and its content.
    request : Request

    Raises
    ------
    InputError
        A file has no known format (CS150), cannot be understood (CS152), lacks something (CS153),
        or does not fit the others (CS155); with `strict`, the first warning.
    """
    sources = [decoded(data, file) for file, data in files]
    formats = [detect(source) for source in sources]
    found = [known.parse(source) for known, source in zip(formats, sources, strict=True)]
    name = _name(sources[0].file)
    plan, warnings = _plan(name, found, request)
    warnings = gathered(warnings)
    if request.strict and warnings:
        raise InputError(warnings[0])
    text = write(plan)
    topology = load(f"the topology of {name}", data=text.encode())
    return Imported(text, topology, tuple(known.name for known in formats), tuple(warnings))


def gathered(warnings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return one warning for each code; its notes count the others and name their lines."""
    first: dict[str, Diagnostic] = {}
    more: dict[str, list[str]] = {}
    for one in warnings:
        if one.code in first:
            more.setdefault(one.code, []).append(str(one.span.line if one.span else "?"))
        first.setdefault(one.code, one)
    return [
        replace(one, notes=(*one.notes, f"{len(more[code])} more, at lines {listed(more[code])}"))
        if code in more
        else one
        for code, one in first.items()
    ]


def _plan(name: str, found: Sequence[Found], request: Request) -> tuple[Plan, Sequence[Diagnostic]]:
    machines = [x for x in found if isinstance(x, Machine)]
    if len(machines) > 1:
        phrase = f"{machines[0].file} and {machines[1].file} both describe a machine"
        raise InputError(Diagnostic("CS155", phrase, help="import one at a time"))
    machine = machines[0]
    for listing in found:
        if isinstance(listing, Products):
            machine = with_products(machine, listing)
    box = layout(machine, request.wishes)
    return repeated(name, box, request.boxes or 1), box.warnings


def _name(file: str) -> str:
    """Return a name for a topology: that of its file without the endings."""
    stem = Path(file).name.partition(".")[0]
    words = re.findall(r"[A-Za-z0-9]+", stem)
    return "-".join(words) if words and file != "<stdin>" else "imported"


__all__ = ["Fabric", "Imported", "Request", "import_topology"]
