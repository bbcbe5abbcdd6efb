"""The search of the benchmark of limits."""

from __future__ import annotations

import pytest

from tests.bench.bench_limits import compile_one, largest


@pytest.mark.parametrize("most", [1, 2, 7, 64, 100])
def test_doubling_and_bisection_find_what_trying_all_finds(most):
    for fits in range(most + 1):
        tried = []

        def measure(boxes, fits=fits, tried=tried):
            tried.append(boxes)
            return {"boxes": boxes} if boxes <= fits else {"reason": f"{boxes} are too many"}

        found = largest(measure, most)
        assert found.boxes == fits
        assert found.figures.get("boxes", 0) == fits
        assert found.reason == (
            f"{fits + 1} are too many" if fits < most else f"not tried beyond {most}"
        )
        assert len(tried) == len(set(tried)) <= 2 * most.bit_length() + 1


def test_figures_of_a_case_that_fits_and_of_one_that_does_not():
    figures = compile_one("dgx-a100", 1, "allgather", "rccl")
    assert figures["ranks"] == 8
    name, used, limit = figures["tightest"]
    assert 0 < used <= limit, name
    assert "reason" not in figures
