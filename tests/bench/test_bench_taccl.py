"""The published figures of TACCL and TE-CCL are whole, and a row of ours stands beside them."""

import pytest

from tests.bench import bench_taccl


def test_all_cases_have_a_figure_for_every_size():
    published = bench_taccl.data()
    assert len(published["cases"]) == 6
    for case in published["cases"]:
        for key in ("taccl", "teccl", "teccl-seconds"):
            assert len(case[key]) == len(published["sizes"]) == 11


def test_a_row_has_our_time_within_its_bound(capsys):
    (row,) = bench_taccl.main(["ndv2 x2 allgather", "--sizes", "1000000", "--chunks", "1"])
    assert row.ours >= row.bound > 0
    assert row.taccl == pytest.approx(62.15, abs=0.01)
    assert "NDv2 x2 allgather" in capsys.readouterr().out
