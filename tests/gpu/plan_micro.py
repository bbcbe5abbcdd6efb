"""Small plans, each of which shows one constant of the simulator's model of MSCCL++.

Chunk k is what the k-th repetition moves. Plain data goes round a pipeline, whose iterations are
one chunk each; packets stand one operation after the other, since pipelines hold none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.runtimes.plans.form import (
    Block,
    BlockBuffers,
    BlockChannels,
    Channels,
    Loop,
    Op,
    Operand,
    Plan,
    PlanGpu,
    RemoteBuffer,
    Semaphore,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Body = Sequence[Op]
    Make = Callable[[int, int], Plan]

SMALL, LARGE = 64, 8
"""Repetitions with chunks of 16 bytes, and with longer ones."""
BYTES = (16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20)
"""Chunks: 16 B to 2 MiB."""
NOP = Op("nop")


def plan(chunks: int, ranks: Sequence[Sequence[Block]], semaphores: int = 0) -> Plan:
    """Return a plan of ranks on a ring: channel 0 of each to the next one, 1 to the one before.

    Remote buffers are the scratch of the next rank and of the one before. Every buffer has so many
    chunks.
    """
    many = len(ranks)
    gpus = []
    for rank, blocks in enumerate(ranks):
        around = ((rank + 1) % many, (rank - 1) % many)
        channels = (Channels("memory", around),) if many > 1 else ()
        remotes = tuple(RemoteBuffer(peer, "s", ("memory",)) for peer in around)
        gpus.append(
            PlanGpu(
                rank, chunks, chunks, chunks, tuple(blocks), channels,
                remotes if many > 1 else (), (Semaphore(0),) * semaphores,
            )
        )  # fmt: skip
    return Plan("micro", "alltoall", "Simple", inplace=False, gpus=tuple(gpus))


def block(ops: Body, number: int = 0) -> Block:
    """Return a threadblock that may use all channels and remote buffers of its rank."""
    buffers = (BlockBuffers("memory", (0, 1)),)
    return Block(number, tuple(ops), (BlockChannels("memory", (0, 1)),), buffers)


def loop(chunk: int, many: int, *body: Op) -> Op:
    """Return a pipeline whose iterations move one chunk each."""
    return Op("pipeline", iter_context=Loop(chunk, many), ops=body)


def near(buffer: str, many: int, first: int = 0) -> Operand:
    """Return chunks of a buffer of the rank itself."""
    return Operand(first, many, type=buffer)


def far(many: int, first: int = 0, remote: int = 0) -> Operand:
    """Return chunks in the scratch of the next rank, or of the one before."""
    return Operand(first, many, buffer_id=remote)


def move(name: str, sources: Sequence[Operand], targets: Sequence[Operand]) -> Op:
    """Return an operation of all threads."""
    return Op(name, tuple(sources), tuple(targets), channel_type="memory")


def call(name: str, channel: int = 0) -> Op:
    """Return a signal or a wait on a channel to the next rank, or to the one before."""
    return Op(name, channel_ids=(channel,), channel_type="memory")


# One threadblock


def nops(_: int, many: int) -> Plan:
    """The threads of a threadblock meet."""
    return plan(1, [[block([NOP] * many)]])


def alone(name: str, chunk: int, many: int, ranks: int = 1) -> Plan:
    """One threadblock copies, adds, puts or gets; a nop after each."""
    sources, targets = [near("i", many)], [near("o", many)]
    if name == "re":
        sources.append(near("s", many))
    elif name == "put":
        targets = [far(many)]
    elif name == "get":
        sources = [far(many)]
    elif name == "rre":
        sources.append(far(many))
    own = block([loop(chunk, many, move(name, sources, targets), NOP)])
    return plan(many, [[own], *([block([])] for _ in range(ranks - 1))])


def packets_alone(_: int, many: int) -> Plan:
    """One threadblock puts packets that nobody waits for."""
    ops = [move("ppkt", [near("i", 1, k)], [far(1, k)]) for k in range(many)]
    return plan(many, [[block(ops)], [block([])]])


# Threadblocks that hand over


def handovers(chunk: int, many: int) -> Plan:
    """Two ranks put a chunk and signal in turn."""
    put = (move("put", [near("i", many)], [far(many)]), NOP, call("signal"))
    take = (call("wait"), NOP)
    return plan(
        many, [[block([loop(chunk, many, *put, *take)])], [block([loop(chunk, many, *take, *put)])]]
    )


def signals(_: int, many: int) -> Plan:
    """Two ranks signal in turn."""
    give, take = (call("signal"),), (call("wait"), NOP)
    return plan(1, [[block([*give, *take] * many)], [block([*take, *give] * many)]])


def semaphores(_: int, many: int) -> Plan:
    """Two threadblocks of a rank take turns by semaphores."""
    give = [Op("sem_release", semaphore_ids=(n,)) for n in range(2)]
    take = [Op("sem_acquire", semaphore_ids=(n,)) for n in range(2)]
    first = [give[0], take[1], NOP] * many
    second = [take[0], NOP, give[1]] * many
    return plan(1, [[block(first), block(second, 1)]], semaphores=2)


def barriers(_: int, many: int) -> Plan:
    """Two threadblocks of a rank meet."""
    ops = [Op("barrier", barrier_id=0, num_threadblocks=2)] * many
    return plan(1, [[block(ops), block(ops, 1)]])


def messages(chunk: int, many: int, relay: str | None = None) -> Plan:
    """One rank puts chunks into the next one's scratch, perhaps over a rank between them.

    That rank passes them on (``pass``), or adds its own first (``add``).
    """
    send = loop(chunk, many, move("put", [near("i", many)], [far(many)]), NOP, call("signal"))
    take = (call("wait", 1 if relay else 0), NOP)  # two ranks have both channels to each other
    last = loop(chunk, many, *take, move("copy", [near("s", many)], [near("o", many)]))
    ranks = [[block([send])]]
    if relay:
        sources = [near("s", many), near("i", many)][: 1 + (relay == "add")]
        passed = move("res", sources, [near("o", many), far(many)])
        ranks.append([block([loop(chunk, many, *take, passed, NOP, call("signal"))])])
    return plan(many, [*ranks, [block([last])]])


def packets(_: int, many: int, relay: str | None = None) -> Plan:
    """The same with packets; a chunk is the data of a message."""
    slots = [near("s", 1, k) for k in range(many)]
    plain = [near("i", 1, k) for k in range(many)]
    taken = [near("o", 1, k) for k in range(many)]
    there = [far(1, k) for k in range(many)]
    ranks = [[block([move("ppkt", [plain[k]], [there[k]]) for k in range(many)])]]
    if relay == "pass":
        ranks.append([block([move("rppkt", [slots[k]], [there[k]]) for k in range(many)])])
    elif relay == "add":
        adds = [move("respkt", [plain[k], slots[k]], [taken[k], there[k]]) for k in range(many)]
        ranks.append([block(adds)])
    ranks.append([block([move("upkt", [slots[k]], [taken[k]]) for k in range(many)])])
    return plan(many, ranks)


def packet_laps(_: int, many: int) -> Plan:
    """A chunk goes to and fro between two ranks as packets, again and again."""
    first: list[Op] = []
    for k in range(many):
        first += [
            move("ppkt", [near("i", 1, k)], [far(1, k)]),
            move("upkt", [near("s", 1, k)], [near("o", 1, k)]),
        ]
    second = [move("rppkt", [near("s", 1, k)], [far(1, k)]) for k in range(many)]
    return plan(many, [[block(first)], [block(second)]])


COUNTS: dict[str, Make] = {
    "nop": nops,
    "signal": signals,
    "semaphore": semaphores,
    "barrier": barriers,
}
"""What moves no data."""

MOVES: dict[str, Make] = {
    "copy": lambda c, n: alone("copy", c, n),
    "add": lambda c, n: alone("re", c, n),
    "put": lambda c, n: alone("put", c, n, 2),
    "get": lambda c, n: alone("get", c, n, 2),
    "read and add": lambda c, n: alone("rre", c, n, 2),
    "handover": handovers,
    "message": messages,
    "relay": lambda c, n: messages(c, n, "pass"),
    "add on the way": lambda c, n: messages(c, n, "add"),
    "packet put": packets_alone,
    "packet message": packets,
    "packet relay": lambda c, n: packets(c, n, "pass"),
    "packet add on the way": lambda c, n: packets(c, n, "add"),
    "packet lap": packet_laps,
}
"""What is done with chunks of `BYTES`."""

TURNS = {"handover": 2, "signal": 2, "semaphore": 2, "packet lap": 2}
"""How often data or a signal is handed over in a repetition, where it is not once."""


def repetitions(name: str, chunk: int) -> int:
    """Return how often a small plan does what it is for."""
    return SMALL if name in COUNTS or chunk <= 4096 else LARGE
