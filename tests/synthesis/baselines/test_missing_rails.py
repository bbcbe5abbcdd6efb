"""Rails where a NIC or a GPU is missing, or boxes differ in size."""

from __future__ import annotations

from itertools import permutations

import pytest

from colsynth import api
from colsynth.errors import InputError
from colsynth.runtimes import profile
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.build_pipelined import BuildPipelined
from colsynth.synthesis.baselines.build_rails import BuildRails
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.rails import rails_of

MACHINES = {
    "a NIC": ("dgx-h100", 2, {"nics": ["nic0.3"]}),
    "NICs of both boxes": ("dgx-h100", 2, {"nics": ["nic0.3", "nic1.6"]}),
    "a NIC behind one leaf": ("dgx-a100", 2, {"nics": ["nic0.3"]}),
    "a GPU": ("dgx-h100", 2, {"gpus": ["gpu0.3"]}),
    "a GPU of three": ("mi300x", 3, {"gpus": ["gpu1.0"]}),
    "most GPUs": ("dgx-a100", 2, {"gpus": [f"gpu0.{gpu}" for gpu in range(6)]}),
    "all but a GPU": ("dgx-a100", 3, {"gpus": [f"gpu1.{gpu}" for gpu in range(7)]}),
}


def damaged(case):
    preset, nodes, lost = MACHINES[case]
    return api.damage(api.load_topology(preset, nodes=nodes), **lost).topology


@pytest.mark.parametrize("case", MACHINES)
def test_gpus_of_a_rail_are_joined_and_no_gpu_is_lost(case):
    machine = damaged(case)
    ways, rails = LoadedRoutes(machine), rails_of("rails", machine, profile("rccl"))
    assert all(ways.joins(*pair) for rail in rails for pair in permutations(rail, 2))
    boxes = [{machine.nodes[machine.ranks[rank]].box for rank in box} for box in rails.boxes]
    assert [len(box) for box in boxes] == [1] * len(machine.boxes)
    assert sorted(rank for box in rails.boxes for rank in box) == list(range(machine.size))


@pytest.mark.parametrize("preset", ["dgx-h100", "dgx-a100"])
def test_partners_keep_to_their_rail(preset):
    """Behind a missing GPU or NIC, whether a leaf joins rails or each has its own."""
    machine = api.damage(api.load_topology(preset, nodes=2), nics=["nic0.3"]).topology
    rails = rails_of("rails", machine, profile("rccl"))
    assert sorted(rails) == [(rank, rank + 8) for rank in range(8) if rank != 3]


def test_gpus_behind_a_missing_one_keep_to_their_rail():
    """They have other places than their partners, not other rails."""
    machine = damaged("a GPU")
    names = [machine.nodes[node].name for node in machine.ranks]
    rails = rails_of("rails", machine, profile("msccl"))
    along = [tuple(names[rank].partition(".")[2] for rank in rail) for rail in rails]
    assert sorted(along) == [(gpu, gpu) for gpu in "0124567"]
    assert names[rails.boxes[1][-1]] == "gpu1.3"


@pytest.mark.parametrize("case", MACHINES)
@pytest.mark.parametrize(
    ("algorithm", "runtime", "collective"),
    [
        *(
            ("rails", r, c)
            for r in ("msccl", "rccl", "torch")
            for c in ("allreduce", "reduce-scatter")
        ),
        *(("pipelined", r, "allreduce") for r in ("msccl", "rccl")),
    ],
)
def test_files_are_right(case, algorithm, runtime, collective):
    """They are verified, and calls of a power of two bytes use those of an allreduce.

    Every second machine has files for a size, and each machine for every second runtime.
    """
    problem = api.make_problem(damaged(case), collective)
    turn = [*MACHINES].index(case) + ("msccl", "rccl", "torch").index(runtime)
    options = {"level": 0, "size": 1 << 20 if turn % 2 else None, "several": False}
    done = api.compile(problem, runtime, algorithm=algorithm, **options)
    assert done.verified
    chunks = done.artefacts[0].program.header.chunks
    assert collective != "allreduce" or chunks & (chunks - 1) == 0


@pytest.mark.parametrize("strategy", ["shared", "spread"])
@pytest.mark.parametrize("case", ["a NIC", "most GPUs"])
def test_shards_of_gpus_on_no_rail_may_come_in_segments(case, strategy):
    """Far sums meet a GPU's own shard in one sum with the first strategy, or in the last step."""
    problem = api.make_problem(damaged(case), "reduce-scatter")
    lowering = f"assign-threadblocks{{strategy={strategy}}},spell-dependencies"
    passes = f"build-rails{{segments=2,strategy={strategy}}},{lowering}"
    done = api.compile(problem, "msccl", passes=passes, protocol="LL", several=False)
    assert done.verified


@pytest.mark.parametrize("lost", [{"gpus": ["gpu0.3"]}, {"gpus": ["gpu0.3", "gpu0.4"]}])
def test_shards_of_a_reduce_scatter_keep_to_powers_of_two(lost):
    """Each rank has one, so calls that divide among the ranks use the file."""
    machine = api.damage(api.load_topology("dgx-h100"), **lost).topology
    problem = api.make_problem(machine, "reduce-scatter")
    program = BuildRails().run(problem, Target(profile("msccl")))
    pieces = program.chunks // machine.size
    assert pieces & (pieces - 1) == 0


@pytest.mark.parametrize("build", [BuildRails, BuildPipelined])
def test_gpus_on_no_rail_have_no_shard_of_an_allreduce(build):
    problem = api.make_problem(damaged("most GPUs"), "allreduce")
    rails = rails_of("rails", problem.topology, profile("msccl"))
    program = build().run(problem, Target(profile("msccl")))
    adding = {t.target for t in program.transfers if t.reduces}
    assert adding == {rank for rail in rails for rank in rail}
    assert rails.count == 2


def test_the_search_finds_them():
    boxes = api.load_topology("gb200-nvl72", nodes=2, settings={"gpus": "4"})
    problem = api.make_problem(api.damage(boxes, nics=["nic0.3"]).topology, "allreduce")
    assert api.compile(problem, "msccl", size=1 << 16, several=False).algorithm == "rails"


def test_an_allgather_needs_all_gpus_on_rails():
    with pytest.raises(InputError) as caught:
        BuildPipelined().run(
            api.make_problem(damaged("a NIC"), "allgather"), Target(profile("rccl"))
        )
    assert "gpu0.3" in caught.value.diagnostic.phrase


def test_boxes_without_a_common_rail_are_refused():
    """Each two of three boxes share a leaf, all three none."""
    kept = ({0, 1}, {1, 2}, {2, 0})
    lost = [f"nic{box}.{n}" for box, rails in enumerate(kept) for n in set(range(8)) - rails]
    machine = api.damage(api.load_topology("dgx-h100", nodes=3), nics=lost).topology
    with pytest.raises(InputError) as caught:
        rails_of("rails", machine, profile("msccl"))
    assert caught.value.diagnostic.code == "CS312"
