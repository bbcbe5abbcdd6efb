"""The writer refuses what a dialect cannot say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from colsynth.errors import DefectError
from colsynth.model import (
    Collective,
    Gpu,
    Header,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Wait,
)
from colsynth.runtimes import profile, write

HEADER = Header("fine", Collective.ALLGATHER, "Simple", 2, 2, 1, True, False, 1, 4096)
SEND = Step("s", Slot("i", 0), None, 1)


def _program(header=HEADER, step=SEND):
    return ThreadblockProgram(header, (Gpu(0, 1, 2, 0, (Threadblock(0, 1, None, 0, (step,)),)),))


@pytest.mark.parametrize(
    ("change", "runtime"),
    [
        ({"in_place": True, "out_of_place": True}, "msccl"),
        ({"in_place": False, "out_of_place": False}, "rccl"),
        ({"max_bytes": None}, "msccl"),
        ({"max_bytes": 0}, "rccl"),
        ({"min_bytes": 8192}, "rccl"),
        ({"min_bytes": -1}, "rccl"),
        ({"protocol": "simple"}, "rccl"),
        ({"name": 'a"b'}, "rccl"),
        ({"name": "grün"}, "rccl"),
        ({"name": "x" * 64}, "rccl"),
    ],
)
def test_headers(change, runtime):
    write(_program(), profile(runtime))
    with pytest.raises(DefectError, match="CS590"):
        write(_program(replace(HEADER, **change)), profile(runtime))


@pytest.mark.parametrize(
    "step",
    [
        structs.replace(SEND, source=None),
        structs.replace(SEND, source=None, target=Slot("o", 0)),
        structs.replace(SEND, source=Slot("x", 0)),
        structs.replace(SEND, waits=(Wait(0, 0), Wait(1, 0))),
        structs.replace(SEND, op="rcs", target=Slot("o", 0)),
        structs.replace(SEND, op="ra"),
        Step("cpy", Slot("i", 0), None, 1),
        Step("nop", None, None, 1, (Wait(0, 0),)),
        Step("nop", None, None, 0, (Wait(0, 0),), signals=True),
    ],
)
def test_steps(step):
    with pytest.raises(DefectError, match="CS590"):
        write(_program(step=step), profile("rccl"))
