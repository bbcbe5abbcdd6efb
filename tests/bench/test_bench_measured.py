"""The table of predictions beside measurements: in the guide as the benchmark makes it."""

from tests.bench import bench_measured


def test_the_guide_shows_the_table_that_the_benchmark_makes():
    made = bench_measured.table()
    assert made in bench_measured.PAGE.read_text()
    assert len(made.splitlines()) >= len(bench_measured.HEAD) + 10
    assert all(entry["source"] for entry in bench_measured.entries())
    page = bench_measured.PAGE.read_text()
    assert bench_measured.replaced(page, made) == page
