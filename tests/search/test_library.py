"""The library by itself, as far as our baselines tell."""

from colsynth import api, simulate
from colsynth.errors import Diagnostic, VerificationError
from colsynth.search.case import Case
from colsynth.search.library import Library


def library(machine):
    problem = api.make_problem(api.load_topology(machine), "allreduce")
    return Library(Case(problem, "msccl", (1 << 20,)))


def test_an_algorithm_of_ours_that_hangs_says_nothing_of_the_library(monkeypatch):
    assert library("ring:4").fastest(1 << 20) is not None

    def hangs(*_):
        raise VerificationError(Diagnostic("CS603", "the program does not finish"))

    monkeypatch.setattr(simulate, "prepare", hangs)
    assert library("ring:4").fastest(1 << 20) is None
