"""Default files are used by messages that people send; others say that they are not."""

from random import Random

import pytest

from colsynth import api
from colsynth.runtimes import profile, taken_sizes

RUNTIMES = ("msccl", "msccl-executor", "rccl")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce")
MACHINES = (
    *("dgx-a100", "dgx-h100", "dgx-1v", "dgx2", "mi250", "mi300x", "ndv2"),
    *("mesh:3x3", "ring:6", "clique:6", "hypercube:3", "mesh:2x3"),
)
NEVER_USED = [
    ("ndv2", "allreduce", "msccl"),
    ("mi300x", "broadcast", "msccl-executor"),
    ("dgx-1v", "allgather", "msccl-executor"),
    ("mi250", "reduce-scatter", "msccl"),
    ("clique:6", "broadcast", "rccl"),
]
"""Of which the defaults had chunks that divide no power of two."""

_RANDOM = Random(5)
SOME = [tuple(map(_RANDOM.choice, (MACHINES, COLLECTIVES, RUNTIMES))) for _ in range(5)]


def compiled(machine, collective, runtime, nodes=None, **options):
    root = 0 if collective in ("broadcast", "reduce") else None
    problem = api.make_problem(api.load_topology(machine, nodes=nodes), collective, root)
    return api.compile(problem, runtime, several=False, **options)


@pytest.mark.parametrize(("machine", "collective", "runtime"), [*NEVER_USED, *SOME])
def test_usual_sizes_use_default_files(machine, collective, runtime):
    """Powers of two, times the ranks' odd factor where they share a message."""
    done = compiled(machine, collective, runtime)
    header = done.artefacts[0].program.header
    law = taken_sizes(header, profile(runtime))
    assert all(law.divide(law.usual(1 << k)) for k in range(19, 31))
    assert law.takes(law.usual(1 << 30))
    assert not any("no message of" in note for note in done.notes)


@pytest.mark.parametrize(
    ("machine", "algorithm"),
    [
        *(("dgx-1v", name) for name in ("ring", "tree", "hierarchical", "allpairs2", "ten")),
        *(("mesh:3x3", name) for name in ("roots", "tree")),
        ("mesh:2x4", "ten"),
        *(("clique:6", name) for name in ("ring", "tree")),
    ],
)
def test_other_algorithms_are_used_too(machine, algorithm):
    done = compiled(machine, "allreduce", "msccl", algorithm=algorithm)
    assert done.taken().takes_usual()


@pytest.mark.parametrize(
    ("machine", "collective", "runtime", "algorithm"),
    [
        *(("mi300x", "reduce-scatter", "msccl", name) for name in (None, "ring", "forest")),
        *(("dgx-1v", "allreduce", "rccl", name) for name in (None, "ring", "tree", "bfb")),
        *(("mi250", "allgather", "rccl", name) for name in ("forest", "bfb")),
        *(("mi300x", "allreduce", "rccl", name) for name in ("rails", "pipelined")),
    ],
)
def test_decimal_sizes_use_files_that_are_made_for_them(machine, collective, runtime, algorithm):
    """25 MB are 2^6 5^8 bytes, so of powers of two only few divide them.

    Algorithms that are named do it by themselves, without a search that keeps what fits.
    """
    given = {"algorithm": algorithm, "level": 1 if algorithm is None else 0}
    done = compiled(machine, collective, runtime, size=25_000_000, **given)
    assert done.taken().takes(25_000_000)


def test_decimal_sizes_take_about_as_long_as_powers_of_two():
    """An allreduce of 25 MB took longer than one of 32 MiB, with the few chunks that fitted."""
    seconds = [
        compiled("mi300x", "allreduce", "msccl", size=size).predicted[-1].seconds
        for size in (25_000_000, 2**25)
    ]
    assert seconds[0] < 1.1 * seconds[1]


def test_the_exact_optimum_is_kept_and_told():
    done = compiled("mi250", "allgather", "rccl", trees="optimal")
    assert done.schedule.gap == 0
    assert done.summary()["messages"]["multiple_bytes"] % (48 * 4) == 0
    assert any(note.startswith("no message of a power of two bytes uses") for note in done.notes)


def test_trees_of_the_exact_optimum_are_not_packed_for_other_bandwidths():
    """Two boxes were given trees for usable bandwidths, 18 % below the bound."""
    assert compiled("mi250", "allgather", "msccl", nodes=2, trees="optimal").schedule.gap == 0


def test_no_proposal_changes_the_protocol_that_was_asked_for():
    given = {"size": 2**30, "algorithm": "forest"}
    free, asked = (
        compiled("dgx-1v", "reduce-scatter", "rccl", protocol=protocol, **given)
        for protocol in (None, "LL128")
    )
    assert free.summary()["protocol"] == "Simple"
    assert asked.summary()["protocol"] == "LL128"
