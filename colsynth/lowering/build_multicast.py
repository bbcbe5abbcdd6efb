"""Pass build-multicast: Problem -> ThreadblockProgram over a switch that multicasts and reduces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.cost.shared_switch import MOST_GPUS, SERVED, STORES_SINCE, planned_switch
from colsynth.errors import Diagnostic, InputError, LimitError, require_least
from colsynth.lowering.emit import header_of
from colsynth.lowering.refusals import over_limit
from colsynth.lowering.spell_dependencies import LEAST_UNIT, fitted_to
from colsynth.model import ChunkProgram, Collective, Gpu, Problem, ThreadblockProgram
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target

_TEAMS = (1, 2, 4, 8, 16)
"""Instances that are tried. U: more would meet more often, with less data each."""
_UNITS = tuple(1 << exponent for exponent in range(12, 18))
"""Units that are tried, in bytes."""


@dataclass(frozen=True, slots=True)
class BuildMulticast:
    """Let a switch add up and copy (NVLS): each GPU reduces its shard there and stores it at all.

    The data crosses scratch, so every threadblock has one of three roles; see
    `colsynth.runtimes.plans.multicast`, which also spells the operations.

    Parameters
    ----------
    instances : int
        Parts of every shard, each with its own threadblocks; 0 is the power of two with which the
        most threadblocks that copy stay resident, of those that leave chunks enough bytes in the
        largest message.
    unit : int
        Most bytes of a chunk in an iteration, taken down to a power of two; 0 is as many as scratch
        has room for. More where the runtime could not count the iterations otherwise. Threadblocks
        work side by side from the second iteration on, but their roles meet in each.
    """

    name: ClassVar[str] = "build-multicast"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ThreadblockProgram
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("instances", (0, *_TEAMS), ladder=True),
        Choice("unit", (0, *_UNITS)),
    )

    instances: int = 0
    unit: int = 0

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 0)
        require_least("unit", self.unit, LEAST_UNIT if self.unit else 0)

    def run(self, value: Problem, target: Target) -> ThreadblockProgram:
        """Return the program.

        Raises
        ------
        InputError
            CS311: another collective; CS312: no switch that all GPUs share multicasts and
            reduces.
        LimitError
            CS323: files of the runtime cannot say it; CS402: too many threadblocks; CS222: the
            largest message has fewer bytes than its chunks need.
        """
        from colsynth.runtimes.plans.iterations import countable
        from colsynth.runtimes.plans.multicast import GROUPS, Teams, scratch_of

        _require(value, target)
        ranks, profile = value.topology.size, target.profile
        teams = self.instances or _most_teams(value, target)
        count = _groups(ranks, teams, profile) or -(-ranks // GROUPS)
        blocks = teams * (2 * count + 1)
        if blocks > profile.max_threadblocks:
            raise over_limit("threadblocks", blocks, profile.max_threadblocks, profile)
        chunks = _chunks(value, teams)
        if chunks > profile.max_offset:
            raise over_limit("chunks per buffer", chunks, profile.max_offset, profile)
        sharded_in = value.collective is Collective.ALLGATHER
        sharded_out = value.collective is Collective.REDUCE_SCATTER
        parts = Teams(ranks, chunks, teams)
        header = header_of(ChunkProgram(value, chunks, ()), teams, target)
        unit = countable(self.unit, header, profile.max_tiles) if self.unit else 0
        scratch = scratch_of(unit, chunks)
        gpus = tuple(
            Gpu(
                rank,
                teams if sharded_in else chunks,
                teams if sharded_out else chunks,
                scratch,
                parts.blocks(value.collective, rank, count),
            )
            for rank in range(ranks)
        )
        return fitted_to(ThreadblockProgram(header, gpus), target)


def _chunks(problem: Problem, teams: int) -> int:
    """Return into how many chunks so many teams cut the message."""
    chunks = problem.topology.size * teams
    if problem.collective is Collective.ALLREDUCE:  # any number, so one that divides messages
        chunks = 1 << (chunks - 1).bit_length()
    return chunks


def _most_teams(problem: Problem, target: Target) -> int:
    """Return the teams with the most threadblocks that copy, of those that the message allows."""
    from colsynth.runtimes.plans.shape import ALIGNED

    ranks, most = problem.topology.size, target.max_bytes
    allowed = [k for k in _TEAMS if most is None or ALIGNED * _chunks(problem, k) <= most]
    return max(allowed or _TEAMS[:1], key=lambda k: (k * _groups(ranks, k, target.profile), k))


def _groups(ranks: int, teams: int, profile: Profile) -> int:
    """Return how many threadblocks of a team can copy on either side; 0 where not enough can."""
    from colsynth.runtimes.plans.multicast import GROUPS

    count = min((profile.resident_threadblocks // teams - 1) // 2, ranks, GROUPS)
    return count if count * GROUPS >= ranks else 0


def _require(problem: Problem, target: Target) -> None:
    """Refuse what the program does not serve."""
    profile, topology = target.profile, problem.topology
    advice = "-a forest sends from GPU to GPU"
    if not profile.plans:
        phrase = f"a file for {profile.name} cannot say that a switch multicasts or reduces"
        raise LimitError(Diagnostic("CS323", phrase, help=f"take -r mscclpp, or: {advice}"))
    if problem.collective not in SERVED or problem.groups:
        what = "process groups" if problem.groups else problem.collective
        note = f"it serves {', '.join(SERVED)} of all GPUs"
        phrase = f"-a multicast does not serve {what}"
        raise InputError(Diagnostic("CS311", phrase, notes=(note,), help=advice))
    if target.protocol != "Simple":
        phrase = f"-a multicast does not send packets, which {target.protocol} stands for"
        raise LimitError(Diagnostic("CS323", phrase, help="take --protocol Simple"))
    stores = problem.collective is Collective.ALLGATHER
    if stores and tuple(profile.plans["version"]) < STORES_SINCE:
        phrase = f"plans for {profile.name} cannot store over a switch without adding up"
        note = "gstore exists from MSCCL++ 0.10 on"
        raise LimitError(Diagnostic("CS323", phrase, notes=(note,), help="take -r mscclpp@0.10"))
    if planned_switch(topology) is None:
        reason = f"no switch multicasts and reduces for all GPUs, {MOST_GPUS} at most, in one box"
        phrase = f"-a multicast does not fit {topology.name}"
        raise InputError(Diagnostic("CS312", phrase, notes=(reason,), help=advice))
