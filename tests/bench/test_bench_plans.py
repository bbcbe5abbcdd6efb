"""The benchmark of plans makes a row of the guide's table, and says what was verified."""

from tests.bench.bench_plans import COLLECTIVES, SHOWN, compiled, summary, table


def test_a_row_holds_both_runtimes_at_both_sizes():
    found = {
        kind: compiled("dgx-a100", 1, "allgather", runtime, 0)
        for kind, runtime in (("xml", "msccl"), ("plan", "mscclpp"))
    }
    rows = [{"case": "dgx-a100 x1", **dict.fromkeys(COLLECTIVES, found)}]
    head, _, line = table(rows)
    assert head.count("1 GiB") == len(SHOWN)
    assert line.count(",") == 2 * len(SHOWN)
    assert "verified: 6" in summary(rows)
    assert "beyond a limit: 0" in summary(rows)
