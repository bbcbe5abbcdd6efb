"""Spells a threadblock program in one runtime's dialect; decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Gpu, Header, Slot, Step, Threadblock, ThreadblockProgram
from colsynth.runtimes.header import NAME_LIMIT, PROTOCOLS
from colsynth.runtimes.profile import Profile

_Attributes = Mapping[str, str | int]

_READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re"})
_WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
_BUFFERS = frozenset("ios")
_FORBIDDEN_IN_NAME = frozenset("\"'<>&\n\r\t")


def write(program: ThreadblockProgram, profile: Profile) -> bytes:
    """Return the schedule file: ASCII, LF, two-space indent, one tag per line.

    Values are integers and words without special characters, so they are put into lines as they
    are: an eighth of the time that a tree of lxml takes, which was a quarter of a compilation for
    64 GPUs. Operands a step does not use are spelt like the one it uses.

    Raises
    ------
    DefectError
        CS590 when the program holds a value that the dialect cannot spell: both call
        modes or no upper bound where the runtime needs one, a step that waits for more
        than one other, an operand that is missing, a name that would need quoting.
    """
    lines = [_open("algo", _header(program.header, profile))]
    for gpu in program.gpus:
        lines += _gpu(gpu, profile)
    lines.append("</algo>\n")
    return "".join(lines).encode("ascii")


def _open(tag: str, values: _Attributes, end: str = ">") -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in values.items())
    return f"<{tag}{attributes}{end}\n"


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


def _gpu(gpu: Gpu, profile: Profile) -> Iterator[str]:
    values = {
        "id": gpu.rank,
        "i_chunks": gpu.input_chunks,
        "o_chunks": gpu.output_chunks,
        "s_chunks": gpu.scratch_chunks,
    }
    yield "  " + _open("gpu", values, ">" if gpu.threadblocks else "/>")
    for threadblock in gpu.threadblocks:
        yield from _threadblock(threadblock, profile)
    if gpu.threadblocks:
        yield "  </gpu>\n"


def _threadblock(threadblock: Threadblock, profile: Profile) -> Iterator[str]:
    values = {
        "id": threadblock.id,
        "send": -1 if threadblock.send is None else threadblock.send,
        "recv": -1 if threadblock.recv is None else threadblock.recv,
        "chan": threadblock.channel,
    }
    yield "    " + _open("tb", values, ">" if threadblock.steps else "/>")
    for ordinal, step in enumerate(threadblock.steps):
        if step.op not in profile.ops:
            raise _defect(f"{profile.name} does not launch {step.op!r} steps")
        yield _step(ordinal, step)
    if threadblock.steps:
        yield "    </tb>\n"


def _step(ordinal: int, step: Step) -> str:
    op, source, target, count = step.op, step.source, step.target, step.count
    if op == "nop":
        if count or step.signals:
            raise _defect("a nop moves nothing and publishes nothing")
        source, target = Slot("i", -1), Slot("o", -1)
    elif source is None or target is None:
        source, target = _operands(step)
    (read, at), (written, to) = source, target
    if read not in _BUFFERS or written not in _BUFFERS:
        raise _defect(f"no runtime has a buffer {read!r} or {written!r}")
    if step.folds:
        raise _defect("a step that adds the messages of several connections")
    depid, deps = _wait(step)
    return (
        f'      <step s="{ordinal}" type="{op}" srcbuf="{read}" srcoff="{at}" '
        f'dstbuf="{written}" dstoff="{to}" cnt="{count}" depid="{depid}" deps="{deps}" '
        f'hasdep="{int(step.signals)}"/>\n'
    )


def _operands(step: Step) -> tuple[Slot, Slot]:
    """Return both operands, the unused one equal to the used one."""
    missing = (step.op in _READS and step.source is None) or (
        step.op in _WRITES and step.target is None
    )
    source, target = step.source or step.target, step.target or step.source
    if missing or source is None or target is None:
        raise _defect(f"a {step.op!r} step lacks an operand")
    return source, target


def _wait(step: Step) -> tuple[int, int]:
    if not step.waits:
        return -1, -1
    if len(step.waits) > 1:
        raise _defect(
            f"a {step.op!r} step waits for {len(step.waits)} others; a file can spell one"
        )
    return step.waits[0]


def _defect(phrase: str) -> DefectError:
    return DefectError(Diagnostic("CS590", f"the writer was handed what it cannot spell: {phrase}"))
