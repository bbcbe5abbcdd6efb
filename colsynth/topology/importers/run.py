"""From files of a machine and its fabric to the text of a topology file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from colsynth.errors import ColsynthError, Diagnostic, InputError
from colsynth.model import Topology
from colsynth.reading import as_utf8
from colsynth.text import listed
from colsynth.topology.importers.cluster import repeated
from colsynth.topology.importers.existing import Ready, box_of
from colsynth.topology.importers.fabric import Fabric
from colsynth.topology.importers.formats import Found, detect
from colsynth.topology.importers.hostlist import read_hosts
from colsynth.topology.importers.joined import Choice, joined
from colsynth.topology.importers.layout import layout
from colsynth.topology.importers.machine import Machine, Source
from colsynth.topology.importers.nvidia_gpus import Products, with_products
from colsynth.topology.importers.nvidia_smi import with_switches
from colsynth.topology.importers.plan import Box, Plan
from colsynth.topology.importers.speeds import Wishes
from colsynth.topology.importers.write import write
from colsynth.topology.load import load

File = tuple[str, bytes]
"""What diagnostics call a file, and its content."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked beside the files.

    Parameters
    ----------
    boxes : int or None
    wishes : Wishes
    fabric, hosts : (str, bytes) or None
    box : str or (str, bytes) or None
        A preset, or a file.
    oversubscription : Fraction
        Of uplinks whose bandwidth no file tells.
    strict : bool
        Whether the first warning is an error.
    """

    boxes: int | None = None
    wishes: Wishes = field(default_factory=Wishes)
    fabric: File | None = None
    hosts: File | None = None
    box: str | File | None = None
    oversubscription: Fraction = Fraction(1)
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


_FIGURES = re.compile(r"[0-9.]+")
"""Warnings whose notes differ in figures alone are of one kind."""


def decoded(data: bytes, file: str) -> Source:
    """Return the text of a file; raise CS150 where it is none."""
    data = as_utf8(data)
    try:
        text = data.decode()
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


def import_topology(files: Sequence[File], request: Request) -> Imported:
    """Return the topology that files describe.

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
    every = [*files, *([request.fabric] if request.fabric else [])]
    sources = [decoded(data, file) for file, data in every]
    formats = [detect(source) for source in sources]
    found = [known.parse(source) for known, source in zip(formats, sources, strict=True)]
    name = _name(sources[0].file)
    plan, warnings = _plan(name, found, request)
    warnings = gathered(warnings)
    if request.strict and warnings:
        raise InputError(warnings[0])
    if isinstance(plan, Ready):
        text, topology = plan.text, load(plan.file, data=plan.text.encode())
    else:
        text = write(plan)
        topology = _checked(text, name, [source.file for source in sources])
    return Imported(text, topology, tuple(known.name for known in formats), tuple(warnings))


def _checked(text: str, name: str, files: Sequence[str]) -> Topology:
    """Return the topology of a text that nobody has seen, so diagnostics name no place in it."""
    try:
        return load(f"the topology of {name}", data=text.encode())
    except ColsynthError as fault:
        told = fault.diagnostic
        note = f"{listed(list(files))} says so, as far as it was understood; nothing was written"
        raise type(fault)(replace(told, span=None, notes=(*told.notes, note))) from fault


