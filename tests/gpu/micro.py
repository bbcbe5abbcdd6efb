"""Small programs, each of which shows one constant of the simulator's model."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from collections.abc import Sequence


def program(
    protocol: str, chunks: int, ranks: Sequence[Sequence[Threadblock]]
) -> ThreadblockProgram:
    """Return a program of threadblocks; every buffer has so many chunks."""
    header = Header("micro", Collective.ALLTOALL, protocol, len(ranks), chunks, 1, False, True)
    return ThreadblockProgram(
        header, tuple(Gpu(n, chunks, chunks, chunks, tuple(own)) for n, own in enumerate(ranks))
    )


def _step(op: str, place: int, source: str = "i", target: str = "o", **more: object) -> Step:
    return Step(op, Slot(source, place), Slot(target, place), 1, **more)  # type: ignore[arg-type]


def copies(protocol: str, many: int, op: str = "cpy") -> ThreadblockProgram:
    """One threadblock copies or adds chunks, one call each."""
    steps = tuple(_step(op, n) for n in range(many))
    return program(protocol, many, [[Threadblock(0, None, None, 0, steps)]])


def sums(protocol: str, many: int, fused: int) -> ThreadblockProgram:
    """One threadblock adds chunks to one, so many in a call."""
    steps = []
    for n in range(many):
        target = Slot("o", n // fused)
        steps.append(Step("re", Slot("i", n), target, 1))
    return program(protocol, many, [[Threadblock(0, None, None, 0, tuple(steps))]])


def handovers(protocol: str, many: int) -> ThreadblockProgram:
    """Two threadblocks of a rank take turns: each copy waits for the one before."""
    blocks = []
    for own in range(2):
        steps = tuple(
            _step("cpy", n, waits=(Wait(1 - own, (n - 1) // 2),) if n else (), signals=True)
            for n in range(own, 2 * many, 2)
        )
        blocks.append(Threadblock(own, None, None, 0, steps))
    return program(protocol, 2 * many, [blocks])


def messages(protocol: str, many: int, relays: int = 0, op: str = "rcs") -> ThreadblockProgram:
    """One rank sends chunks through others to a last one."""
    ranks = []
    for n in range(relays + 2):
        send, recv = (n + 1 if n <= relays else None), (n - 1 if n else None)
        kind = "s" if not n else op if n <= relays else "r"
        steps = tuple(_step(kind, place) for place in range(many))
        ranks.append([Threadblock(0, send, recv, 0, steps)])
    return program(protocol, many, ranks)


def laps(protocol: str, ranks: int, many: int) -> ThreadblockProgram:
    """One chunk goes round a ring of ranks, again and again."""
    found = []
    for n in range(ranks):
        ops = ["s", *["rcs"] * (many - 1), "r"] if n == 0 else ["rcs"] * many
        steps = tuple(_step(op, place) for place, op in enumerate(ops))
        found.append([Threadblock(0, (n + 1) % ranks, (n - 1) % ranks, 0, steps)])
    return program(protocol, many + 1, found)


def rings(protocol: str, ranks: int, many: int) -> ThreadblockProgram:
    """Every rank sends a chunk on round a ring, all at once, again and again."""
    steps = (_step("s", 0), *(_step("rcs", n) for n in range(1, many)), _step("r", many))
    blocks = [Threadblock(0, (n + 1) % ranks, (n - 1) % ranks, 0, steps) for n in range(ranks)]
    return program(protocol, many + 1, [[block] for block in blocks])


SMALL, LARGE = 64, 8
"""Calls of programs that move next to nothing, and of those that move much."""
BYTES = (16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20)
"""Chunks of the latter."""

MICRO = {
    "copy": lambda p: copies(p, SMALL),
    "add": lambda p: copies(p, SMALL, "re"),
    "handover": lambda p: handovers(p, SMALL),
    "message": lambda p: messages(p, SMALL),
    "relay": lambda p: messages(p, SMALL, 1),
    "lap": lambda p: laps(p, 4, SMALL),
    "ring": lambda p: rings(p, 4, SMALL),
}
"""What is done with chunks of 16 bytes; every one 64 times, `lap` and `handover` more often."""

MOVES = {
    "copy": lambda p: copies(p, LARGE),
    "add": lambda p: copies(p, LARGE, "re"),
    "add 4": lambda p: sums(p, 4 * LARGE, 4),
    "message": lambda p: messages(p, LARGE),
    "relay": lambda p: messages(p, LARGE, 1),
    "add on the way": lambda p: messages(p, LARGE, 1, "rrcs"),
}
"""What is done with chunks of `BYTES`."""
