"""Small correct programs, built by hand from the textbook algorithms."""

from __future__ import annotations

from dataclasses import dataclass, field

from colsynth.model import (
    Collective,
    Gpu,
    Header,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Wait,
)

NO_PEER = None


@dataclass
class Builder:
    """Collects threadblocks of every rank."""

    collective: Collective
    ranks: int
    chunks: int
    scratch: int = 0
    protocol: str = "Simple"
    in_place: bool = True
    out_of_place: bool = True
    max_bytes: int | None = 2**30
    blocks: dict[int, list[Threadblock]] = field(default_factory=dict)

    def block(self, rank, send, recv, steps, channel=0) -> int:
        """Add a threadblock and return its id."""
        blocks = self.blocks.setdefault(rank, [])
        blocks.append(Threadblock(len(blocks), send, recv, channel, tuple(steps)))
        return len(blocks) - 1

    def program(self, name: str = "textbook") -> ThreadblockProgram:
        shard = self.chunks // self.ranks
        inputs = shard if self.collective is Collective.ALLGATHER else self.chunks
        outputs = shard if self.collective is Collective.REDUCE_SCATTER else self.chunks
        gpus = tuple(
            Gpu(rank, inputs, outputs, self.scratch, tuple(self.blocks.get(rank, ())))
            for rank in range(self.ranks)
        )
        channels = 1 + max(b.channel for gpu in gpus for b in gpu.threadblocks)
        header = Header(
            name=name,
            collective=self.collective,
            protocol=self.protocol,
            ranks=self.ranks,
            chunks=self.chunks,
            channels=channels,
            in_place=self.in_place,
            out_of_place=self.out_of_place,
            min_bytes=1,
            max_bytes=self.max_bytes,
        )
        return ThreadblockProgram(header, gpus)


def step(op, source=None, target=None, count=1, wait=None, signals=False) -> Step:
    """Return a step; operands are texts such as ``"o3"``."""
    slots = [None if text is None else Slot(text[0], int(text[1:])) for text in (source, target)]
    waits = () if wait is None else (Wait(*wait),)
    return Step(op, slots[0], slots[1], count, waits, signals)


def nop(wait) -> Step:
    return Step("nop", None, None, 0, (Wait(*wait),))


def ring_allreduce(ranks: int, count: int = 1) -> ThreadblockProgram:
    """Reduce-scatter then allgather around a ring, fused; `count` chunks travel together."""
    made = Builder(Collective.ALLREDUCE, ranks, ranks * count)
    for rank in range(ranks):
        following, previous = (rank + 1) % ranks, (rank - 1) % ranks

        def slot(buffer, distance, rank=rank):
            return f"{buffer}{(rank - distance) % ranks * count}"

        steps = [step("s", slot("i", 0), None, count)]
        steps += [step("rrs", slot("i", d), None, count) for d in range(1, ranks - 1)]
        steps.append(step("rrcs", slot("i", ranks - 1), slot("o", ranks - 1), count))
        # Behind the turn the distances start again, with the chunk that is now complete.
        steps += [step("rcs", None, slot("o", d), count) for d in range(ranks - 2)]
        steps.append(step("r", None, slot("o", ranks - 2), count))
        made.block(rank, following, previous, steps)
    return made.program()


def allpairs_allreduce(ranks: int, count: int = 1) -> ThreadblockProgram:
    """Every rank sums its shard from scratch with chained reductions, then sends it out."""
    made = Builder(Collective.ALLREDUCE, ranks, ranks * count, scratch=(ranks - 1) * count)
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        mine = rank * count
        reducer = len(peers)
        chain = [step("cpy", f"i{mine}", f"o{mine}", count)]
        chain += [nop((block, 1)) for block in range(len(peers) - 1)]
        for position in range(len(peers)):
            last = position == len(peers) - 1
            wait = (reducer - 1, 1) if position == 0 else None
            slot = f"s{position * count}"
            chain.append(step("re", slot, f"o{mine}", count, wait, signals=last))
        for position, peer in enumerate(peers):
            steps = [
                step("s", f"i{peer * count}", None, count),
                step("r", None, f"s{position * count}", count, signals=True),
                step("s", f"o{mine}", None, count, (reducer, len(chain) - 1)),
                step("r", None, f"o{peer * count}", count),
            ]
            made.block(rank, peer, peer, steps)
        made.block(rank, NO_PEER, NO_PEER, chain)
    return made.program()


def allpairs_allgather(ranks: int) -> ThreadblockProgram:
    """Every rank sends its chunk to every other and copies its own."""
    made = Builder(Collective.ALLGATHER, ranks, ranks)
    for rank in range(ranks):
        for peer in range(ranks):
            if peer != rank:
                steps = [step("s", "i0"), step("r", None, f"o{peer}")]
                made.block(rank, peer, peer, steps)
        made.block(rank, NO_PEER, NO_PEER, [step("cpy", "i0", f"o{rank}")])
    return made.program()


