"""Where a limit is exceeded, the advice names what fits."""

import shlex

import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.compile import advice
from colsynth.errors import LimitError
from colsynth.pipeline.registry import ALGORITHMS

CASES = [
    # Everybody sends to 65 others, and RCCL has 64 threadblocks: nothing can be lowered.
    ("clique:66", "allgather", "-a forest", ["-a ring --channels 1"]),
    ("ring:4", "allreduce", "--instances 40", ["--instances ", "-a tree", "-a ring"]),
    ("ring:4", "allreduce", "-a ring --instances 40", ["--instances ", "-a tree", "-a ring"]),
    ("ring:4", "allreduce", "--instances 40 --trees 3", ["-a tree"]),
    ("ring:4", "allgather", "-a ten --chunks-per-gpu 2000", ["--chunks-per-gpu ", "-a ring"]),
]


def refused(capsys, *words):
    """Return the help of a compilation that a limit refuses."""
    assert run(["compile", *words, "-r", "rccl", "-o", "-"]) == 1
    shown = capsys.readouterr().err
    assert any(f"error[{code}]" in shown for code in ("CS401", "CS402"))
    (line,) = (line for line in shown.splitlines() if line.startswith("  help: "))
    return line.removeprefix("  help: ")


@pytest.mark.parametrize(("topology", "collective", "options", "named"), CASES)
def test_all_that_is_named_fits(topology, collective, options, named, capsys):
    case = [topology, "-c", collective]
    text = refused(capsys, *case, *shlex.split(options))
    ways = text.removeprefix("what fits: ").split("; or ")
    assert all(any(way.startswith(name) for way in ways) for name in named), ways
    for way in ways:
        words, _, dropped = way.partition(" without ")
        kept = [] if words.startswith("-a") else shlex.split(options)
        for option in dropped.split(", ") if dropped else []:
            assert option in options
        assert run(["compile", *case, *kept, *shlex.split(words), "-r", "rccl", "-o", "-"]) == 0
        capsys.readouterr()


def test_a_grid_is_named_where_peers_outnumber_threadblocks(capsys):
    text = refused(capsys, "clique:66", "-c", "alltoall", "-a", "pairwise")
    assert text == "what fits: -a two-level"


def test_nothing_is_named_where_nothing_fits(capsys):
    """67 GPUs are no grid: 66 peers each, and 64 threadblocks."""
    text = refused(capsys, "clique:67", "-c", "alltoall", "-a", "pairwise")
    assert text == "no algorithm fits: take fewer GPUs, for instance with --group"


def test_large_machines_are_not_tried(monkeypatch, capsys):
    monkeypatch.setattr(advice, "_MOST_WORK", 15)
    text = refused(capsys, "ring:4", "-c", "allreduce", "--instances", "40")
    assert text == "lower --instances; or try -a ring, where every GPU sends to one other"


def test_other_refusals_keep_their_own_advice():
    topology = api.load_topology("dgx-a100", nodes=2)
    with pytest.raises(LimitError, match="use --protocol LL128") as caught:
        api.compile(api.make_problem(topology, "broadcast"), "rccl", protocol="Simple")
    assert caught.value.diagnostic.code == "CS221"


@pytest.mark.parametrize("options", [{}, {"size": 1 << 20}, {"level": 0}, {"algorithm": "tree"}])
def test_a_broadcast_over_a_network_has_another_protocol_than_simple_by_default(options):
    machine = api.load_topology("gb200-nvl72", nodes=2, settings={"gpus": "4"})
    problem = api.make_problem(machine, "broadcast")
    assert api.compile(problem, "msccl", **options).artefacts[0].program.header.protocol != "Simple"


def test_segments_are_told_where_they_cost_other_sizes_something():
    """Not of a file that is for one size alone."""
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=2), "allgather")
    passes = ALGORITHMS["forest"].replace("lower-forest", "lower-forest{segments=1-1}")
    for size in (None, 2**20):
        made = api.compile(problem, "msccl", passes=passes, size=size, several=False)
        told = [note for note in made.notes if "2 segments" in note]
        assert len(told) == (size is None)
