"""Connections over GPUs that a runtime does not pass."""

from __future__ import annotations

from colsynth import api
from colsynth.runtimes import profile
from colsynth.simulate.passed import passed_notes


def program_of(machine, runtime, collective, algorithm):
    problem = api.make_problem(machine, collective)
    done = api.compile(problem, runtime, algorithm=algorithm, level=0, several=False)
    return done.artefacts[0].program


def test_they_are_named_where_a_runtime_passes_fewer_gpus():
    """NCCL sends from the NIC of another GPU (PXN), as `allpairs` has it; RCCL does not."""
    healthy = api.load_topology("dgx-h100", nodes=2)
    damaged = api.damage(healthy, nics=["nic0.3"]).topology
    program = program_of(damaged, "msccl", "allgather", "allpairs")
    assert passed_notes(program, damaged, profile("msccl")) == ()
    assert passed_notes(program, damaged, profile("rccl"))


def test_a_file_of_the_healthy_machine_passes_them_where_a_nic_is_missing():
    healthy = api.load_topology("dgx-h100", nodes=2)
    damaged = api.damage(healthy, nics=["nic0.3"]).topology
    program = program_of(healthy, "rccl", "allreduce", "rails")
    assert passed_notes(program, healthy, profile("rccl")) == ()
    (note,) = passed_notes(program, damaged, profile("rccl"))
    assert "2 connections, such as gpu0.3 -> gpu1.3," in note
