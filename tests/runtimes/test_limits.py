"""How far programs use up the limits of a runtime."""

from __future__ import annotations

from dataclasses import replace

import pytest

from colsynth.model import Collective
from colsynth.runtimes import profile, profiles
from colsynth.runtimes.limits import most_used, usage
from colsynth.verify import verify_program
from tests.verify.programs import Builder, ring_allreduce, step

RULE = {
    "threadblocks": "T02",
    "resident_threadblocks": "T08",
    "threadblocks_per_channel": "T05",
    "steps": "S03",
    "xml_nodes": "X10",
    "awaited_threadblock": "D01",
}
"""Rules of the verifier that are about the same limits."""


def copies(blocks, per_channel, steps=1):
    """Two ranks with threadblocks that copy, each step after the last threadblock's first."""
    made = Builder(Collective.BROADCAST, 2, 1, scratch=1)
    made.block(0, 1, None, [step("s", "i0")])
    made.block(1, None, 0, [step("r", None, "o0")])
    for number in range(1, blocks):
        wait = None if number == 1 else (number - 1, 0)
        first = step("cpy", "i0", "s0", 1, wait, signals=number < blocks - 1)
        rest = [step("cpy", "i0", "s0")] * (steps - 1)
        made.block(0, None, None, [first, *rest], channel=number // per_channel)
    program = made.program()
    return replace(program, header=replace(program.header, max_bytes=4096))


def used(program, runtime):
    return {item.name: item.used for item in usage(program, profile(runtime))}


def test_figures_of_a_program_by_hand():
    figures = used(copies(40, 16, steps=3), "rccl")
    assert figures["threadblocks"] == figures["resident_threadblocks"] == 40
    assert figures["channels"] == figures["usual_channels"] == 3
    assert figures["threadblocks_per_channel"] == 16
    assert figures["steps"] == 3
    assert figures["xml_nodes"] == 2 + 40 + 1 + 39 * 3
    assert figures["awaited_threadblock"] == 38
    assert (figures["input_chunks"], figures["scratch_chunks"]) == (1, 1)
    assert figures["chunks_per_step"] == 1


@pytest.mark.parametrize("runtime", [p.name for p in profiles() if p.xml])
@pytest.mark.parametrize(
    "program",
    [
        *(copies(*shape) for shape in ((40, 33), (64, 16), (65, 16), (140, 16), (225, 16))),
        *(copies(*shape) for shape in ((16, 16, 64), (17, 17, 256), (2, 2, 257))),
        ring_allreduce(33),
    ],
    ids=["channel", "64", "65", "140", "225", "nodes", "more nodes", "steps", "ring"],
)
def test_what_exceeds_a_limit_breaks_the_rule_about_it(program, runtime):
    report = verify_program(program, profile(runtime), subject="program")
    told = {finding.rule for finding in report.findings}
    for item in usage(program, profile(runtime)):
        if item.name in RULE:
            advised = item.name == "resident_threadblocks"
            hard = profile(runtime).max_threadblocks
            expected = item.used > item.limit and not (advised and item.used > hard)
            assert (RULE[item.name] in told) == expected, item


def test_advice_refuses_nothing():
    for item in usage(copies(65, 16), profile("msccl-executor")):
        assert not item.exceeded
    assert any(item.exceeded for item in usage(copies(65, 16), profile("rccl")))


def test_of_several_programs_the_most_counts():
    several = [usage(p, profile("msccl")) for p in (copies(40, 16), copies(8, 8, 100))]
    found = {item.name: item.used for item in most_used(several)}
    assert (found["threadblocks"], found["steps"]) == (40, 100)
