"""Rounds executed with numbers, one rank after the other: slow, obvious, shares nothing."""

from __future__ import annotations

import numpy as np

from colsynth.model import Collective


def execute(program, in_place, seed=0):
    """Return (what every rank has in its output, what it should have), one number per chunk.

    Scratch and outputs begin with garbage; None for ranks whose output is of no account.
    """
    header = program.header
    ranks, chunks, kind = header.ranks, header.chunks, header.collective
    shard = chunks // ranks
    draw = np.random.default_rng(seed)
    gathers, scatters = kind is Collective.ALLGATHER, kind is Collective.REDUCE_SCATTER
    data = [draw.integers(1, 1 << 40, shard if gathers else chunks) for _ in range(ranks)]
    memory = []
    for rank in range(ranks):
        whole = draw.integers(1 << 41, 1 << 42, chunks)
        first = rank * shard
        own = slice(first, first + shard)
        inputs = whole[own] if gathers else whole
        inputs = inputs if in_place else np.empty_like(inputs)
        inputs[:] = data[rank]
        outputs = whole if in_place else draw.integers(1 << 41, 1 << 42, chunks)
        outputs = outputs[own] if scatters else outputs
        scratch = draw.integers(1 << 41, 1 << 42, program.scratch[rank])
        memory.append({"i": inputs, "o": outputs, "s": scratch})

    def run(rank, slot, count):
        return memory[rank][slot.buffer][slot.offset : slot.offset + count]

    for found in program.rounds:
        sent = [run(m.source, m.read, m.count).copy() for m in found.messages]
        for m, values in zip(found.messages, sent, strict=True):
            run(m.target, m.write, m.count)[:] = values
        for s in found.local:
            added = 0 if s.operand is None else run(s.rank, s.operand, s.count)
            run(s.rank, s.write, s.count)[:] = run(s.rank, s.read, s.count) + added
    return [memory[rank]["o"] for rank in range(ranks)], _wanted(header, data, shard)


def _wanted(header, data, shard):
    total, ranks = sum(data) if header.collective is not Collective.ALLTOALL else None, header.ranks
    match header.collective:
        case Collective.ALLREDUCE:
            return [total] * ranks
        case Collective.REDUCE:
            return [total if rank == header.root else None for rank in range(ranks)]
        case Collective.BROADCAST:
            return [data[header.root]] * ranks
        case Collective.ALLGATHER:
            return [np.concatenate(data)] * ranks
        case Collective.REDUCE_SCATTER:
            return [total[rank * shard :][:shard] for rank in range(ranks)]
        case _:
            parts = [x.reshape(ranks, shard) for x in data]
            return [np.concatenate([part[rank] for part in parts]) for rank in range(ranks)]


def is_right(program, seed=0):
    """Whether all outputs are right, in every mode that the program claims."""
    header = program.header
    claimed = ((True, header.in_place), (False, header.out_of_place))
    for in_place in (mode for mode, wanted in claimed if wanted):
        got, wanted = execute(program, in_place, seed)
        pairs = zip(got, wanted, strict=True)
        if not all(want is None or np.array_equal(have, want) for have, want in pairs):
            return False
    return True
