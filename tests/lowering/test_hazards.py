"""Waits: what conflicts, less what messages and other waits imply."""

import pytest

from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import Columns
from colsynth.lowering.hazards import operations, waits
from colsynth.lowering.layout import Layout
from colsynth.lowering.place_slots import PlaceSlots
from colsynth.model import Collective


def cells(layout, rank, transfer, slot, in_place):
    """Yield every chunk of memory that a slot stands for."""
    for k in range(transfer.count if slot else 0):
        buffer, offset = slot.buffer, slot.offset + k
        if in_place and buffer == "i":
            shift = rank * layout.shard
            if layout.problem.collective is Collective.REDUCE_SCATTER:
                inside = 0 <= offset - shift < layout.shard
                buffer, offset = ("o", offset - shift) if inside else ("i", offset)
            else:
                gathers = layout.problem.collective is Collective.ALLGATHER
                buffer, offset = "o", offset + shift * gathers
        yield rank, buffer, offset


def conflicting(program, ops, in_place):
    """Return, per operation, all earlier ones that touch its memory, where either writes."""
    layout = Layout(program.problem, program.chunks)
    reads, writes = [], []
    for op in ops:
        transfer = program.transfers[op.transfer]
        read, operand, write = (
            set(cells(layout, op.rank, transfer, slot, in_place))
            for slot in (transfer.read, transfer.operand, transfer.write)
        )
        reads.append((set() if op.receives else read) | (set() if op.sends else operand))
        writes.append(set() if op.sends else write)
    return [
        {m for m in range(n) if writes[n] & (reads[m] | writes[m]) or reads[n] & writes[m]}
        for n in range(len(ops))
    ]


def homes(transfers):
    """Return a set per transfer: those that prerequisites join it to, but for first copies."""
    found = [{n} for n in range(len(transfers))]
    for number, transfer in enumerate(transfers):
        for other in transfer.after:
            if not transfers[other].is_local or transfers[other].after:
                both = found[number] | found[other]
                for member in both:
                    found[member] = both
    return found


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
@pytest.mark.parametrize("runtime", ["msccl", "rccl"])
@pytest.mark.parametrize("in_place", [False, True])
def test_waits_and_messages_imply_every_conflict_and_no_wait_is_implied(
    lowered, collective, runtime, in_place
):
    program = lowered("dgx-1v", collective, runtime=runtime, until=PlaceSlots)
    columns = Columns.of(program.transfers)
    layout = Layout(program.problem, program.chunks)
    ops = operations(columns)
    needed = waits(columns, ChunkRanges(program.transfers, layout.grain), layout, in_place)
    home = homes(program.transfers)
    past, near = [], []
    for number, op in enumerate(ops):
        causes = [*needed[number], number - 1] if op.receives else needed[number]
        past.append(set().union(*({m} | past[m] for m in causes)))
        near.append(set(causes))
        for m in causes:
            near[-1] |= near[m] if ops[m].transfer in home[op.transfer] else set()
    for number, wanted in enumerate(conflicting(program, ops, in_place)):
        found = needed[number]
        assert set(found) <= wanted <= past[number]
        same = [late for late in found if ops[late].transfer in home[ops[number].transfer]]
        assert not any(early in near[late] for early in found for late in same)
