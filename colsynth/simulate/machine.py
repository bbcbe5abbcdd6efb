"""A program on a topology as arrays: what is the same for every message size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Step, Threadblock, ThreadblockProgram, Topology
from colsynth.simulate.model import Model
from colsynth.simulate.ways import is_network, ways

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SENDS = ("s", "rcs", "rrs", "rrcs")
RECEIVES = ("r", "rcs", "rrs", "rrc", "rrcs")
_EXECUTED = {*SENDS, *RECEIVES, "cpy", "re", "nop"}
_NANO = 1e9


class Unit(NamedTuple):
    """A step other than a nop, with all the dependencies it waits for.

    Parameters
    ----------
    block, ordinal : int
        Threadblock, numbered over the whole program, and place in it, nops included.
    step : Step
    waits : tuple of (int, int)
        Threadblock (number over the program) and ordinal.
    joined : bool
        Whether the runtime does it in one go with the local reduction before it.
    """

    block: int
    ordinal: int
    step: Step
    waits: tuple[tuple[int, int], ...]
    joined: bool


@dataclass(frozen=True)
class Machine:
    """What `colsynth.kernels.execution` takes, but for what depends on the message size.

    Parameters
    ----------
    program, topology, model, protocol
        What it was made of.
    blocks : tuple of (int, int)
        Rank and id of each threadblock.
    units : tuple of Unit
    block_first, receives, sends, pieces, signals, ordinal, busy, speed : arrays
    wait_first, wait_block, wait_ordinal : arrays
    connections : tuple of (int, int, int)
        (source rank, target rank, channel).
    latency, give_back, cap, route_first, route, owner, capacity : arrays
    """

    program: ThreadblockProgram
    topology: Topology
    model: Model
    protocol: str
    blocks: tuple[tuple[int, int], ...]
    units: tuple[Unit, ...]
    block_first: Ints
    receives: NDArray[np.int32]
    sends: NDArray[np.int32]
    pieces: Ints
    signals: NDArray[np.bool_]
    ordinal: Ints
    busy: Floats
    speed: Floats
    wait_first: Ints
    wait_block: NDArray[np.int32]
    wait_ordinal: Ints
    connections: tuple[tuple[int, int, int], ...]
    latency: Floats
    give_back: Floats
    cap: Floats
    route_first: Ints
    route: NDArray[np.int32]
    owner: NDArray[np.int32]
    capacity: Floats


def build(program: ThreadblockProgram, topology: Topology, model: Model) -> Machine:
    """Return a program on a topology.

    Raises
    ------
    InputError
        CS600: the ranks of both differ; CS602: the program cannot be connected.
    InfeasibleError
        CS601: the program sends where no links lead.
    """
    ranks = program.header.ranks
    if ranks != topology.size:
        phrase = f"the program is for {ranks} ranks, {topology.name} has {topology.size}"
        hint = "choose the number of boxes with --nodes, or another topology"
        raise InputError(Diagnostic("CS600", phrase, help=hint))
    _check(program)
    protocol = program.header.protocol
    blocks = tuple((gpu.rank, tb.id) for gpu in program.gpus for tb in gpu.threadblocks)
    units = tuple(_units(program))
    connections, outgoing, incoming = _connections(program)
    sends = [outgoing[u.block] if u.step.op in SENDS else -1 for u in units]
    receives = [incoming[u.block] if u.step.op in RECEIVES else -1 for u in units]
    wait_first = np.zeros(len(units) + 1, np.int64)
    np.cumsum([len(unit.waits) for unit in units], out=wait_first[1:])
    waits = [wait for unit in units for wait in unit.waits]
    return Machine(
        program=program,
        topology=topology,
        model=model,
        protocol=protocol,
        blocks=blocks,
        units=units,
        block_first=np.searchsorted([u.block for u in units], np.arange(len(blocks) + 1)),
        receives=np.array(receives, np.int32),
        sends=np.array(sends, np.int32),
        pieces=np.array([unit.step.count for unit in units], np.int64),
        signals=np.array([unit.step.signals for unit in units], np.bool_),
        ordinal=np.array([unit.ordinal for unit in units], np.int64),
        busy=np.array([_busy(unit, model, protocol) for unit in units]),
        speed=np.array([_speed(unit, model, protocol) for unit in units]),
        wait_first=wait_first,
        wait_block=np.array([block for block, _ in waits], np.int32),
        wait_ordinal=np.array([ordinal for _, ordinal in waits], np.int64),
        connections=connections,
        **_wiring(connections, topology, model, protocol),
    )


def _check(program: ThreadblockProgram) -> None:
    """Refuse what no runtime could execute, whatever the order of steps (CS602)."""
    if program.header.chunks < 1:
        raise _unfit(f"messages are cut into {program.header.chunks} chunks")
    if len(program.gpus) != program.header.ranks:
        raise _unfit(f"of {program.header.ranks} ranks {len(program.gpus)} have a program")
    for rank, gpu in enumerate(program.gpus):
        if gpu.rank != rank:
            raise _unfit(f"there is no rank {rank}, or there are two of one number")
        for place, block in enumerate(gpu.threadblocks):
            if block.id != place:
                raise _unfit(f"rank {rank} has no threadblock {place}, or two of one number")
            _check_block(block, rank, program.header.ranks)


def _check_block(block: Threadblock, rank: int, ranks: int) -> None:
    """Refuse steps without a peer, peers that are no ranks, and steps that are none."""
    ops = {step.op for step in block.steps}
    where = f"rank {rank}, threadblock {block.id}"
    if not ops <= _EXECUTED:
        raise _unfit(
            f"{where} has steps that no runtime executes: {', '.join(sorted(ops - _EXECUTED))}"
        )
    if any(step.count < 0 for step in block.steps):
        raise _unfit(f"{where} has a step that moves less than nothing")
    for peer, kinds in ((block.send, SENDS), (block.recv, RECEIVES)):
        if peer is None and not ops.isdisjoint(kinds):
            raise _unfit(f"{where} has no peer for {', '.join(sorted(ops & set(kinds)))}")
        if peer is not None and (not 0 <= peer < ranks or peer == rank):
            raise _unfit(f"{where} has rank {peer} as its peer")


def _units(program: ThreadblockProgram) -> list[Unit]:
    """Return the units of a program in the order of threadblocks and steps."""
    number: dict[tuple[int, int], int] = {}
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            number[gpu.rank, block.id] = len(number)
    units: list[Unit] = []
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            pending: tuple[tuple[int, int], ...] = ()
            before: Unit | None = None
            for ordinal, step in enumerate(block.steps):
                pending += tuple(
                    (number.get((gpu.rank, wait.threadblock), len(number)), wait.step)
                    for wait in step.waits
                )
                if step.op == "nop":
                    continue
                joined = before is not None and not pending and _joins(before.step, step)
                before = Unit(number[gpu.rank, block.id], ordinal, step, pending, joined)
                units.append(before)
                pending = ()
    return units


def _joins(before: Step, step: Step) -> bool:
    """Whether the runtime fuses two local reductions (contract 4.5)."""
    if before.op != "re" or step.op != "re" or before.signals:
        return False
    letters = (before.source and before.source.buffer, step.source and step.source.buffer)
    return before.target == step.target and letters[0] == letters[1]


Wires = tuple[tuple[tuple[int, int, int], ...], list[int], list[int]]


def _connections(program: ThreadblockProgram) -> Wires:
    """Return the connections, and the outgoing and incoming one of every threadblock."""
    numbers: dict[tuple[int, int, int], int] = {}
    ends: tuple[list[int], list[int]] = ([], [])
    seen: set[tuple[int, int]] = set()
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            out = None if block.send is None else (gpu.rank, block.send, block.channel)
            into = None if block.recv is None else (block.recv, gpu.rank, block.channel)
            for side, name in enumerate((out, into)):
                if name is None:
                    ends[side].append(-1)
                    continue
                index = numbers.setdefault(name, len(numbers))
                if (side, index) in seen:
                    verb = "receive on" if side else "send on"
                    raise _unfit(
                        f"two threadblocks of rank {gpu.rank} {verb} channel {block.channel}"
                        f" between ranks {name[0]} and {name[1]}"
                    )
                seen.add((side, index))
                ends[side].append(index)
    return tuple(numbers), *ends


def _unfit(note: str) -> InputError:
    advice = "`colsynth verify` says everything that is wrong with the file"
    phrase = "the program cannot be executed"
    return InputError(Diagnostic("CS602", phrase, notes=(note,), help=advice))


def _busy(unit: Unit, model: Model, protocol: str) -> float:
    """Return the nanoseconds that a call keeps its threadblock beside moving data."""
    return 0.0 if unit.joined else 1e3 * model.step[protocol]


def _speed(unit: Unit, model: Model, protocol: str) -> float:
    """Return bytes per nanosecond of a unit that sends nothing."""
    return (model.rate if unit.step.op in RECEIVES else model.local_rate)[protocol]


def _wiring(
    connections: tuple[tuple[int, int, int], ...],
    topology: Topology,
    model: Model,
    protocol: str,
) -> dict[str, Any]:
    """Return the routes and latencies of the connections, and the capacity of the links."""
    found = ways(topology, {(source, target) for source, target, _ in connections})
    outside = [is_network(topology, index) for index in range(len(topology.links))]
    taken = []
    for source, target, channel in connections:
        choice = found[source, target]
        taken.append(choice[channel % len(choice)])
    first = np.zeros(len(taken) + 1, np.int64)
    np.cumsum([len(route) for route in taken], out=first[1:])
    wires = [float(sum(topology.links[i].latency for i in route)) for route in taken]
    far = [any(outside[i] for i in route) for route in taken]
    hops = [1e3 * (model.network_hop if out else model.hop)[protocol] for out in far]
    share = [model.network_efficiency if out else model.link_efficiency for out in outside]
    payload = model.payload[protocol] / _NANO
    return {
        "latency": np.array([_NANO * w + hop for w, hop in zip(wires, hops, strict=True)]),
        "give_back": np.array([_NANO * w for w in wires]),
        "cap": np.full(len(taken), model.rate[protocol], np.float64),
        "route_first": first,
        "route": np.array([i for route in taken for i in route], np.int32),
        "owner": np.array(
            [c for c, (a, b) in enumerate(pairwise(first.tolist())) for _ in range(b - a)],
            np.int32,
        ),
        "capacity": np.array(
            [
                float(link.bandwidth) * part * payload
                for link, part in zip(topology.links, share, strict=True)
            ]
        ),
    }
