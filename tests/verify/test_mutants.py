"""Planted faults: whatever changes the meaning of a file must be found (issue 1, I.6).

Whether a fault changes the meaning is decided by the reference interpreter alone: it
executes the file on numbers under many interleavings, and says so when one gives another
result, hangs, or touches what it must not.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from colsynth.runtimes import profile, write
from colsynth.verify import verify_bytes
from tests.reference.interpreter import OK, explore
from tests.verify.mutants import KINDS, plant
from tests.verify.programs import ALL

WANTED = 500
"""Faults of all kinds together."""
COMPILED = (
    ("ring:4", "allreduce", "rccl"),
    ("mesh:2x2", "allreduce", "msccl-executor"),
    ("clique:4", "reduce-scatter", "rccl"),
    ("mesh:2x2", "allgather", "msccl-executor"),
)


@cache
def bases() -> tuple[tuple[bytes, str, tuple[bool, ...]], ...]:
    """Right files to plant faults into: file, runtime, modes it claims."""
    from colsynth import api

    found = [
        (write(program, profile("msccl-executor")), "msccl-executor", _modes(program.header))
        for program in ALL.values()
    ]
    for spec, collective, runtime in COMPILED:
        problem = api.make_problem(api.load_topology(spec), collective)
        # Small programs, for a twin that is slow; what the search finds has hundreds of chunks.
        done = api.compile(problem, runtime, algorithm="forest", level=0, trees="1", instances=1)
        found += [(a.data, runtime, _modes(a.program.header)) for a in done.artefacts]
    return tuple(found)


def _modes(header) -> tuple[bool, ...]:
    return (True,) * header.in_place + (False,) * header.out_of_place


def _accepts(data: bytes, runtime: str) -> bool:
    return verify_bytes(data, profile(runtime), subject="mutant").ok


def test_unharmed_files_are_accepted_by_both():
    for data, runtime, modes in bases():
        assert _accepts(data, runtime)
        assert explore(data, modes=modes) == OK


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_faults_that_change_the_meaning_are_found(kind):
    rng = random.Random(f"20261121 {kind}")
    changed = missed = 0
    while changed < -(-WANTED // len(KINDS)):
        data, runtime, modes = rng.choice(bases())
        mutant = plant(data, kind, rng)
        if mutant is None or mutant == data or explore(mutant, modes=modes) == OK:
            continue
        changed += 1
        missed += _accepts(mutant, runtime)
    assert missed <= changed / 100
