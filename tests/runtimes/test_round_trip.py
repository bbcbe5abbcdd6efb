"""What is written is read back as it was, and is XML for others too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

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
from colsynth.runtimes import profile, profiles, read, write

NAMES = st.text(st.sampled_from("abcXYZ0189 ()-_,."), min_size=1, max_size=63)
SLOTS = st.builds(Slot, st.sampled_from("ios"), st.integers(-1, 32767))
WAITS = st.one_of(
    st.just(()),
    st.builds(lambda b, k: (Wait(b, k),), st.integers(0, 127), st.integers(0, 255)),
)


def _steps(ops):
    real = st.builds(
        Step,
        op=st.sampled_from([op for op in ops if op != "nop"]),
        source=SLOTS,
        target=SLOTS,
        count=st.integers(0, 71),
        waits=WAITS,
        signals=st.booleans(),
    )
    nop = st.builds(
        Step, st.just("nop"), st.just(Slot("i", -1)), st.just(Slot("o", -1)), st.just(0), WAITS
    )
    return st.one_of(real, nop)


@st.composite
def programs(draw, runtime):
    """Any program that the dialect can spell; most make no sense."""
    least = draw(st.integers(0, 2**40))
    most = least + draw(st.integers(1, 2**40))
    modes = [(True, False), (False, True)] + [(True, True)] * runtime.both_modes
    in_place, out_of_place = draw(st.sampled_from(modes))
    ranks = draw(st.integers(1, 3))
    header = Header(
        name=draw(NAMES),
        collective=draw(st.sampled_from(list(runtime.collectives))),
        protocol=draw(st.sampled_from(["Simple", "LL", "LL128"])),
        ranks=ranks,
        chunks=draw(st.integers(1, 5000)),
        channels=draw(st.integers(1, 32)),
        in_place=in_place,
        out_of_place=out_of_place,
        min_bytes=least,
        max_bytes=most if runtime.exclusive_max else draw(st.sampled_from([most, None])),
    )
    peers = st.one_of(st.none(), st.integers(0, 9))
    gpus = []
    for rank in range(ranks):
        sizes = draw(st.tuples(*[st.integers(0, 5000)] * 3))
        blocks = tuple(
            Threadblock(
                number,
                draw(peers),
                draw(peers),
                draw(st.integers(0, 31)),
                tuple(draw(st.lists(_steps(runtime.ops), max_size=4))),
            )
            for number in range(draw(st.integers(0, 3)))
        )
        gpus.append(Gpu(rank, *sizes, blocks))
    return ThreadblockProgram(header, tuple(gpus))


@pytest.mark.parametrize("name", [p.name for p in profiles() if p.xml])
def test_programs_survive(name):
    runtime = profile(name)

    @settings(max_examples=60, deadline=None)
    @given(programs(runtime))
    def check(program):
        data = write(program, runtime)
        reading = read(data, runtime, file="written")
        assert reading.program == program
        assert write(reading.program, runtime) == data
        rules = {finding.rule for finding in reading.findings}
        assert not any(rule.startswith(("X", "S")) for rule in rules)

    check()


@settings(max_examples=30, deadline=None)
@given(programs(profile("rccl")))
def test_files_are_plain_xml_in_plain_lines(program):
    data = write(program, profile("rccl"))
    root = ET.fromstring(data)
    assert data.isascii()
    assert data.endswith(b"</algo>\n")
    assert b"\r" not in data
    assert b"\t" not in data
    lines = data.decode().splitlines()
    elements = sum(1 for _ in root.iter())
    closing = sum(1 for line in lines if line.lstrip().startswith("</"))
    assert len(lines) == elements + closing


@settings(max_examples=30, deadline=None)
@given(programs(profile("rccl")), st.data())
def test_files_read_alike_in_any_layout(program, data):
    """Attributes in another order and one step per line or not: the parser does not mind."""
    runtime = profile("rccl")
    root = ET.fromstring(write(program, runtime))
    for element in root.iter():
        element.text = element.tail = data.draw(st.sampled_from([None, "\n", "\r\n  "]))
        pairs = data.draw(st.permutations(list(element.items())))
        element.attrib.clear()
        element.attrib.update(pairs)
        if element.tag == "step":
            element.text = None
    text = ET.tostring(root).replace(b" />", b"/>").replace(b"&#13;", b"\r")
    reading = read(text, runtime, file="rearranged")
    assert reading.program == program


def test_unused_operands_are_spelt_like_the_used_one():
    steps = (
        Step("s", Slot("i", 3), None, 1),
        Step("r", None, Slot("o", 5), 1),
        Step("nop", None, None, 0, (Wait(0, 0),)),
        Step("re", Slot("s", 0), Slot("o", 5), 1, (Wait(0, 1),)),
    )
    header = Header("h", Collective.ALLREDUCE, "LL", 1, 8, 1, True, True)
    program = ThreadblockProgram(header, (Gpu(0, 8, 8, 1, (Threadblock(0, 1, 1, 0, steps),)),))
    root = ET.fromstring(write(program, profile("rccl")))
    spelt = [
        tuple(s.get(k) for k in ("srcbuf", "srcoff", "dstbuf", "dstoff", "cnt"))
        for s in root.iter("step")
    ]
    assert spelt == [
        ("i", "3", "i", "3", "1"),
        ("o", "5", "o", "5", "1"),
        ("i", "-1", "o", "-1", "0"),
        ("s", "0", "o", "5", "1"),
    ]


@pytest.mark.parametrize(
    ("runtime", "inclusive", "spelt"),
    [("msccl", 4096, "4097"), ("rccl", 4096, "4096"), ("msccl-executor", None, "0")],
)
def test_upper_bounds_are_translated(runtime, inclusive, spelt):
    header = Header("h", Collective.ALLREDUCE, "LL", 1, 8, 1, True, False, 1, inclusive)
    data = write(ThreadblockProgram(header, ()), profile(runtime))
    assert ET.fromstring(data).get("maxBytes") == spelt
    assert read(data, profile(runtime), file="").program.header.max_bytes == inclusive


def test_lines_of_elements_are_known():
    header = Header("h", Collective.ALLREDUCE, "LL", 1, 8, 1, True, False, 1)
    block = Threadblock(0, 1, 1, 0, (Step("s", Slot("i", 0), None, 1),) * 2)
    data = write(ThreadblockProgram(header, (Gpu(0, 8, 8, 0, (block,)),)), profile("rccl"))
    reading = read(b"<!-- one -->\n" + data, profile("rccl"), file="")
    assert [reading.line(0, None, None), reading.line(0, 0, None), reading.line(0, 0, 1)] == [
        3,
        4,
        6,
    ]
    assert reading.line(7, 0, 0) is None
    assert replace(reading.program.header, name="") == replace(header, name="")


@pytest.mark.parametrize("every", [1, 2, 3])
def test_steps_are_read_alike_however_they_are_spelt(every):
    """Those with a tab inside the tag, which runtimes misread, are still read one by one."""
    step = Step("cpy", Slot("i", 3), Slot("o", 2), 2)
    steps = tuple(structs.replace(step, source=Slot("i", n)) for n in range(9))
    header = Header("h", Collective.ALLREDUCE, "LL", 1, 20, 1, True, False, 1)
    program = ThreadblockProgram(header, (Gpu(0, 20, 20, 0, (Threadblock(0, 1, 1, 0, steps),)),))
    parts = write(program, profile("rccl")).split(b"<step ")
    blanks = [b"<step\t" if n % every == 0 else b"<step " for n in range(9)]
    data = parts[0] + b"".join(b + part for b, part in zip(blanks, parts[1:], strict=True))
    reading = read(data, profile("rccl"), file="")
    assert tuple(reading.program.gpus[0].threadblocks[0].steps) == steps
    assert [reading.line(0, 0, n) for n in range(9)] == list(range(4, 13))


def test_strange_numbers_of_steps_are_found_where_they_stand():
    step = Step("cpy", Slot("i", 3), Slot("o", 2), 2)
    header = Header("h", Collective.ALLREDUCE, "LL", 1, 8, 1, True, False, 1)
    blocks = tuple(Threadblock(n, None, None, 0, (step,) * 5) for n in range(2))
    data = write(ThreadblockProgram(header, (Gpu(0, 8, 8, 0, blocks),)), profile("rccl"))
    for old, new in (('s="1"', 's="7"'), ('s="3"', 's="03"'), ('depid="-1"', 'depid="-2"')):
        at = data.rindex(old.encode())
        data = data[:at] + new.encode() + data[at + len(old) :]
    found = {(x.rule, x.line) for x in read(data, profile("rccl"), file="").findings}
    assert found == {("S02", 12), ("X13", 14), ("D03", 15)}