def gathered(warnings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return one warning for each code and kind of note; a note counts the others."""
    alike: dict[tuple[str, ...], list[Diagnostic]] = {}
    for one in warnings:
        kinds = (_FIGURES.sub("", note.partition(":")[0]) for note in one.notes)
        alike.setdefault((one.code, *kinds), []).append(one)
    return [_with_the_others(*group) for group in alike.values()]


def _with_the_others(first: Diagnostic, *more: Diagnostic) -> Diagnostic:
    """Return a warning with a note that names the lines of others like it."""
    if not more:
        return first
    places = dict.fromkeys(str(one.span.line if one.span else "?") for one in more)
    note = f"{len(more)} more, at {'lines' if len(places) > 1 else 'line'} {listed(list(places))}"
    return replace(first, notes=(*first.notes, note))


def _plan(
    name: str, found: Sequence[Found], request: Request
) -> tuple[Plan | Ready, Sequence[Diagnostic]]:
    """Return the plan of a cluster, or a topology file that is one already."""
    fabrics = [x for x in found if isinstance(x, Fabric)]
    whole = [x for x in found if isinstance(x, Plan | Ready)]
    described = _only([x for x in found if isinstance(x, Machine | Plan | Ready | Box)], "machine")
    one = described if isinstance(described, Machine) else None
    fabric = _only(fabrics, "fabric")
    if whole and fabric is None and one is None:
        _refuse_idle(request, machine=False, fabric=None, whole=True)
        first = whole[0]
        if len(found) == 1:
            if isinstance(first, Plan):
                return replace(first, name=name), first.warnings
            return first, ()
    box_file = request.box is not None and not isinstance(request.box, str)
    _refuse_idle(request, machine=one is not None or box_file, fabric=fabric, whole=False)
    hosts: tuple[str, ...] = ()
    if request.hosts is not None:
        file, data = request.hosts
        hosts = tuple(host.name for host in read_hosts(decoded(data, file)))
    box = _box(found, one, request)
    if box is None and fabric is None:
        phrase = "the file names GPUs, and neither links nor switches"
        advice = "import the output of nvidia-smi topo -m too"
        raise InputError(Diagnostic("CS153", phrase, help=advice))
    if box is None:
        phrase = "the file tells of switches and hosts, not of the box that each host is"
        advice = "give --box, a preset such as dgx-h100 or a dump of a node"
        raise InputError(Diagnostic("CS153", phrase, help=advice))
    if fabric is None:
        count = request.boxes or len(hosts) or box.count
        if hosts and count != len(hosts):
            phrase = f"--boxes {count}, but {len(hosts)} hosts"
            raise InputError(Diagnostic("CS155", phrase))
        return repeated(name, box, count, hosts), box.warnings
    choice = Choice(hosts, request.boxes, request.oversubscription)
    plan, doubts = joined(name, box, fabric, choice)
    return plan, (*box.warnings, *fabric.warnings, *doubts)


def _box(found: Sequence[Found], machine: Machine | None, request: Request) -> Box | None:
    """Return the box that the files or ``--box`` describe."""
    ready = next((x for x in found if isinstance(x, Ready)), None)
    box = next((x for x in found if isinstance(x, Box)), None)
    if request.box is not None:
        if machine is not None or ready is not None or box is not None:
            phrase = "--box, and a file that describes the box"
            raise InputError(Diagnostic("CS155", phrase, help="give one of them"))
        if isinstance(request.box, str):
            return box_of(request.box)
        source = decoded(request.box[1], request.box[0])
        value = detect(source).parse(source)
        machine = value if isinstance(value, Machine) else None
        ready = value if isinstance(value, Ready) else None
        box = value if isinstance(value, Box) else None
        if machine is None and ready is None and box is None:
            phrase = f"{source.file} describes no box"
            raise InputError(Diagnostic("CS155", phrase, source.span(1)))
    if machine is not None:
        for listing in found:
            if isinstance(listing, Products):
                machine = with_products(machine, listing)
        return layout(with_switches(machine, request.wishes.gpu), request.wishes)
    return box if ready is None else box_of(ready.file, ready.text.encode())


def _only(values: Sequence[Any], what: str) -> Any:
    if len(values) > 1:
        phrase = f"two files describe a {what}"
        files = [value.file for value in values if hasattr(value, "file")]
        raise InputError(
            Diagnostic("CS155", phrase, notes=tuple(files), help="import one at a time")
        )
    return values[0] if values else None


def _refuse_idle(request: Request, machine: bool, fabric: Fabric | None, whole: bool) -> None:
    """Refuse options that nothing obeys (CS155).

    Parameters
    ----------
    request : Request
    machine : bool
        Whether the box comes from what a machine printed.
    fabric : Fabric or None
    whole : bool
        Whether a file describes a whole topology, which is taken as it is.
    """
    wishes = request.wishes
    tapered = fabric is not None and not any(cable.rate for cable in fabric.cables)
    idle = {
        "--boxes": whole and request.boxes is not None,
        "--hosts": whole and request.hosts is not None,
        "--box": whole and request.box is not None,
        "--gpu": not machine and wishes.gpu != "",
        "--nic-bandwidth": not machine and wishes.nic_rate is not None,
        "--link-bandwidth": not machine and wishes.basis != "spec",
        "--oversubscription": not tapered and request.oversubscription != 1,
    }
    for option, given in idle.items():
        if given:
            phrase = f"nothing in these files obeys {option}"
            note = (
                "a topology file and a preset have numbers of their own; fabrics too, but Slurm's"
            )
            advice = "leave it out, or edit the numbers in the topology file"
            raise InputError(Diagnostic("CS155", phrase, notes=(note,), help=advice))


def _name(file: str) -> str:
    """Return a name for a topology: that of its file without the endings."""
    stem = Path(file).name.partition(".")[0]
    words = re.findall(r"[A-Za-z0-9]+", stem)
    return "-".join(words) if words and file != "<stdin>" else "imported"
