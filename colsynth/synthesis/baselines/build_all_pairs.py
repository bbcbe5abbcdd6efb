"""Pass build-all-pairs: Problem -> ChunkProgram of transfers between all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import require_least
from colsynth.model import ChunkProgram, Collective, Direction, Ordering, Origin, Problem
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.loaded_routes import connections
from colsynth.synthesis.baselines.refusals import require_collective, unfit
from colsynth.synthesis.baselines.relayed_pairs import relayed_pairs, two_shot_pairs
from colsynth.synthesis.baselines.replicated import Replicated
from colsynth.synthesis.baselines.script import Script

SERVED = (
    Collective.ALLREDUCE,
    Collective.ALLGATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALLTOALL,
)


@dataclass(frozen=True, slots=True)
class BuildAllPairs(Replicated):
    """Send everything straight to whoever needs it: the one-shot all-pairs of libraries.

    In an allreduce every rank sends its whole message to all others and adds up what they
    send, all in the same order: one step and no waiting, for N - 1 times the data. Other
    collectives follow the order of pairwise exchange: in round k each rank sends to the one
    k places on, so that no two send to the same.

    One step is all there is to it. Pairs without a way through no third GPU take connections that
    pass others, as far as the runtime has them (`Profile.passes_on`). Where these do not reach
    everyone, data stops at other GPUs on the way (`relayed_pairs`).

    In two shots, an allreduce adds up every shard at its owner, which sends the sum to everyone:
    a step more, for less data. `rails` do so, too, but need a way between every two GPUs of a box,
    and more threadblocks.

    Parameters
    ----------
    instances : int
        Parallel copies of the whole program, each with its own part of every shard.
    shots : int
        1 or 2, of an allreduce. Other collectives always take one.
    """

    shots: int = 1

    name: ClassVar[str] = "build-all-pairs"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("instances", (1, 2, 4, 8), ladder=True),)

    def __post_init__(self) -> None:
        Replicated.__post_init__(self)
        require_least("shots", self.shots, 1, 2)

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        """Return one transfer per pair.

        Raises
        ------
        InputError
            CS311: the collective has a root. CS312: there are more arrivals on the way than the
            runtime adds in one go.
        InfeasibleError
            CS302: no data can pass between some two GPUs.
        """
        require_collective("allpairs", value, SERVED)
        size, collective = value.topology.size, value.collective
        ways = connections(value.topology, target.profile, pairs(size))
        if collective is Collective.ALLREDUCE and self.shots == 2:
            return two_shot_pairs(value, ways, self.instances)
        if not all(ways.joins(*pair) for pair in pairs(size)):
            longest = target.profile.longest_chain
            if collective is Collective.ALLREDUCE and longest is not None and size - 1 > longest:
                reason = f"{size - 1} arrivals are more than {longest} to add at once"
                raise unfit("allpairs", value.topology, reason, advice="use '-a allpairs2'")
            return relayed_pairs(value, ways, self.instances)
        script = Script(value, 1 if collective is Collective.ALLREDUCE else size, self.instances)
        inwards = collective in (Collective.ALLREDUCE, Collective.REDUCE_SCATTER)
        order = sorted(pairs(size)) if collective is Collective.ALLREDUCE else pairs(size)
        for source, sink in order:
            chunk = {
                Collective.ALLREDUCE: 0,
                Collective.ALLGATHER: source,
                Collective.REDUCE_SCATTER: sink,
                Collective.ALLTOALL: source * size + sink,
            }[collective]
            origin = Origin(0, Direction.IN if inwards else Direction.OUT, chunk)
            script.send(source, sink, chunk, origin=origin)
        return script.program(Ordering.FIXED)


def pairs(size: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of ranks, in rounds in which everyone sends to one and hears of one."""
    for distance in range(1, size):
        for source in range(size):
            yield source, (source + distance) % size
