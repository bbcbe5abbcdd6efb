"""Programs to simulate: random ones that cannot deadlock, and rings as NCCL runs them."""

from __future__ import annotations

import random
from fractions import Fraction

from colsynth.model import (
    Collective,
    Gpu,
    Header,
    Kind,
    Link,
    Node,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Topology,
    Wait,
)

O0 = Slot("o", 0)


def header(ranks, chunks, protocol="Simple", collective=Collective.ALLREDUCE, channels=1):
    return Header("test", collective, protocol, ranks, chunks, channels, True, False)


def step(op, count=1, waits=(), signals=False, source=O0, target=O0):
    return Step(op, source, target, count, tuple(waits), signals)


def program_of(blocks, chunks, protocol="Simple", collective=Collective.ALLREDUCE):
    """Return a program; `blocks` holds for each rank (send, recv, channel, steps)."""
    gpus = tuple(
        Gpu(rank, chunks, chunks, 0, tuple(Threadblock(i, *b[:3], tuple(b[3])) for i, b in own))
        for rank, own in ((rank, list(enumerate(own))) for rank, own in enumerate(blocks))
    )
    return ThreadblockProgram(header(len(blocks), chunks, protocol, collective), gpus)


def nccl_ring(ranks, channels=1, protocol="Simple"):
    """Return the ring allreduce of NCCL: every rank begins with the chunk before its own."""
    fused = ["rrs"] * (ranks - 2) + ["rrcs"] + ["rcs"] * (ranks - 2)
    steps = [step(op) for op in ("s", *fused, "r")]
    blocks = [
        [((rank + 1) % ranks, (rank - 1) % ranks, channel, steps) for channel in range(channels)]
        for rank in range(ranks)
    ]
    return program_of(blocks, ranks * channels, protocol)


def star_topology(bandwidths, latency=Fraction(1, 10**6)):
    """Return GPUs around one switch, each on links of its own bandwidth."""
    nodes = [Node(f"gpu{i}", Kind.GPU, 0) for i in range(len(bandwidths))]
    nodes.append(Node("switch", Kind.SWITCH, 0))
    links = []
    for index, bandwidth in enumerate(bandwidths):
        links.append(Link(index, len(bandwidths), Fraction(bandwidth), latency))
        links.append(Link(len(bandwidths), index, Fraction(bandwidth), latency))
    links.sort(key=lambda link: (link.source, link.target))
    return Topology("star", tuple(nodes), tuple(links), tuple(range(len(bandwidths))))


def random_topology(rng, ranks):
    """Return a clique of uneven links, or GPUs around a switch."""
    rates = [10**9 * rng.choice((1, 5, 12, 25, 40, 100)) for _ in range(ranks * ranks)]
    if rng.random() < 0.5:
        return star_topology(rates[:ranks], Fraction(rng.randrange(3), 10**6))
    nodes = tuple(Node(f"gpu{i}", Kind.GPU, rng.randrange(2)) for i in range(ranks))
    links = tuple(
        Link(a, b, Fraction(rates[a * ranks + b]), Fraction(rng.randrange(3), 10**6))
        for a in range(ranks)
        for b in range(ranks)
        if a != b
    )
    return Topology("clique", nodes, links, tuple(range(ranks)))


class _Rank:
    """Threadblocks of a rank while messages are handed out."""

    def __init__(self):
        self.blocks = []

    def find(self, side, peer, channel, other=None):
        """Return the block with this peer; a new one may get `other` on its other side."""
        for number, block in enumerate(self.blocks):
            if block["channel"] == channel and block[side] == peer:
                return number
        block = {"send": None, "recv": None, "channel": channel, "steps": []}
        block[side] = peer
        if other is not None:
            block["recv" if side == "send" else "send"] = other
        self.blocks.append(block)
        return len(self.blocks) - 1

    def owned(self, side, peer, channel):
        return any(b["channel"] == channel and b[side] == peer for b in self.blocks)


def random_program(rng: random.Random, ranks: int, protocol: str) -> ThreadblockProgram:
    """Return chains of messages in one global order, with waits on earlier steps of a rank."""
    found = [_Rank() for _ in range(ranks)]
    for _ in range(rng.randint(3, 10)):
        path = rng.sample(range(ranks), rng.randint(2, min(4, ranks)))
        channel, count = rng.randrange(2), rng.randint(1, 4)
        for place, rank in enumerate(path):
            recv = path[place - 1] if place else None
            send = path[place + 1] if place + 1 < len(path) else None
            _pass_on(rng, found[rank], recv, send, channel, count)
        local = found[rng.choice(path)]
        _add(rng, local, rng.randrange(len(local.blocks)), step(rng.choice(("cpy", "re")), count))
    blocks = [
        [(b["send"], b["recv"], b["channel"], b["steps"]) for b in rank.blocks] for rank in found
    ]
    return program_of(blocks, rng.choice((1, 4, 16)), protocol)


def _pass_on(rng, rank, recv, send, channel, count):
    """Give a message that comes and goes to one fused step, or to two."""
    if recv is not None and send is not None:
        fresh = not rank.owned("recv", recv, channel) and not rank.owned("send", send, channel)
        into = rank.find("recv", recv, channel, send if fresh and rng.random() < 0.7 else None)
        out = rank.find("send", send, channel)
        if into == out:
            _add(rng, rank, into, step(rng.choice(("rcs", "rrs", "rrcs")), count))
            return
    if recv is not None:
        block = rank.find("recv", recv, channel)
        _add(rng, rank, block, step(rng.choice(("r", "rrc")), count))
    if send is not None:
        _add(rng, rank, rank.find("send", send, channel), step("s", count))


def _add(rng, rank, number, new):
    """Append a step, at times behind nops and waiting for steps of other blocks."""
    steps = rank.blocks[number]["steps"]
    others = [n for n, b in enumerate(rank.blocks) if n != number and b["steps"]]
    chosen = rng.sample(others, min(len(others), rng.choice((0, 0, 0, 1, 2))))
    waits = []
    for other in chosen:
        theirs = rank.blocks[other]["steps"]
        place = rng.choice([k for k, s in enumerate(theirs) if s.op != "nop"])
        theirs[place] = step(theirs[place].op, theirs[place].count, theirs[place].waits, True)
        waits.append(Wait(other, place))
    steps.extend(step("nop", 0, (wait,)) for wait in waits[:-1])
    steps.append(step(new.op, new.count, waits[-1:]))
