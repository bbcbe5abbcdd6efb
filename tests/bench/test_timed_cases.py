"""The cases of the benchmark are the machines they claim to be."""

from collections import Counter

import pytest

from colsynth import api
from tests.bench.bench_timed import Stages, measure, plot_of, row, run_once
from tests.bench.timed_cases import (
    CASES,
    PARTS,
    PUBLISHED,
    WARM,
    Case,
    broken_cables,
    broken_links,
    unequal_axes,
)


def bandwidths(topology):
    return Counter(link.bandwidth for link in topology.links)


def test_axes_have_bandwidths_of_one_two_four():
    plain = api.load_topology("torus:3x3x3")
    least = plain.links[0].bandwidth
    changed = unequal_axes(plain)
    assert bandwidths(changed) == {least: 54, 2 * least: 54, 4 * least: 54}
    between = changed.link_between
    assert [changed.links[between[0, other]].bandwidth for other in (9, 3, 1)] == [
        least,
        2 * least,
        4 * least,
    ]


@pytest.mark.parametrize(("broken", "each"), [(broken_cables, 2), (broken_links, 1)])
def test_broken_meshes_lack_a_hundredth_and_have_a_fifth_at_half_bandwidth(broken, each):
    plain = api.load_topology("mesh:16x16")
    whole, things = plain.links[0].bandwidth, len(plain.links) // each
    changed = broken(plain)
    slow, gone = things // 5 * each, things // 100 * each
    assert bandwidths(changed) == {whole / 2: slow, whole: len(plain.links) - slow - gone}
    assert changed.is_symmetric == (each == 2)
    assert broken(plain) == changed


def test_every_published_figure_belongs_to_a_case_and_names_are_unique():
    names = Counter((case.name, case.chunks) for case in CASES)
    assert set(names.values()) == {1}
    assert set(PUBLISHED) <= {case.name for case in CASES}
    assert {case.part for case in CASES} == set(PARTS)


def test_a_case_gives_a_row_and_a_point_of_the_plot():
    case = Case("speed", "mesh:2x3", line="2-D meshes")
    figures = {"case": case.name, "part": case.part, "line": case.line, "chunks_per_gpu": 1}
    figures |= measure(case)
    assert figures["tries"] >= 1
    assert figures["one_try_seconds"] > 0
    assert 0 <= figures["chunks_late"] < 2
    assert figures["seconds"].keys() >= {"hops", "match", "bound", "check"}
    cells = row(figures)
    assert cells[:4] == ["mesh:2x3 allgather", "6", "1", "30"]
    assert "colsynth, 2-D meshes" in plot_of([figures]).decode()
    assert plot_of([{**figures, "line": ""}]) is None


@pytest.mark.parametrize("case", WARM, ids=lambda case: case.name)
def test_warming_up_needs_nothing_else(case):
    assert run_once(case, Stages())["verified"]
