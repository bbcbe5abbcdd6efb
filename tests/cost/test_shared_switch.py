"""The switch that adds up and copies: what is told of it is what files can have of it."""

import pytest

from colsynth import api
from colsynth.cli._allreduce import allreduce_rows
from colsynth.compile.capabilities import capability_notes
from colsynth.cost.shared_switch import MOST_GPUS, switch_rate, usable_switch
from colsynth.errors import InputError
from colsynth.lowering.build_multicast import BuildMulticast
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.search.wish import algorithm_names

MSCCLPP = profile("mscclpp")


@pytest.mark.parametrize(("gpus", "fits"), [(8, True), (MOST_GPUS, True), (MOST_GPUS + 1, False)])
def test_no_more_is_told_of_a_switch_than_files_can_have(gpus, fits):
    topology = api.load_topology("gb200-nvl72", settings={"gpus": str(gpus)})
    problem = api.make_problem(topology, "allreduce")
    assert (usable_switch(problem, MSCCLPP) is not None) == fits
    assert (switch_rate(topology) is not None) == fits
    assert ("multicast" in algorithm_names(problem, profile=MSCCLPP)) == fits
    assert any("-a multicast" in note for note in capability_notes(problem, MSCCLPP)) == fits
    rows = dict(allreduce_rows(topology, api.allreduce_bound(problem)))
    assert "in network" in rows
    assert ("NVLS" in rows) == fits


def test_a_file_for_more_gpus_is_refused():
    topology = api.load_topology("gb200-nvl72", settings={"gpus": str(MOST_GPUS + 1)})
    problem = api.make_problem(topology, "allreduce")
    with pytest.raises(InputError, match=f"for all GPUs, {MOST_GPUS} at most"):
        BuildMulticast().run(problem, aim(problem, MSCCLPP, "Simple", None, None))
