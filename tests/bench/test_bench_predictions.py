"""The benchmark of predictions covers every cell, and shows what it measured."""

from colsynth.jobs.workers import Workers
from colsynth.topology import presets
from tests.bench.bench_predictions import SIZES, measure, preset_names, row, table_of


def test_every_preset_and_size_decade_is_there():
    assert preset_names() == tuple(item.name for item in presets())
    assert [len(str(size)) for size in SIZES] == list(range(4, 11))


def test_no_prediction_is_below_the_bound_and_large_messages_come_near():
    figures = measure("dgx-a100", 1, "allgather", Workers(1), budget=3)
    ratios = [entry["over_bound"] for entry in figures["sizes"]]
    assert ratios == sorted(ratios, reverse=True)
    assert 1 < ratios[-1] < 2
    cells = row(figures)
    assert cells[0] == "dgx-a100 x1 allgather"
    assert cells[-1] == f"{ratios[-1]:.2f} {' '.join(figures['sizes'][-1]['settings'].split()[:2])}"
    assert table_of([figures]).row_count == 1


def test_a_collective_that_nothing_serves_says_so():
    assert row({"case": ["x", 1, "reduce"], "refused": "why"}) == ["x x1 reduce", "why"]