def ring_allgather(ranks: int, shard: int = 2) -> ThreadblockProgram:
    """Chunks travel around the ring; sending and receiving in different threadblocks."""
    made = Builder(Collective.ALLGATHER, ranks, ranks * shard)
    for rank in range(ranks):
        following, previous = (rank + 1) % ranks, (rank - 1) % ranks
        passed = [(rank - d) % ranks * shard for d in range(1, ranks)]
        receives = [step("r", None, f"o{c}", shard, signals=c != passed[-1]) for c in passed]
        sends = [step("s", "i0", None, shard)]
        sends += [step("s", f"o{c}", None, shard, (0, n)) for n, c in enumerate(passed[:-1])]
        made.block(rank, NO_PEER, previous, receives)
        made.block(rank, following, NO_PEER, sends)
        made.block(rank, NO_PEER, NO_PEER, [step("cpy", "i0", f"o{rank * shard}", shard)])
    return made.program()


def doubling_allgather(ranks: int, *, max_bytes: int | None = 2**30) -> ThreadblockProgram:
    """Recursive doubling, in place: round r exchanges 2**r chunks with rank xor 2**r."""
    made = Builder(Collective.ALLGATHER, ranks, ranks, out_of_place=False, max_bytes=max_bytes)
    for rank in range(ranks):
        size, previous = 1, None
        while size < ranks:
            peer = rank ^ size
            have, get = rank & ~(size - 1), peer & ~(size - 1)
            more = size * 2 < ranks
            steps = [
                step("s", f"o{have}", None, size, None if previous is None else (previous, 1)),
                step("r", None, f"o{get}", size, signals=more),
            ]
            previous = made.block(rank, peer, peer, steps)
            size *= 2
    return made.program()


def direct_reduce_scatter(ranks: int) -> ThreadblockProgram:
    """In place: every shard is summed by its owner, one arrival after the other."""
    made = Builder(Collective.REDUCE_SCATTER, ranks, ranks, out_of_place=False)
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        for position, peer in enumerate(peers):
            wait = None if position == 0 else (position - 1, 0)
            last = position == len(peers) - 1
            slot = f"i{rank}"
            steps = [step("rrc", slot, slot, 1, wait, signals=not last)]
            made.block(rank, NO_PEER, peer, steps)
        for peer in peers:
            made.block(rank, peer, NO_PEER, [step("s", f"i{peer}")])
    return made.program()


def chain_broadcast(ranks: int, chunks: int = 2, protocol: str = "LL") -> ThreadblockProgram:
    """Rank 0 sends down a chain."""
    made = Builder(Collective.BROADCAST, ranks, chunks, protocol=protocol)
    made.block(0, 1, NO_PEER, [step("s", f"i{c}") for c in range(chunks)])
    made.block(0, NO_PEER, NO_PEER, [step("cpy", "i0", "o0", chunks)])
    for rank in range(1, ranks):
        last = rank == ranks - 1
        op = "r" if last else "rcs"
        steps = [step(op, None, f"o{c}") for c in range(chunks)]
        made.block(rank, None if last else rank + 1, rank - 1, steps)
    return made.program()


def chain_reduce(ranks: int, chunks: int = 2, protocol: str = "LL") -> ThreadblockProgram:
    """The last rank starts; rank 0 ends with the sum."""
    made = Builder(Collective.REDUCE, ranks, chunks, protocol=protocol)
    made.block(0, NO_PEER, 1, [step("rrc", f"i{c}", f"o{c}") for c in range(chunks)])
    for rank in range(1, ranks):
        first = rank == ranks - 1
        op = "s" if first else "rrs"
        steps = [step(op, f"i{c}") for c in range(chunks)]
        made.block(rank, rank - 1, None if first else rank + 1, steps)
    return made.program()


def direct_alltoall(ranks: int) -> ThreadblockProgram:
    """Every block goes straight to its rank; out of place."""
    made = Builder(Collective.ALLTOALL, ranks, ranks, in_place=False)
    for rank in range(ranks):
        for peer in range(ranks):
            if peer != rank:
                steps = [step("s", f"i{peer}"), step("r", None, f"o{peer}")]
                made.block(rank, peer, peer, steps)
        made.block(rank, NO_PEER, NO_PEER, [step("cpy", f"i{rank}", f"o{rank}")])
    return made.program()


ALL = {
    "ring-allreduce": ring_allreduce(4),
    "allpairs-allreduce": allpairs_allreduce(4),
    "allpairs-allreduce-wide": allpairs_allreduce(3, 2),
    "allpairs-allgather": allpairs_allgather(4),
    "ring-allgather": ring_allgather(4),
    "doubling-allgather": doubling_allgather(4),
    "direct-reduce-scatter": direct_reduce_scatter(4),
    "chain-broadcast": chain_broadcast(4),
    "chain-reduce": chain_reduce(4),
    "direct-alltoall": direct_alltoall(4),
}
"""Every program, right in each mode it claims."""
