"""The cases of the benchmark are what they claim to be, and their figures are shown."""

from colsynth import api
from tests.bench.bench_scale import CASES, LIMITS, Case, machine, measure, plot_of, row


def test_every_limit_has_a_case():
    assert sorted(case.limit for case in CASES if case.limit) == sorted(LIMITS.values())


def test_irregular_machines_lack_links_and_hold_together():
    whole = api.load_topology("mi250", nodes=2)
    damaged = machine(Case("mi250", 2, irregular=True))
    pairs = len(whole.links) // 2
    assert len(damaged.links) == len(whole.links) - 2 * ((pairs // 20 + 1) // 2)
    slower = {
        link.bandwidth / whole.links[whole.link_between[link.source, link.target]].bandwidth
        for link in damaged.links
    }
    assert len(slower) == 2
    assert api.bound(api.make_problem(damaged, "allgather")).algbw > 0


def test_figures_are_measured_shown_and_plotted():
    figures = {
        "line": "dgx-a100, as built",
        "preset": "dgx-a100",
        "boxes": 2,
        "limit": 2.0,
        "total": 0.5,
        **measure(Case("dgx-a100", 2)),
    }
    assert figures["exact"]
    assert row(figures)[:2] == ["dgx-a100, as built x2", "16"]
    assert row(figures)[-2:] == ["0, proven", "15 GPUs, 2 links, 325 GB/s"]
    failed = {**figures, "failed": "out of luck"}
    assert row(failed)[1:] == ["failed", "out of luck"]
    assert plot_of([failed]) is None
    assert "dgx-a100, as built" in plot_of([figures]).decode()
