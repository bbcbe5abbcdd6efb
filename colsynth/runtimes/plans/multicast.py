"""Plans over a switch that multicasts and reduces (NVLS): roles of threadblocks, and operations.

Every rank has a shard of the chunks, whose chunks belong to *teams* in turn. Shards of an allreduce
may differ by a chunk, so that any number of ranks serves messages of any size. A team has the
same threadblocks on every rank, for each group of peers one that fills and one that drains, and
between them one that uses the switch:

- *fill* copies what the switch is to add up into scratch, then meets the fillers of its peers: all
  copies of the shards are there, and scratch at the peers may be written.
- *switch* adds up the chunks of its own shard over all ranks, or takes its own, and stores them
  at all ranks.
- *drain* meets the drainers of its peers: their shards are stored here. It copies them to the
  output. Its filler then has the scratch back, `DEPTH` iterations later.

Data crosses the switch into scratch alone, so calls may lie anywhere in memory (contract 5 of its
first section). All ranks meet in every iteration, before anything is stored at a peer and before
a rank may end, so no launch touches what another one still needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.model import MULTICASTS, Collective, Gpu, Slot, Step, Threadblock
from colsynth.runtimes.plans.form import (
    SCRATCH_BYTES,
    Block,
    BlockChannels,
    Channels,
    Loop,
    Op,
    Operand,
    PlanGpu,
    RankGroup,
    Semaphore,
)
from colsynth.runtimes.plans.sequence import OP_CHANNELS, Sequence
from colsynth.runtimes.plans.shape import PlanShape, wrapping

DEPTH = 4
"""Iterations between filling and draining. U: one for each role, and one that waits."""
GROUPS = 16
"""Most groups: a semaphore for each in one operation, and no more channels in a threadblock."""
_STEPS = {"copy": "cpy", "glres": "glres", "gstore": "gstore"}


def scratch_of(unit: int, chunks: int) -> int:
    """Return the chunks of scratch with which an iteration moves so many bytes of a chunk at most.

    Parameters
    ----------
    unit : int
        Bytes; 0 for as many as there is room for, which more do not exceed.
    chunks : int
        That the program uses.
    """
    return wrapping(max(chunks, -(-SCRATCH_BYTES // (DEPTH * unit)) if unit else 0))


def groups(ranks: int, count: int) -> tuple[range, ...]:
    """Return the ranks that each of so many threadblocks that fill, or drain, is for."""
    return tuple(range(ranks * g // count, ranks * (g + 1) // count) for g in range(count))


@dataclass(frozen=True, slots=True)
class Teams:
    """Whose the chunks of a program are.

    Parameters
    ----------
    ranks, chunks, teams : int
        Each rank has a chunk for every team, or more.
    """

    ranks: int
    chunks: int
    teams: int

    def first(self, rank: int) -> int:
        """Return the first chunk of a rank's shard."""
        return -(-rank * self.chunks // self.ranks)

    def owner(self, chunk: int) -> int:
        """Return the rank in whose shard a chunk is."""
        return chunk * self.ranks // self.chunks

    def own(self, rank: int, team: int) -> range:
        """Return the chunks of a rank's shard that belong to a team."""
        first = self.first(rank)
        return range(first + (team - first) % self.teams, self.first(rank + 1), self.teams)

    def blocks(self, collective: Collective, rank: int, count: int) -> tuple[Threadblock, ...]:
        """Return the threadblocks of a rank, team by team: fillers, the switch's, drainers.

        Parameters
        ----------
        collective : Collective
        rank : int
        count : int
            Of fillers, and of drainers, in a team.
        """
        found: list[Threadblock] = []
        for team in range(self.teams):
            parts = [
                [chunk for peer in group for chunk in self.own(peer, team)]
                for group in groups(self.ranks, count)
            ]
            roles = [
                *(self._fill(collective, part) for part in parts),
                self._switch(collective, rank, team),
                *(self._drain(collective, rank, part) for part in parts),
            ]
            found += [
                Threadblock(len(found) + place, None, None, team, tuple(role))
                for place, role in enumerate(roles)
            ]
        return tuple(found)

    def _fill(self, collective: Collective, part: list[int]) -> list[Step]:
        """Return the copies of some chunks into scratch."""
        if collective is Collective.ALLGATHER:
            return []
        return [Step("cpy", Slot("i", k), Slot("s", k), 1) for k in part]

    def _switch(self, collective: Collective, rank: int, team: int) -> list[Step]:
        """Return the steps of a team on a rank that use the switch."""
        own = self.own(rank, team)
        if collective is Collective.ALLGATHER:
            first = self.first(rank)
            return [Step("gstore", Slot("i", k - first), Slot("s", k), 1) for k in own]
        return [Step("glres", Slot("s", k), Slot("s", k), 1) for k in own]

    def _drain(self, collective: Collective, rank: int, part: list[int]) -> list[Step]:
        """Return the copies of some chunks out of scratch, as far as they are in the result."""
        if collective is not Collective.REDUCE_SCATTER:
            return [Step("cpy", Slot("s", k), Slot("o", k), 1) for k in part]
        first, own = self.first(rank), [k for k in part if self.owner(k) == rank]
        return [Step("cpy", Slot("s", k), Slot("o", k - first), 1) for k in own]


def write_gpu(shape: PlanShape, gpu: Gpu) -> PlanGpu:
    """Return the program of one rank."""
    return _Writer(shape, gpu).write()


class _Writer:
    """Writes the program of one rank."""

    def __init__(self, shape: PlanShape, gpu: Gpu) -> None:
        self.shape, self.gpu, self.rank = shape, gpu, gpu.rank
        self.ranks = shape.program.header.ranks
        self.teams = sum(_switches(block) for block in gpu.threadblocks)
        self.size = len(gpu.threadblocks) // self.teams
        self.groups = groups(self.ranks, self.size // 2)
        self.others = [peer for peer in range(self.ranks) if peer != self.rank]

    def write(self) -> PlanGpu:
        """Return the program of the rank."""
        gpu, count = self.gpu, len(self.groups)
        whole = RankGroup(self.ranks, tuple(range(self.ranks)))
        blocks = tuple(self._block(block) for block in gpu.threadblocks)
        values = (DEPTH,) * count + (0,) * (2 * count)
        return PlanGpu(
            id=gpu.rank,
            input_chunks=gpu.input_chunks,
            output_chunks=gpu.output_chunks,
            scratch_chunks=self.shape.scratch_chunks,
            threadblocks=blocks,
            channels=(
                Channels("memory", tuple(self.others * (2 * self.teams))),
                Channels("switch", buffer_type="s", rank_groups=(whole,)),
            ),
            remote_buffers=(),
            semaphores=tuple(Semaphore(value) for value in values) * self.teams,
        )

    def _block(self, block: Threadblock) -> Block:
        team, role = divmod(block.id, self.size)
        count = len(self.groups)
        returned, filled, stored = (
            range((3 * team + which) * count, (3 * team + which + 1) * count) for which in range(3)
        )
        out = Sequence(lies_in=self.shape.lies_in(self.gpu))
        channels = BlockChannels("switch", (0,))
        if role == count:
            _semaphores(out, "sem_acquire", filled)
            self._steps(out, block)
            _semaphores(out, "sem_release", stored)
        else:
            drains, group = divmod(role, count + 1)
            channels = self._channels(team, drains, self.groups[group])
            _semaphores(out, "sem_acquire", (stored if drains else returned)[group : group + 1])
            if drains:
                _meet(out, len(channels.channel_ids))
            self._steps(out, block)
            if not drains:
                _meet(out, len(channels.channel_ids))
            _semaphores(out, "sem_release", (returned if drains else filled)[group : group + 1])
        loop = Loop(self.shape.slot_bytes // DEPTH, 1)
        used = (channels,) if channels.channel_ids else ()
        return Block(
            id=block.id,
            ops=(Op("pipeline", iter_context=loop, ops=out.closed()),),
            channels=used,
            channel=block.channel,
        )

    def _channels(self, team: int, drains: int, group: range) -> BlockChannels:
        """Return the channels to the peers of a group: each team has two to every peer."""
        first = (2 * team + drains) * len(self.others)
        places = (place for place, peer in enumerate(self.others) if peer in group)
        return BlockChannels("memory", tuple(first + place for place in places))

    def _steps(self, out: Sequence, block: Threadblock) -> None:
        for step in block.steps:
            source, target = _operand(step.source), _operand(step.target)
            if step.op == "cpy":
                out.add(Op("copy", (source,), (target,)))
                continue
            everywhere = Operand(target.index, 1, switch_channel_id=0)
            source = everywhere if step.op == "glres" else source
            out.add(Op(step.op, (source,), (everywhere,)))


def _switches(block: Threadblock) -> bool:
    """Whether a threadblock uses the switch."""
    return any(step.op in MULTICASTS for step in block.steps)


def _operand(slot: Slot | None) -> Operand:
    if slot is None:
        raise TypeError("steps over a switch have both operands")
    return Operand(slot.offset, 1, slot.buffer)


def _semaphores(out: Sequence, name: str, numbers: range) -> None:
    out.add(Op(name, semaphore_ids=tuple(numbers)))


def _meet(out: Sequence, channels: int) -> None:
    """Tell all peers that this threadblock is here, and wait until they are."""
    for name in ("signal", "wait") if channels else ():
        for first in range(0, channels, OP_CHANNELS):
            ids = tuple(range(first, min(first + OP_CHANNELS, channels)))
            out.add(Op(name, channel_ids=ids, channel_type="memory"))


def lift_gpu(gpu: PlanGpu) -> Gpu:
    """Return the program of a rank; `write_gpu` gives the plan again if colsynth wrote it."""
    blocks = tuple(
        Threadblock(block.id, None, None, block.channel or 0, tuple(_steps_of(block)))
        for block in gpu.threadblocks
    )
    return Gpu(gpu.id, gpu.input_chunks, gpu.output_chunks, gpu.scratch_chunks, blocks)


def _steps_of(block: Block) -> list[Step]:
    found = []
    for op in block.ops[0].ops:
        if op.name in _STEPS:
            source, target = (
                Slot(operand.type or "s", operand.index)
                for operand in (op.src_buff[0], op.dst_buff[0])
            )
            found.append(Step(_STEPS[op.name], source, target, 1))
    return found


def is_multicast(gpu: PlanGpu) -> bool:
    """Whether a rank has a switch channel."""
    return any(channels.channel_type == "switch" for channels in gpu.channels)
