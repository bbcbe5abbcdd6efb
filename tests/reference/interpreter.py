"""Executes a schedule file on numbers, one call at a time, under a given interleaving.

The slow and obvious twin of the verifier: it reads the file with the XML parser of the
standard library, gives every rank random integers, runs threadblocks in an order that a
seed decides, and compares the sums. Races show when some order gives another result.
"""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

SENDS = ("s", "rcs", "rrs", "rrcs")
RECEIVES = ("r", "rcs", "rrs", "rrc", "rrcs")
READS_SRC = ("s", "rrs", "rrc", "rrcs", "cpy", "re")
WRITES = ("r", "rcs", "rrc", "rrcs", "cpy", "re")
NEVER = (-1, -1)
OK, HANG, WRONG, REFUSED = "ok", "hang", "wrong", "refused"


class Refused(Exception):
    """The runtime would not load or connect this file, or would touch foreign memory."""


@dataclass
class Step:
    """One step of a threadblock with all its dependencies."""

    op: str
    src: tuple[str, int]
    dst: tuple[str, int]
    cnt: int
    waits: list[tuple[int, int]]
    ordinal: int
    flags: bool


@dataclass
class Block:
    """A threadblock and how far it is."""

    rank: int
    id: int
    send: tuple[int, int, int] | None
    recv: tuple[int, int, int] | None
    steps: list[Step]
    at: int = 0
    moved: int = 0
    result: tuple[list, list[int]] | None = None
    tile: int = 0


@dataclass
class Machine:
    """One call of the collective."""

    coll: str
    ranks: int
    chunks: int
    in_place: bool
    blocks: list[Block]
    memory: dict[tuple[int, str, int, int], int] = field(default_factory=dict)
    fifo: dict[tuple[int, int, int], list[list[int]]] = field(default_factory=dict)
    scratch: dict[int, int] = field(default_factory=dict)
    flags: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


def load(data: bytes, in_place: bool) -> Machine:
    """Return the program of a file, as the runtime would connect it."""
    root = ET.fromstring(data)
    coll = root.get("coll", "").replace("_", "")
    machine = Machine(coll, int(root.get("ngpus")), int(root.get("nchunksperloop")), in_place, [])
    ends: dict[tuple[int, int, int], set[str]] = {}
    for gpu in root:
        rank = int(gpu.get("id"))
        machine.scratch[rank] = int(gpu.get("s_chunks"))
        for tb in gpu:
            block = _block(rank, tb)
            machine.blocks.append(block)
            for name, end in ((block.send, "send"), (block.recv, "recv")):
                if name is None:
                    continue
                if end in ends.setdefault(name, set()):
                    raise Refused("two threadblocks share a connection")
                ends[name].add(end)
            if int(tb.get("chan")) >= int(root.get("nchannels")):
                raise Refused("channel is never connected")
    if any(len(found) != 2 for found in ends.values()):
        raise Refused("a connection has one end")
    if any(name[0] == name[1] for name in ends):
        raise Refused("a rank connects to itself")
    machine.fifo = {name: [] for name in ends}
    return machine


def _block(rank: int, tb: ET.Element) -> Block:
    send, recv, chan = (int(tb.get(key)) for key in ("send", "recv", "chan"))
    steps: list[Step] = []
    pending: list[tuple[int, int]] = []
    for ordinal, element in enumerate(tb):
        wait = (int(element.get("depid")), int(element.get("deps")))
        op = element.get("type")
        if op == "nop":
            pending.append(wait)
            continue
        if pending and wait[0] < 0:
            raise Refused("a chain of dependencies without an end")
        waits = [*pending, *([wait] if wait[0] >= 0 else [])]
        pending = []
        step = Step(
            op,
            (element.get("srcbuf"), int(element.get("srcoff"))),
            (element.get("dstbuf"), int(element.get("dstoff"))),
            int(element.get("cnt")),
            waits,
            ordinal,
            element.get("hasdep") == "1",
        )
        if (op in SENDS and send < 0) or (op in RECEIVES and recv < 0):
            raise Refused("no peer")
        if not 1 <= step.cnt <= 71:
            raise Refused("cnt")
        steps.append(step)
    out = None if send < 0 else (rank, send, chan)
    into = None if recv < 0 else (recv, rank, chan)
    return Block(rank, int(tb.get("id")), out, into, steps)


def sizes(machine: Machine) -> dict[str, int]:
    """Return the chunks of the user's buffers."""
    shard = machine.chunks // machine.ranks
    return {
        "i": shard if machine.coll == "allgather" else machine.chunks,
        "o": shard if machine.coll == "reducescatter" else machine.chunks,
    }


def place(machine: Machine, rank: int, buffer: str, offset: int, tile: int):
    """Return the memory cell of a chunk; aliases are one cell."""
    limit = machine.scratch[rank] if buffer == "s" else sizes(machine)[buffer]
    if not 0 <= offset < limit:
        raise Refused("outside a buffer")
    if machine.in_place and buffer != "s":
        shard = machine.chunks // machine.ranks
        if machine.coll == "allgather" and buffer == "i":
            offset += rank * shard
        if machine.coll == "reducescatter" and buffer == "o":
            offset += rank * shard
        buffer = "user"
    return rank, buffer, offset, tile


