"""The search of the benchmark of limits."""

from __future__ import annotations

import pytest

from colsynth.runtimes import profile
from tests.bench.bench_limits import (
    RUNTIMES,
    ceilings,
    compile_one,
    largest,
    least_steps,
    room,
    row,
)


@pytest.mark.parametrize("most", [1, 2, 7, 64, 100])
@pytest.mark.parametrize("guess", [1, 5, 64, 1000])
def test_the_search_finds_what_trying_all_finds(most, guess):
    for fits in range(most + 1):
        tried = []

        def measure(size, fits=fits, tried=tried):
            tried.append(size)
            return {"size": size} if size <= fits else {"reason": f"{size} are too many"}

        found = largest(measure, most, guess)
        assert found.size == fits
        assert found.figures.get("size", 0) == fits
        assert found.beyond == (fits + 1 if fits < most else None)
        assert found.reason == (f"{fits + 1} are too many" if fits < most else "")
        assert len(tried) == len(set(tried)) <= 2 * most.bit_length() + 2
        assert all(1 <= size <= most for size in tried)


def test_a_size_that_was_known_takes_two_compilations():
    tried = []

    def measure(size):
        tried.append(size)
        return {} if size <= 37 else {"reason": "too many"}

    assert largest(measure, 64, 37).size == 37
    assert sorted(tried) == [37, 38]


def test_figures_of_a_case_that_fits():
    figures = compile_one("dgx-a100", 1, "allgather", "rccl")
    assert figures["ranks"] == 8
    name, used, limit = figures["tightest"]
    assert 0 < used <= limit, name
    assert "reason" not in figures


def test_rows_say_where_no_more_was_tried():
    figures = {"ranks": 16, "seconds": 1.0, "peak_mib": 99.6, "tightest": ["XML nodes", 5, 9]}
    figures |= {"threadblocks": 73, "resident": 72}

    def measure(size):
        return figures if size <= 2 else {"reason": "steps: 65, but rccl allows 64"}

    cells = (
        "| dgx-a100 | allgather | rccl | {}16 | 1.0 | 100 | 73, not all resident "
        "| XML nodes 5 of 9 | {} |"
    )
    whole = row("dgx-a100", "allgather", "rccl", largest(measure, 2))
    assert whole == cells.format(">= ", "not tried further")
    part = row("dgx-a100", "allgather", "rccl", largest(measure, 9))
    assert part == cells.format("", "24 GPUs: steps: 65, but rccl allows 64")


COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")


@pytest.mark.parametrize(("runtime", "collective"), list(zip(RUNTIMES, COLLECTIVES, strict=True)))
def test_no_compiled_program_is_below_what_the_ceiling_counts(runtime, collective):
    figures = compile_one("dgx-a100", 1, collective, runtime)
    least = least_steps(collective, figures["ranks"], profile(runtime).fuses)
    assert figures["steps"] * figures["threadblocks"] >= least


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_at_the_ceiling_a_limit_holds_and_beyond_it_does_not(runtime, collective):
    for name, most in ceilings(profile(runtime), collective).items():
        used, limit = room(profile(runtime), collective, most)[name]
        assert used <= limit, name
        used, limit = room(profile(runtime), collective, most + 1)[name]
        assert used > limit, name


def test_an_allreduce_on_rccl_is_held_back_by_xml_nodes():
    found = ceilings(profile("rccl"), "allreduce")
    assert min(found, key=found.__getitem__) == "XML nodes"
    assert found["steps"] == 1 + 64 * 64 // 5
    most = found["XML nodes"]
    assert most + 5 * (most - 1) + -(-5 * (most - 1) // 64) <= 4094
    assert (most + 1) + 5 * most + -(-5 * most // 64) > 4094
