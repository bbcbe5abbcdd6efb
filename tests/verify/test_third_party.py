"""Files of other projects get the verdicts that reading the runtimes gives them.

The files are not part of this repository; where they lie beside it, they are checked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from colsynth.runtimes import profile
from colsynth.verify import verify_bytes

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "xml"
RUNTIMES = ("msccl", "msccl-executor", "rccl")
NO_RANGE = {"A01"}
"""Without minBytes, maxBytes and outofplace the directory runtimes refuse the file."""
ZERO = {"A08"}
"""minBytes is 0, which fails a call of zero bytes on msccl."""
HUGE = {"A08", "A14"}
"""... and maxBytes is 2**40, more than msccl can count."""
WRONG = {"S08", "B01", "B02"}

# File: rules broken as errors on msccl, on msccl-executor, on rccl.
VERDICTS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "rccl/allreduce-allpairs-8n-ll-32tb.xml": (ZERO, set(), set()),
    "rccl/allreduce-allpairs-8n-ll-32tb-op.xml": (ZERO, set(), set()),
    "rccl/alltoall-8n-0-9kb.xml": (ZERO, set(), set()),
    "rccl/alltoall-8n-512kb-7mb.xml": (set(), set(), set()),
    "rccl/all-reduce-ring-simple.xml": ({"A06", "A07"}, set(), {"S05"}),
    "forestcoll/a100x1_allgather.xml": (HUGE, set(), {"S05"}),
    "forestcoll/a100x1_allreduce.xml": (HUGE, set(), {"S05"}),
    "forestcoll/a100x1_reduce_scatter.xml": (HUGE, {"A03"}, {"A03", "S05"}),
    "forestcoll/mi250x1_reducescatter_amd.xml": (HUGE | {"A03"}, set(), {"S05"}),
    "forestcoll/a100x1_allgather_oop.xml": (HUGE | WRONG | {"G02"}, WRONG, WRONG | {"S05"}),
    "msccl-tools/allgather_allpairs_8_1.xml": (ZERO, NO_RANGE, NO_RANGE),
    "msccl-tools/allgather_rd_8_1.xml": (ZERO | {"K01"}, NO_RANGE | {"K01"}, NO_RANGE | {"K01"}),
    "msccl-tools/allreduce_a100_ncv4_4_1.xml": (ZERO, NO_RANGE, NO_RANGE | {"S05"}),
    "msccl-tools/allreduce_allpairs_v2_8_1.xml": (ZERO, NO_RANGE, NO_RANGE),
    "msccl-tools/alltoall_two_step_2_8.xml": (ZERO, NO_RANGE, NO_RANGE),
    "msccl-tools/hierarchical_allreduce_8_2_1.xml": (ZERO, NO_RANGE, NO_RANGE | {"S05"}),
    "msccl-tools/NEG_multi_root_simple_custom_collective.xml": (
        ZERO,
        NO_RANGE | {"A03"},
        NO_RANGE | {"A03"},
    ),
}
CASES = [
    (name, runtime, errors)
    for name, verdicts in VERDICTS.items()
    for runtime, errors in zip(RUNTIMES, verdicts, strict=True)
]


def _report(name: str, runtime: str):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip("third-party files are not beside the repository")
    return verify_bytes(path.read_bytes(), profile(runtime), subject=name)


@pytest.mark.parametrize(("name", "runtime", "errors"), CASES)
def test_errors_are_those_of_the_contract(name, runtime, errors):
    assert {finding.rule for finding in _report(name, runtime).errors} == errors


@pytest.mark.parametrize(
    ("name", "runtime", "rule"),
    [
        ("msccl-tools/alltoall_two_step_2_8.xml", "msccl", "A13"),
        ("msccl-tools/NEG_multi_root_simple_custom_collective.xml", "msccl", "X14"),
        ("rccl/all-reduce-ring-simple.xml", "msccl-executor", "X15"),
        ("rccl/all-reduce-ring-simple.xml", "msccl-executor", "K02"),
        ("rccl/allreduce-allpairs-8n-ll-32tb.xml", "rccl", "B06"),
        ("forestcoll/a100x1_allgather_oop.xml", "msccl-executor", "G02"),
    ],
)
def test_odd_points_are_warned_of(name, runtime, rule):
    report = _report(name, runtime)
    assert rule in {f.rule for f in report.findings} - {f.rule for f in report.errors}


def test_foreign_operands_that_are_unused_or_right_are_not_reported():
    """Thousands of rcs and rrs steps name an operand they do not use (S11)."""
    rules = {f.rule for f in _report("rccl/all-reduce-ring-simple.xml", "msccl-executor").findings}
    assert "S11" not in rules


def test_every_wrong_chunk_of_the_out_of_place_allgather_is_counted():
    report = _report("forestcoll/a100x1_allgather_oop.xml", "msccl-executor")
    counts = [int(f.message.split()[3]) for f in report.errors if f.rule == "B01"]
    assert sum(counts) == 57


def test_shipped_allpairs_files_deadlock_without_their_byte_range():
    """Inside their range several chunks share a call; one call per chunk fills FIFOs."""
    path = SAMPLES / "rccl/allreduce-allpairs-8n-ll-32tb.xml"
    if not path.exists():
        pytest.skip("third-party files are not beside the repository")
    data = path.read_bytes().replace(b'proto="LL"', b'proto="Simple"', 1)
    unlimited = data.replace(b'maxBytes="65536"', b'maxBytes="0"', 1)
    rccl = profile("rccl")
    assert verify_bytes(data, rccl, subject="limited").ok
    rules = {f.rule for f in verify_bytes(unlimited, rccl, subject="unlimited").errors}
    assert rules == {"K01"}