def run(data: bytes, *, in_place: bool, depth: int, group: int, tiles: int, order) -> str:
    """Execute a file once.

    `order` maps a list of ready threadblocks to the one that runs next.
    """
    try:
        machine = load(data, in_place)
        inputs = _fill(machine, tiles)
        while any(block.tile < tiles for block in machine.blocks):
            ready = [b for b in machine.blocks if b.tile < tiles and _ready(machine, b, depth)]
            if not ready:
                return HANG
            _act(machine, order(ready), group)
        return OK if _right(machine, inputs, tiles) else WRONG
    except Refused:
        return REFUSED


def _fill(machine: Machine, tiles: int):
    rng = random.Random(7)
    inputs = {}
    for rank in range(machine.ranks):
        for tile in range(tiles):
            for chunk in range(sizes(machine)["i"]):
                value = rng.getrandbits(60)
                inputs[rank, chunk, tile] = value
                machine.memory[place(machine, rank, "i", chunk, tile)] = value
    return inputs


def _step(block: Block) -> Step | None:
    return block.steps[block.at] if block.at < len(block.steps) else None


def _ready(machine: Machine, block: Block, depth: int) -> bool:
    step = _step(block)
    if step is None or block.result is not None:
        return True
    if block.moved == 0:
        for tb, k in step.waits:
            if machine.flags.get((block.rank, tb), NEVER) < (block.tile, k):
                return False
    if step.op in RECEIVES and not machine.fifo[block.recv]:
        return False
    return not (step.op in SENDS and len(machine.fifo[block.send]) >= depth)


def _act(machine: Machine, block: Block, group: int) -> None:
    """Make half a call of the threadblock's step: read and add, or write and send.

    Between the halves others may act, so that updates can be lost as they are on a GPU.
    """
    step = _step(block)
    if step is not None:
        first = block.moved
        count = min(group, step.cnt - first)
        if block.result is None:
            block.result = _take(machine, block, step, first, count)
            return
        _give(machine, block, step)
        block.moved += count
        if block.moved < step.cnt:
            return
        block.moved = 0
        if step.flags:
            machine.flags[block.rank, block.id] = (block.tile, step.ordinal)
        block.at += 1
    if block.at >= len(block.steps):
        block.at, block.tile = 0, block.tile + 1


def _take(machine: Machine, block: Block, step: Step, first: int, count: int):
    """Return the cells a call writes, and its data."""

    def cells(slot):
        spots = range(slot[1] + first, slot[1] + first + count)
        return [place(machine, block.rank, slot[0], k, block.tile) for k in spots]

    def read(slot):
        # Memory nobody wrote holds something that no sum of inputs hits by chance.
        return [machine.memory.get(cell, -(10**30) - hash(cell) % 997) for cell in cells(slot)]

    data = [0] * count
    if step.op in RECEIVES:
        data = machine.fifo[block.recv].pop(0)
        if len(data) != count:
            raise Refused("the two ends disagree on the size of a message")
    if step.op in READS_SRC:
        data = [a + b for a, b in zip(data, read(step.src), strict=True)]
    if step.op == "re":
        data = [a + b for a, b in zip(data, read(step.dst), strict=True)]
    return cells(step.dst) if step.op in WRITES else [], data


def _give(machine: Machine, block: Block, step: Step) -> None:
    cells, data = block.result
    block.result = None
    machine.memory.update(zip(cells, data, strict=False))
    if step.op in SENDS:
        machine.fifo[block.send].append(data)


def _right(machine: Machine, inputs, tiles: int) -> bool:
    if any(machine.fifo.values()):
        return False
    ranks, chunks, coll = machine.ranks, machine.chunks, machine.coll
    shard = chunks // ranks

    def total(chunk, tile):
        return sum(inputs[rank, chunk, tile] for rank in range(ranks))

    wanted = {
        "allreduce": lambda _, k, t: total(k, t),
        "reduce": lambda q, k, t: total(k, t) if q == 0 else None,
        "reducescatter": lambda q, k, t: total(q * shard + k, t),
        "allgather": lambda _, k, t: inputs[k // shard, k % shard, t],
        "broadcast": lambda _, k, t: inputs[0, k, t],
        "alltoall": lambda q, k, t: inputs[k // shard, q * shard + k % shard, t],
    }[coll]
    for rank in range(ranks):
        for tile in range(tiles):
            for chunk in range(sizes(machine)["o"]):
                want = wanted(rank, chunk, tile)
                got = machine.memory.get(place(machine, rank, "o", chunk, tile))
                if want is not None and got != want:
                    return False
            if not machine.in_place:
                for chunk in range(sizes(machine)["i"]):
                    cell = place(machine, rank, "i", chunk, tile)
                    if machine.memory[cell] != inputs[rank, chunk, tile]:
                        return False
    return True


def orders(data: bytes, count: int):
    """Yield schedulers: each threadblock starved once, then random priorities."""
    blocks = [(int(g.get("id")), int(tb.get("id"))) for g in ET.fromstring(data) for tb in g]

    def by(priority):
        return lambda ready: max(ready, key=lambda b: priority[b.rank, b.id])

    for late in [None, *blocks]:
        yield by({name: -(name == late) for name in blocks})
    rng = random.Random(len(blocks))
    for _ in range(count):
        yield by({name: rng.random() for name in blocks})
    yield rng.choice


def explore(data: bytes, *, modes: tuple[bool, ...], depth: int = 2, tries: int = 4) -> str:
    """Return the first verdict other than OK over many interleavings, else OK."""
    for in_place in modes:
        for group in (1, 71):
            for order in orders(data, tries):
                verdict = run(
                    data, in_place=in_place, depth=depth, group=group, tiles=2, order=order
                )
                if verdict != OK:
                    return verdict
    return OK
