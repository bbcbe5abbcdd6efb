"""The benchmark of a gigabyte, on clusters small enough."""

import pytest

from colsynth import api
from tests.bench.bench_gigabyte import HEAD, lost_by_links, measure, table


@pytest.mark.parametrize(("collective", "share"), [("allgather", 0.8), ("allreduce", 0.8)])
def test_links_of_a_box_lose_what_the_model_takes(collective, share):
    problem = api.make_problem(api.load_topology("dgx-a100"), collective)
    assert lost_by_links(problem, "msccl") == pytest.approx(1 / share)


def test_nics_lose_less_than_nvlink():
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=8), "allgather")
    assert lost_by_links(problem, "msccl") == pytest.approx(1 / 0.96)


def test_no_program_is_nearer_than_links_allow():
    cells = dict(zip(HEAD, measure("dgx-a100", 2, "msccl", "allgather"), strict=True))
    assert 1 < float(cells["links"]) < float(cells["over bound"])


def test_rows_have_a_cell_for_every_heading():
    lines = list(table(["dgx-a100:1:rccl"], ["allgather"]))
    assert {line.count("|") for line in lines} == {len(HEAD) + 1}
