from dataclasses import replace

import pytest

from colsynth import api
from colsynth.api import load_topology, make_problem
from colsynth.compile.modes import Mode
from colsynth.compile.result import file_name
from colsynth.search.objective import TIE

TOPOLOGY = load_topology("ring:4")


@pytest.mark.parametrize(
    ("name", "collective", "mode", "expected"),
    [
        ("dgx-a100 x2", "allgather", Mode.IN_PLACE, "dgx-a100-x2-allgather-rccl-inplace.xml"),
        ("lab", "reduce-scatter", Mode.OUT_OF_PLACE, "lab-reduce-scatter-rccl-outofplace.xml"),
        ("lab", "broadcast", Mode.BOTH, "lab-broadcast-root0-rccl.xml"),
        ("../../etc/passwd", "allgather", Mode.BOTH, "etc-passwd-allgather-rccl.xml"),
        ("-rf $(x) \u00b5", "allgather", Mode.BOTH, "rf-x-allgather-rccl.xml"),
        ("...", "allgather", Mode.BOTH, "allgather-rccl.xml"),
        ("long" * 100, "allgather", Mode.BOTH, "long" * 40 + "-allgather-rccl.xml"),
    ],
)
def test_names_are_made_of_safe_letters(name, collective, mode, expected):
    problem = make_problem(replace(TOPOLOGY, name=name), collective)
    assert file_name(problem, "rccl", mode) == expected


@pytest.mark.parametrize("size", [None, 2**20])
def test_times_are_predicted_only_of_sizes_that_use_the_file(size):
    """Where no usual size does, they are those of the nearest that do."""
    problem = api.make_problem(api.load_topology("ring:4"), "allreduce")
    for channels, usual in ((2, True), (3, False)):  # thirds of powers of two are no elements
        options = {"algorithm": "ring", "channels": channels, "min_bytes": 1, "size": size}
        done = api.compile(problem, "rccl", **options)
        sizes = [point.size_bytes for point in done.predicted]
        wanted = [size] if size else [2**20, 2**30]
        assert len(sizes) == len(wanted)
        assert all(map(done.taken().takes, sizes))
        assert (sizes == wanted) == usual
        pairs = zip(wanted, sizes, strict=True)
        assert all(0 <= most - near < done.taken().multiple for most, near in pairs)
        (file,) = done.artefacts
        found = api.simulate(file.data, "rccl", problem.topology, sizes)
        assert [x.seconds for x in found.points] == [x.seconds for x in done.predicted]
        assert done.limited_by


def test_predictions_hold_for_the_files_of_both_modes():
    """The root of a broadcast also copies its input out of place, which takes longer at a GiB."""
    problem = make_problem(load_topology("dgx-a100"), "broadcast")
    options = {"algorithm": "tree", "channels": 8, "level": 0}
    done = api.compile(problem, "mscclpp", several=True, **options)
    sizes = [point.size_bytes for point in done.predicted]
    told = (api.simulate(x.data, "mscclpp", problem.topology, sizes) for x in done.artefacts)
    times = [[point.seconds for point in found.points] for found in told]
    assert times[0][-1] < times[1][-1]
    assert [point.seconds for point in done.predicted] == pytest.approx(list(map(max, *times)))
    alone = api.compile(problem, "mscclpp", mode="out-of-place", **options)
    assert done.limited_by == alone.limited_by


@pytest.mark.parametrize(
    ("machine", "collective", "runtime"),
    [("ring:4", "broadcast", "msccl"), ("mesh:2x3", "allgather", "mscclpp")],
)
def test_the_slower_of_two_files_is_as_fast_as_alone(machine, collective, runtime):
    """Out of place, the copy of the input can take longer than all that is sent."""
    problem = make_problem(load_topology(machine), collective)
    seen = []
    both = api.compile(problem, runtime, several=True, watch=lambda *told: seen.append(told))
    alone = api.compile(problem, runtime, mode="out-of-place")
    assert both.predicted[-1].seconds <= TIE * alone.predicted[-1].seconds
    for mode in ("in-place", "out-of-place"):
        (artefact,) = (item for item in both.artefacts if item.mode == mode)
        assert [told[3] for told in seen if told[0] == mode][-1] == artefact.program
        assert artefact.program.header.in_place == (mode == "in-place")


@pytest.mark.parametrize("budget", [1, 20, 60])
def test_the_search_for_the_slower_file_keeps_within_the_budget(budget):
    counts = []
    api.compile(
        make_problem(load_topology("ring:4"), "broadcast"),
        "msccl",
        several=True,
        budget=budget,
        progress=lambda what, done, _: counts.append(done * what.startswith("compiling")),
    )
    assert max(counts) <= budget


@pytest.mark.parametrize("runtime", ["msccl", "torch"])
def test_a_compilation_is_shown_in_one_line_without_what_it_holds(runtime):
    done = api.compile(make_problem(TOPOLOGY, "allgather"), runtime, level=0)
    shown = str(done)
    assert shown.startswith(f"Compilation(allgather on ring:4, {runtime}, forest Simple trees=2, ")
    assert all(artefact.name in shown for artefact in done.artefacts)
    assert f"{done.predicted[-1].algbw / 1e9:.4g} GB/s at 1 GiB predicted" in shown
    assert max(map(len, (shown, *map(repr, done.artefacts)))) < 200
    assert "\n" not in shown
