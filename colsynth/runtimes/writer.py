"""Spells a threadblock program in one runtime's dialect; decides nothing."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Gpu, Header, Slot, Step, Threadblock, ThreadblockProgram
from colsynth.runtimes.header import NAME_LIMIT, PROTOCOLS
from colsynth.runtimes.profile import Profile

if TYPE_CHECKING:
    from lxml.etree import _Element

_Attributes = dict[str, str]

_READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re"})
_WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
_BUFFERS = frozenset("ios")
_FORBIDDEN_IN_NAME = frozenset("\"'<>&\n\r\t")


def write(program: ThreadblockProgram, profile: Profile) -> bytes:
    """Return the schedule file: ASCII, LF, two-space indent, one tag per line.

    Operands a step does not use are spelt like the one it uses.

    Raises
    ------
    DefectError
        CS590 when the program holds a value that the dialect cannot spell: both call
        modes or no upper bound where the runtime needs one, a step that waits for more
        than one other, an operand that is missing, a name that would need quoting.
    """
    from lxml.etree import xmlfile

    out = BytesIO()
    header = _header(program.header, profile)
    with xmlfile(out, encoding="utf-8") as file, file.element("algo", header):
        for gpu in program.gpus:  # one at a time: elements take kilobytes
            file.write("\n  ", _element(gpu, profile))
        file.write("\n")
    return out.getvalue() + b"\n"


def _header(header: Header, profile: Profile) -> _Attributes:
    values = {
        "name": _name(header.name),
        "proto": _protocol(header.protocol),
        "nchannels": str(header.channels),
        "nchunksperloop": str(header.chunks),
        "ngpus": str(header.ranks),
        "coll": _collective(header, profile),
        "minBytes": str(header.min_bytes),
        "maxBytes": str(_max_bytes(header, profile)),
        **_modes(header, profile),
    }
    return {key: values[key] for key in profile.attributes}


def _name(name: str) -> str:
    if not name.isascii() or _FORBIDDEN_IN_NAME & set(name) or len(name) > NAME_LIMIT:
        raise _defect(f"name {name!r} is not plain ASCII of at most {NAME_LIMIT} characters")
    return name


def _protocol(protocol: str) -> str:
    if protocol not in PROTOCOLS:
        raise _defect(f"no runtime knows protocol {protocol!r}")
    return protocol


def _collective(header: Header, profile: Profile) -> str:
    if header.collective not in profile.collectives:
        raise _defect(f"{profile.name} has no word for {header.collective}")
    return profile.collectives[header.collective]


def _modes(header: Header, profile: Profile) -> dict[str, str]:
    if not header.in_place and not header.out_of_place:
        raise _defect("the program serves neither in-place nor out-of-place calls")
    if header.in_place and header.out_of_place and not profile.both_modes:
        raise _defect(f"one file of {profile.name} cannot serve both call modes")
    return {
        "inplace": str(int(header.in_place)),
        "outofplace": str(int(header.out_of_place)),
    }


def _max_bytes(header: Header, profile: Profile) -> int:
    if header.min_bytes < 0:
        raise _defect(f"min_bytes is {header.min_bytes}")
    if header.max_bytes is None:
        if profile.exclusive_max:
            raise _defect(f"{profile.name} needs a finite upper bound of the message size")
        return 0
    if header.max_bytes < max(header.min_bytes, 1):
        raise _defect(f"max_bytes {header.max_bytes} is below min_bytes {header.min_bytes} or 1")
    return header.max_bytes + 1 if profile.exclusive_max else header.max_bytes


def _element(gpu: Gpu, profile: Profile) -> _Element:
    from lxml.etree import Element

    element = Element("gpu", _gpu(gpu))
    blocks = [_threadblock(threadblock, profile) for threadblock in gpu.threadblocks]
    element.extend(blocks)
    if blocks:
        element.text = "\n    "
        for block in blocks:
            block.tail = element.text
        blocks[-1].tail = "\n  "
    return element


def _gpu(gpu: Gpu) -> _Attributes:
    return {
        "id": str(gpu.rank),
        "i_chunks": str(gpu.input_chunks),
        "o_chunks": str(gpu.output_chunks),
        "s_chunks": str(gpu.scratch_chunks),
    }


def _threadblock(threadblock: Threadblock, profile: Profile) -> _Element:
    """Return the element of a threadblock, its steps indented.

    Steps are most of a file. lxml reads their text in a third of the time that it takes to set
    their attributes one by one. These are numbers and known words, so nothing is quoted.
    """
    from lxml.etree import XML

    steps = []
    for ordinal, step in enumerate(threadblock.steps):
        if step.op not in profile.ops:
            raise _defect(f"{profile.name} does not launch {step.op!r} steps")
        if step.folds:
            raise _defect("a step that adds the messages of several connections")
        (srcbuf, srcoff), (dstbuf, dstoff) = _nop(step) if step.op == "nop" else _operands(step)
        depid, deps = _wait(step) if step.waits else (-1, -1)
        steps.append(
            f'\n      <step s="{ordinal}" type="{step.op}" srcbuf="{srcbuf}" srcoff="{srcoff}"'
            f' dstbuf="{dstbuf}" dstoff="{dstoff}" cnt="{step.count}" depid="{depid}"'
            f' deps="{deps}" hasdep="{int(step.signals)}"/>'
        )
    send, recv = (-1 if n is None else n for n in (threadblock.send, threadblock.recv))
    own = f'id="{threadblock.id}" send="{send}" recv="{recv}" chan="{threadblock.channel}"'
    end = "\n    " if steps else ""
    return XML(f"<tb {own}>{''.join(steps)}{end}</tb>")


def _nop(step: Step) -> tuple[Slot, Slot]:
    if step.count or step.signals:
        raise _defect("a nop moves nothing and publishes nothing")
    return Slot("i", -1), Slot("o", -1)


def _operands(step: Step) -> tuple[Slot, Slot]:
    """Return both operands, the unused one equal to the used one."""
    source, target = step.source, step.target
    if source is None or target is None:
        missing = (step.op in _READS and source is None) or (step.op in _WRITES and target is None)
        source, target = source or target, target or source
        if missing or source is None or target is None:
            raise _defect(f"a {step.op!r} step lacks an operand")
    if source[0] not in _BUFFERS or target[0] not in _BUFFERS:
        raise _defect(f"no runtime has a buffer {source[0]!r} or {target[0]!r}")
    return source, target


def _wait(step: Step) -> tuple[int, int]:
    if len(step.waits) > 1:
        raise _defect(
            f"a {step.op!r} step waits for {len(step.waits)} others; a file can spell one"
        )
    return step.waits[0]


def _defect(phrase: str) -> DefectError:
    return DefectError(Diagnostic("CS590", f"the writer was handed what it cannot spell: {phrase}"))
