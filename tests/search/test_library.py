"""The library by itself, as far as our baselines tell."""

from random import Random

import pytest

from colsynth import api, simulate
from colsynth.errors import Diagnostic, VerificationError
from colsynth.search.case import Case
from colsynth.search.library import Library
from colsynth.search.means import Means
from colsynth.search.objective import Objective
from colsynth.search.run import find_plan
from colsynth.search.wish import Wish
from colsynth.simulate import Prepared


def library(machine):
    problem = api.make_problem(api.load_topology(machine), "allreduce")
    return Library(Case(problem, "msccl", (1 << 20,)))


def test_an_algorithm_of_ours_that_hangs_says_nothing_of_the_library(monkeypatch):
    assert library("ring:4").fastest(1 << 20) is not None

    def hangs(*_):
        raise VerificationError(Diagnostic("CS603", "the program does not finish"))

    monkeypatch.setattr(simulate, "prepare", hangs)
    assert library("ring:4").fastest(1 << 20) is None


def test_a_limit_decides_only_whether_the_fastest_is_told():
    drawn, sizes = Random(5), [1 << shift for shift in range(10, 31, 4)]
    exact = {size: library("ring:6").fastest(size) for size in sizes}
    asked = library("ring:6")
    for _ in range(60):
        size = drawn.choice(sizes)
        seconds, name = exact[size]
        below = seconds * drawn.choice((0.01, 0.5, 0.999, 1, 1.001, 3))
        assert asked.fastest(size, below) == ((seconds, name) if seconds < below else None)


def test_what_loads_alone_make_too_slow_is_not_simulated(monkeypatch):
    asked = library("ring:6")
    assert asked.fits
    monkeypatch.setattr(Prepared, "points", None)
    assert asked.fastest(1 << 30, below=1e-6) is None


@pytest.mark.parametrize(
    ("runtime", "nodes", "gpus"), [("msccl", 2, 8), ("rccl", 2, 6), ("rccl", 3, 4)]
)
def test_a_search_makes_the_programs_of_the_library(runtime, nodes, gpus):
    """Its own are made for the sizes of the file, which the library has no limits of."""
    machine = api.load_topology("gb200-nvl72", nodes=nodes, settings={"gpus": str(gpus)})
    problem = api.make_problem(machine, "allreduce")
    case = Case(problem, runtime, (1 << 26, 1 << 30), min_bytes=1 << 20)
    asked = Library(case)
    assert asked.is_made_for(case, "Simple")
    assert not asked.is_made_for(case, "LL")
    found = find_plan(case, Objective((0.1, 0.9)), Wish(), Means(), held=asked.plans)
    made = dict(asked.make())
    assert found.workshop.programs_held.keys() == made.keys()
    for plan, held in found.workshop.programs_held.items():
        assert held.headed(made[plan].header) == made[plan]


def test_only_an_open_search_tries_the_algorithms_of_the_library():
    fixed = (
        {"algorithm": "forest"},
        {"passes": "build-ring"},
        {"settings": {"trees": 1}},
        {"level": 0},
    )
    assert Wish().is_open
    assert not any(Wish(**one).is_open for one in fixed)
