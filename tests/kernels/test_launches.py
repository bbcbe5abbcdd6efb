"""The kernel does what its twin does, with right plans and with others."""

import copy
import json
import random
from fractions import Fraction

import pytest

from colsynth.kernels import launches, plans
from colsynth.runtimes import profile
from colsynth.runtimes.rules import CAP, Findings
from colsynth.runtimes.schedules import read
from colsynth.verify.plans import resolved, shapes
from colsynth.verify.plans.counters import check_counters, counters
from colsynth.verify.plans.cut import cut
from colsynth.verify.plans.lengths import span
from colsynth.verify.plans.lint import lint_plan
from colsynth.verify.plans.machine import execute
from colsynth.verify.plans.program import loops_of, resolve
from tests.reference.launches import Machine
from tests.verify.plans.test_execution import compiled
from tests.verify.plans.test_mutants import BASES, KINDS

MSCCLPP = profile("mscclpp")


def test_kinds_and_barriers_are_numbered_alike_on_both_sides():
    """Kernels know nothing of plans, so both say it."""
    kinds = [
        "NOP",
        "BARRIER",
        "SIGNAL",
        "WAIT",
        "RELEASE",
        "ACQUIRE",
        "FLUSH",
        "DATA",
        "PORT",
        "PACKET",
    ]
    for kind in kinds:
        assert getattr(launches, kind) == getattr(resolved, kind)
    assert plans.BARRIERS == shapes.BARRIERS


def cuts(plan):
    """Yield a plan at two lengths, unless it cannot be executed."""
    reading = read(json.dumps(plan).encode(), MSCCLPP, file="plan")
    findings = Findings(MSCCLPP.name)
    if not lint_plan(reading.plan, MSCCLPP, findings):
        return
    program = resolve(reading.plan, reading.header)
    least, most = span(reading.plan, reading.header)
    units = [Fraction(loop.unit_size, loop.num_chunks) for loop in loops_of(reading.plan)]
    for chunk in {Fraction(least), min([Fraction(most), *(3 * unit for unit in units)])}:
        yield cut(reading.plan, program, chunk)


def mask(words):
    return sum(word << 64 * place for place, word in enumerate(words.tolist()))


def compare(pieces, turns, flushes):
    """Execute twice; return whether it hung, and whether it raced."""
    used = counters(pieces)
    findings = Findings(MSCCLPP.name)
    check_counters(pieces, used, findings)
    if findings.failed:
        return None
    found = execute(pieces, used, turns, flushes=flushes)
    twin = Machine(pieces, turns, flushes=flushes)
    stuck = twin.run()
    assert [(block, action.op.name) for block, action in found.stuck] == stuck
    assert found.raced == len(twin.races)
    assert [(r.block, r.action.step, r.text) for r in found.races] == twin.races[:CAP]
    assert stuck or len(twin.left) == turns * pieces.program.header.ranks
    for (launch, rank), held in twin.left.items():
        chunks = found.chunks[launch, rank, : len(held)].tolist()
        masks = map(mask, found.masks[launch, rank, : len(held)])
        assert [c for c, _ in held] == chunks
        assert [m for c, m in held if c >= 0] == [
            m for m, c in zip(masks, chunks, strict=True) if c >= 0
        ]
    return bool(stuck), bool(twin.races)


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize("flushes", [False, True])
def test_right_plans_end_alike(base, flushes):
    for plan in compiled(*base):
        seen = [compare(pieces, 3, flushes) for pieces in cuts(plan)]
        assert seen
        assert set(seen) == {(False, False)}


def test_wrong_plans_end_alike():
    rng, seen = random.Random(7), set()
    bases = [plan for base in BASES for plan in compiled(*base)]
    for turn in range(6 * len(KINDS)):
        plan = copy.deepcopy(rng.choice(bases))
        if KINDS[sorted(KINDS)[turn % len(KINDS)]](plan, rng):
            seen.update(compare(pieces, rng.randint(1, 3), True) for pieces in cuts(plan))
    assert seen >= {(False, False), (True, False), (False, True)}
