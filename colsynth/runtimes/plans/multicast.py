"""Plans over a switch that multicasts and reduces (NVLS): roles of threadblocks, and operations.

The chunks of every shard belong to *teams*: chunk k of each shard to team k. A team has the same
threadblocks on every rank, for each group of peers one that fills and one that drains, and between
them one that uses the switch:

- *fill* copies what the switch is to add up into scratch, then meets the fillers of its peers: all
  copies of the shards are there, and scratch at the peers may be written.
- *switch* adds up the chunk of its own shard over all ranks, or takes its own, and stores it at
  all ranks.
- *drain* meets the drainers of its peers: their shards are stored here. It copies them to the
  output. Its filler then has the scratch back, `DEPTH` iterations later.

Data crosses the switch into scratch alone, so calls may lie anywhere in memory (contract 5 of its
first section). All ranks meet in every iteration, before anything is stored at a peer and before
a rank may end, so no launch touches what another one still needs.
"""

from __future__ import annotations

from colsynth.model import MULTICASTS, Collective, Gpu, Slot, Step, Threadblock
from colsynth.runtimes.plans.form import (
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
from colsynth.runtimes.plans.shape import PlanShape

DEPTH = 4
"""Iterations between filling and draining. U: one for each role, and one that waits."""
GROUPS = 16
"""Most groups: a semaphore for each in one operation, and no more channels in a threadblock."""
_STEPS = {"copy": "cpy", "glres": "glres", "gstore": "gstore"}


def groups(ranks: int, count: int) -> tuple[range, ...]:
    """Return the ranks that each of so many threadblocks that fill, or drain, is for."""
    return tuple(range(ranks * g // count, ranks * (g + 1) // count) for g in range(count))


def team_of(collective: Collective, rank: int, ranks: int, team: int, teams: int) -> list[Step]:
    """Return the steps of a team on a rank in a row; each belongs to a role by its buffers.

    The order is that of data: copies into scratch, the switch, copies out of scratch.
    """
    own = rank * teams + team
    every = [peer * teams + team for peer in range(ranks)]
    gathers = collective is Collective.ALLGATHER
    filled = [] if gathers else every
    source = Slot("i", team) if gathers else Slot("s", own)
    steps = [Step("cpy", Slot("i", k), Slot("s", k), 1) for k in filled]
    steps.append(Step("gstore" if gathers else "glres", source, Slot("s", own), 1))
    if collective is Collective.REDUCE_SCATTER:
        return [*steps, Step("cpy", Slot("s", own), Slot("o", team), 1)]
    return [*steps, *(Step("cpy", Slot("s", k), Slot("o", k), 1) for k in every)]


def blocks_of(
    collective: Collective, rank: int, ranks: int, teams: int, count: int
) -> tuple[Threadblock, ...]:
    """Return the threadblocks of a rank, team by team: fillers, the one of the switch, drainers."""
    found: list[Threadblock] = []
    for team in range(teams):
        steps = team_of(collective, rank, ranks, team, teams)
        middle = next(place for place, step in enumerate(steps) if step.op in MULTICASTS)
        before, after = steps[:middle], steps[middle + 1 :]
        roles = [
            *(_for_group(before, group, teams) for group in groups(ranks, count)),
            (steps[middle],),
            *(_for_group(after, group, teams) for group in groups(ranks, count)),
        ]
        found += [
            Threadblock(len(found) + place, None, None, team, role)
            for place, role in enumerate(roles)
        ]
    return tuple(found)


def _for_group(copies: list[Step], group: range, teams: int) -> tuple[Step, ...]:
    """Return the copies of the shards of some ranks, told by the chunk in scratch."""
    found = []
    for step in copies:
        slots = (slot for slot in (step.source, step.target) if slot is not None)
        chunk = next(slot.offset for slot in slots if slot.buffer == "s")
        if chunk // teams in group:
            found.append(step)
    return tuple(found)


def write_gpu(shape: PlanShape, gpu: Gpu) -> PlanGpu:
    """Return the program of one rank."""
    return _Writer(shape, gpu).write()


class _Writer:
    """Writes the program of one rank."""

    def __init__(self, shape: PlanShape, gpu: Gpu) -> None:
        self.shape, self.gpu, self.rank = shape, gpu, gpu.rank
        self.ranks = shape.program.header.ranks
        self.teams = shape.program.header.chunks // self.ranks
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


def lift_gpu(gpu: PlanGpu, chunks: int) -> Gpu:
    """Return the program of a rank; `write_gpu` gives the plan again if colsynth wrote it."""
    blocks = tuple(
        Threadblock(block.id, None, None, block.channel or 0, tuple(_steps_of(block)))
        for block in gpu.threadblocks
    )
    return Gpu(gpu.id, gpu.input_chunks, gpu.output_chunks, chunks, blocks)


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
