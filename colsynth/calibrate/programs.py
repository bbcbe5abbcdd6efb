"""The programs of collective libraries, as the simulator executes them.

Libraries fuse receiving, adding and sending on every vendor's GPUs. So their programs are made as
for a runtime that fuses, whatever the runtime whose constants are fitted.
"""

from __future__ import annotations

from itertools import product

from colsynth.cost import Model
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.usable import speed_of
from colsynth.errors import Diagnostic, InputError
from colsynth.model import (
    Collective,
    Gpu,
    Header,
    Problem,
    Slot,
    Step,
    Threadblock,
    ThreadblockProgram,
    Topology,
)
from colsynth.runtimes.catalog import profile
from colsynth.runtimes.target import Target
from colsynth.search.wish import configured

_FUSES = "msccl"
"""A runtime that executes what libraries do."""

ALGORITHMS = ("ring", "tree")
"""Algorithms of libraries that the simulator knows."""

_MOST_PARTS = 32
"""Channels to one peer; NCCL has as many in all."""


def library_program(
    topology: Topology,
    collective: str,
    algorithm: str,
    protocol: str,
    model: Model,
    channels: int | None = None,
) -> ThreadblockProgram:
    """Return what a library runs for a collective, or for a sendrecv or alltoall of nccl-tests.

    Parameters
    ----------
    topology : Topology
        The GPUs that take part, and no others.
    collective : str
        A value of `colsynth.logs.log.TESTS`.
    algorithm : str
        ``"ring"`` or ``"tree"``; not looked at where data goes from peer to peer.
    protocol : str
    model : Model
        By which the number of channels is chosen where it is not given.
    channels : int, optional
        As many as fill the links unless given; for a sendrecv or an alltoall, those to one peer.

    Raises
    ------
    InputError
        CS625: the library's program is not known here. CS311, CS312: nor is there a ring or tree.
    LimitError
        CS402: more channels than there are.
    """
    size = topology.size
    if collective == "sendrecv":
        pairs = [(rank, (rank + 1) % size) for rank in range(size)]
        return _direct(topology, Collective.CUSTOM, pairs, protocol, model, channels, 1)
    if collective == "alltoall":
        pairs = [(a, b) for a, b in product(range(size), repeat=2) if a != b]
        return _direct(topology, Collective.ALLTOALL, pairs, protocol, model, channels, size)
    if algorithm not in ALGORITHMS or collective in ("gather", "scatter", "hypercube"):
        phrase = f"the program of libraries for {collective} by {algorithm} is not known"
        note = f"known: sendrecv, alltoall, and collectives by {' or '.join(ALGORITHMS)}"
        raise InputError(Diagnostic("CS625", phrase, notes=(note,)))
    kind = Collective(collective)
    root = 0 if kind.rooted else None
    problem = Problem(topology, kind, root=root)
    settings = {} if channels is None else {"channels": channels}
    if algorithm == "tree" and channels is not None:
        settings = {"channels": max(1, channels // 2)}  # of pairs: NCCL's channels have a tree each
    pipeline = configured(algorithm, settings)
    # Libraries cut any message into equal shares, so the program is for one that ranks divide.
    # What a runtime cannot do with files, they can.
    target = Target(profile(_FUSES), protocol, model=model, size=size << 28)
    found: ThreadblockProgram = pipeline.run(problem, target)
    return found


def _direct(
    topology: Topology,
    collective: Collective,
    pairs: list[tuple[int, int]],
    protocol: str,
    model: Model,
    channels: int | None,
    shares: int,
) -> ThreadblockProgram:
    """Return sends from peer to peer, each in parts on channels of their own.

    `shares` is the number of parts of the message of which each pair moves one.
    """
    parts = channels or _parts(topology, pairs, model, protocol)
    blocks: dict[int, list[Threadblock]] = {rank: [] for rank in range(topology.size)}
    for (source, target), part in product(pairs, range(parts)):
        slot = Slot("o", part)
        for rank, op in ((source, "s"), (target, "r")):
            own = blocks[rank]
            send, recv = (target, None) if op == "s" else (None, source)
            steps = (Step(op, slot, slot, 1),)
            own.append(Threadblock(len(own), send, recv, part, steps))
    chunks = parts * shares
    gpus = tuple(Gpu(rank, chunks, chunks, 0, tuple(blocks[rank])) for rank in range(topology.size))
    name = f"{collective} from peer to peer"
    header = Header(name, collective, protocol, topology.size, chunks, parts, False, True)
    return ThreadblockProgram(header, gpus)


def _parts(topology: Topology, pairs: list[tuple[int, int]], model: Model, protocol: str) -> int:
    """Return the channels that fill the links of the first pair, a power of two as in NCCL."""
    route = pair_routes(topology, pairs[:1])[pairs[0]][0]
    rate = min(speed_of(topology, link, model) for link in route)
    peers = sum(source == pairs[0][0] for source, _ in pairs)
    wanted = rate / (peers * model.rate[protocol] * 1e9)
    parts = 1
    while parts < min(wanted, _MOST_PARTS):
        parts *= 2
    return parts
