"""Limits of the runtimes, on programs too large for the corpus."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from colsynth.errors import DefectError
from colsynth.model import Collective, Severity, Wait
from colsynth.runtimes import profile
from colsynth.verify import verify_program
from tests.verify.programs import Builder, allpairs_allreduce, ring_allreduce, step


def _found(program, runtime, severity=Severity.ERROR):
    report = verify_program(program, profile(runtime), subject="large")
    return {f.rule for f in report.findings if f.severity is severity}


def _many_blocks(blocks: int, per_channel: int):
    """An alltoall within each rank and between two, padded with local copies."""
    made = Builder(Collective.ALLTOALL, 2, 2, scratch=1, in_place=False)
    for rank in range(2):
        peer = 1 - rank
        made.block(rank, peer, peer, [step("s", f"i{peer}"), step("r", None, f"o{peer}")])
        made.block(rank, None, None, [step("cpy", f"i{rank}", f"o{rank}")])
        for extra in range(2, blocks):
            wait = None if extra == 2 else (extra - 1, 0)
            copy = step("cpy", f"i{rank}", "s0", 1, wait, signals=extra < blocks - 1)
            made.block(rank, None, None, [copy], channel=extra // per_channel)
    return replace(made.program(), header=replace(made.program().header, max_bytes=4096))


def test_threadblocks_of_a_gpu():
    assert "T02" in _found(_many_blocks(65, 16), "rccl")
    assert "T02" not in _found(_many_blocks(65, 16), "msccl-executor")
    resident = profile("msccl-executor").resident_threadblocks
    assert "T08" in _found(_many_blocks(resident + 1, 16), "msccl-executor", Severity.WARNING)
    assert "T08" not in _found(_many_blocks(resident, 16), "msccl-executor", Severity.WARNING)
    assert "T08" not in _found(_many_blocks(64, 16), "rccl", Severity.WARNING)


def test_threadblocks_of_a_channel():
    assert "T05" in _found(_many_blocks(40, 33), "rccl")
    assert "T05" not in _found(_many_blocks(40, 32), "rccl")


def test_dependencies_on_high_ids():
    assert "D01" in _found(_many_blocks(140, 16), "msccl-executor")
    assert "D01" not in _found(_many_blocks(128, 16), "msccl-executor")


def test_steps_of_a_threadblock():
    assert "S03" in _found(ring_allreduce(33), "msccl-executor")
    assert "S03" not in _found(ring_allreduce(32), "msccl-executor")


def _copies(total: int):
    """Two ranks; rank 0 has one threadblock with `total` steps."""
    made = Builder(Collective.BROADCAST, 2, 1, scratch=1, protocol="LL")
    made.block(0, 1, None, [step("cpy", "i0", "o0"), step("s", "o0")])
    made.block(0, None, None, [step("cpy", "i0", "s0")] * (total - 2))
    made.block(1, None, 0, [step("r", None, "o0")])
    return made.program()


@pytest.mark.parametrize(("nodes", "fits"), [(4094, True), (4095, False)])
def test_nodes_of_the_parser(nodes, fits):
    steps = nodes - 2 - 2
    assert ("X10" in _found(_copies(steps), "msccl")) is not fits


def test_children_of_an_element():
    assert "X11" in _found(_copies(1030), "msccl")
    assert "X11" not in _found(_copies(1020), "msccl")


def _sized(most: int | None, chunks: int, **options):
    """A broadcast of two ranks that serves messages up to a size."""
    made = Builder(Collective.BROADCAST, 2, chunks, max_bytes=most, **options)
    made.block(0, 1, None, [step("cpy", "i0", "o0"), step("s", "o0")])
    made.block(1, None, 0, [step("r", None, "o0")])
    return made.program()


@pytest.mark.parametrize("runtime", ["msccl-executor", "rccl"])
@pytest.mark.parametrize("protocol", ["Simple", "LL", "LL128"])
@pytest.mark.parametrize("chunks", [1, 8, 512])
def test_without_a_limit_a_message_reaches_a_terabyte(runtime, protocol, chunks):
    """Whatever is larger does not fit a GPU; up to there, flags have to count all tiles."""
    program = _sized(None, chunks, protocol=protocol)
    counted = 65536 * profile(runtime).tile_bytes[protocol] * chunks
    assert ("K03" in _found(program, runtime)) == (counted < 2**40)


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
@pytest.mark.parametrize(
    ("scratch", "most", "severity"),
    [
        (14, None, None),
        (15, None, Severity.WARNING),
        (15 * 15, None, Severity.WARNING),
        (15 * 15, 4096, None),
        (2**31 - 1, None, Severity.ERROR),
        (2**31 - 1, 2**16, Severity.ERROR),
    ],
)
def test_scratch_of_a_message(runtime, scratch, most, severity):
    """In a directory a message of 4 GiB is judged, in a list the largest that is served."""
    limit = profile(runtime).largest_message("Simple", 15)
    program = _sized(most or limit, 15, scratch=scratch)
    found = verify_program(program, profile(runtime), subject="scratch").findings
    levels = {f.severity for f in found if f.rule == "R01"}
    if runtime == "msccl" and scratch == 15:  # as much as the message, 2 GiB
        severity = None
    assert levels == ({severity} if severity else set())


def test_connection_buffers():
    made = Builder(Collective.ALLTOALL, 16, 16, in_place=False)
    for rank in range(16):
        made.block(rank, None, None, [step("cpy", f"i{rank}", f"o{rank}")])
        for peer in range(16):
            if peer != rank:
                for channel in range(16):
                    made.block(
                        rank,
                        peer,
                        peer,
                        [step("s", f"i{peer}"), step("r", None, f"o{peer}")],
                        channel,
                    )
    assert "R02" in _found(made.program(), "msccl-executor", Severity.WARNING)
    assert "R02" not in _found(allpairs_allreduce(4), "msccl-executor", Severity.WARNING)


def test_repeated_findings_are_counted_and_hide_no_other_rule():
    program = _copies(1030)
    report = verify_program(program, profile("rccl"), subject="large")
    rules = [f.rule for f in report.findings]
    assert max(rules.count(rule) for rule in set(rules)) <= 9
    assert {"S03", "X11", "A15"} <= set(rules)


def test_unfinished_programs_are_a_defect():
    program = ring_allreduce(3)
    gpu = program.gpus[0]
    block = gpu.threadblocks[0]
    first = structs.replace(block.steps[0], waits=(Wait(0, 0), Wait(0, 1)))
    broken = replace(block, steps=(first, *block.steps[1:]))
    gpus = (replace(gpu, threadblocks=(broken,)), *program.gpus[1:])
    with pytest.raises(DefectError, match="CS591"):
        verify_program(replace(program, gpus=gpus), profile("msccl"), subject="unfinished")
