"""Spells a threadblock program in one runtime's dialect; decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from colsynth.errors import DefectError, Diagnostic
from colsynth.model import Gpu, Header, Step, StepTable, Threadblock, ThreadblockProgram
from colsynth.model.step_table import NONE
from colsynth.runtimes.header import NAME_LIMIT, PROTOCOLS
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.step_columns import KEYS, joined

if TYPE_CHECKING:
    import numpy as np
    from lxml.etree import _Element
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_Attributes = dict[str, str]

_READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re"})
_WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
_BUFFERS = frozenset("ios")
_STEP = (
    '\n      <step s="',
    *[f'" {key}="' for key in KEYS[1:]],
    '"/>',
)
"""The text between the values of a step."""
_PLACE = b"<steps/>"
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
    from lxml.etree import tostring

    _require_plain(program.steps, profile)
    steps = iter(_texts(program))
    first, *others = tostring(_algo(program, profile)).split(_PLACE)
    return b"".join([first, *(part for other in others for part in (next(steps), other)), b"\n"])


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


def _algo(program: ThreadblockProgram, profile: Profile) -> _Element:
    """Return the whole file, with `_PLACE` where the steps of a threadblock go."""
    from lxml.etree import Element, SubElement

    algo = Element("algo", _header(program.header, profile))
    for gpu in program.gpus:
        element = SubElement(algo, "gpu", _gpu(gpu))
        for threadblock in gpu.threadblocks:
            block = SubElement(element, "tb", _threadblock(threadblock))
            if threadblock.steps:
                SubElement(block, "steps").tail = "\n    "
        _indent(element, "\n  ")
    _indent(algo, "\n")
    return algo


def _indent(parent: _Element, outer: str) -> None:
    """Put every child of an element on a line of its own."""
    if len(parent):
        parent.text = outer + "  "
        for child in parent:
            child.tail = parent.text
        parent[-1].tail = outer


def _gpu(gpu: Gpu) -> _Attributes:
    return {
        "id": str(gpu.rank),
        "i_chunks": str(gpu.input_chunks),
        "o_chunks": str(gpu.output_chunks),
        "s_chunks": str(gpu.scratch_chunks),
    }


def _threadblock(threadblock: Threadblock) -> _Attributes:
    peers = threadblock.send, threadblock.recv
    numbers = threadblock.id, *(-1 if n is None else n for n in peers), threadblock.channel
    return dict(zip(("id", "send", "recv", "chan"), map(str, numbers), strict=True))


def _texts(program: ThreadblockProgram) -> Iterator[bytes]:
    """Yield the text of the steps of each threadblock that has any.

    Steps are most of a file. They are numbers and known words, so nothing is quoted.
    """
    import numpy as np

    from colsynth.kernels.records import spell

    steps, lengths = program.steps, program.lengths
    text, ends = joined(_STEP)
    names, name_ends = joined((*steps.words, *steps.buffers))
    first, last = len(steps.words), len(steps.words) + len(steps.buffers)
    chosen = {"type": (0, first), "srcbuf": (first, last), "dstbuf": (first, last)}
    choices = np.array([chosen.get(key, (0, 0)) for key in KEYS])
    found, begin = spell(text, ends, names, name_ends, choices, _values(steps, lengths))
    data, rows = found.tobytes(), np.concatenate([[0], np.cumsum(lengths)])
    for a, b in pairwise(begin[rows].tolist()):
        if a < b:
            yield data[a:b]


def _values(steps: StepTable, lengths: Ints) -> Ints:
    """Return the values of `KEYS`, one column per step."""
    import numpy as np

    ordinal = np.arange(len(steps)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    source, target = steps.source.copy(), steps.target.copy()
    for one, other in ((source, target), (target, source)):
        absent = one[0] == NONE
        one[:, absent] = other[:, absent]
    nop = steps.among({"nop"})
    source[:, nop] = np.array([[steps.buffers.index("i")], [-1]])
    target[:, nop] = np.array([[steps.buffers.index("o")], [-1]])
    waits = np.full((2, len(steps)), -1)
    waits[:, steps.waits > 0] = steps.wait_block, steps.wait_step
    operands = *source, *target
    return np.stack([ordinal, steps.op, *operands, steps.count, *waits, steps.signals])


def _require_plain(steps: StepTable, profile: Profile) -> None:
    """Refuse a program with a step that the dialect cannot spell (CS590)."""
    import numpy as np

    buffers = steps.source[0], steps.target[0]
    absent = [letters == NONE for letters in buffers]
    strange = [letters > steps.buffers.index("s") for letters in buffers]
    nop = steps.among({"nop"})
    odd = ~steps.among(profile.ops) | (steps.waits > 1)
    odd |= nop & ((steps.count != 0) | (steps.signals != 0))
    odd |= ~nop & (strange[0] | strange[1] | (absent[0] & absent[1]))
    odd |= (steps.among(_READS) & absent[0]) | (steps.among(_WRITES) & absent[1])
    odd[list(steps.folds)] = True
    for row in np.flatnonzero(odd).tolist():
        raise _refusal(steps.steps(row, row + 1)[0], profile)


def _refusal(step: Step, profile: Profile) -> DefectError:
    """Return why a step cannot be spelt."""
    if step.op not in profile.ops:
        return _defect(f"{profile.name} does not launch {step.op!r} steps")
    if step.folds:
        return _defect("a step that adds the messages of several connections")
    if len(step.waits) > 1:
        text = f"a {step.op!r} step waits for {len(step.waits)} others; a file can spell one"
        return _defect(text)
    if step.op == "nop":
        return _defect("a nop moves nothing and publishes nothing")
    letters = {slot.buffer for slot in (step.source, step.target) if slot is not None}
    if letters <= _BUFFERS:
        return _defect(f"a {step.op!r} step lacks an operand")
    return _defect(f"no runtime has a buffer {min(letters - _BUFFERS)!r}")


def _defect(phrase: str) -> DefectError:
    return DefectError(Diagnostic("CS590", f"the writer was handed what it cannot spell: {phrase}"))
