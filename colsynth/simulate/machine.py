"""A program on a topology as arrays: what is the same for every message size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from colsynth.cost import Model
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.usable import speed_of
from colsynth.model import RECEIVES, SENDS, ThreadblockProgram, Topology
from colsynth.simulate.executable import check, require_ranks
from colsynth.simulate.steps import Steps, Unit, steps_of

if TYPE_CHECKING:
    from colsynth.runtimes.profile import Profile

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_NANO = 1e9
_ANY_RATE = 1e18
"""Bytes per nanosecond where a model has no limit: kernels want a finite number."""


@dataclass(frozen=True)
class Machine:
    """What `colsynth.kernels.execution` takes, but for what depends on the message size.

    Parameters
    ----------
    program, topology, model, protocol
        What it was made of.
    blocks : tuple of (int, int)
        Rank and id of each threadblock.
    steps : Steps
    block_first, receives, sends, pieces, signals, ordinal, busy, speed : arrays
    wait_first, wait_block, wait_ordinal : arrays
    connections : tuple of (int, int, int)
        (source rank, target rank, channel).
    latency, give_back, cap, route_first, route, capacity : arrays
    """

    program: ThreadblockProgram
    topology: Topology
    model: Model
    protocol: str
    blocks: tuple[tuple[int, int], ...]
    steps: Steps
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
    route: NDArray[np.uint32]
    capacity: Floats

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The steps other than nops, one by one."""
        return self.steps.units()


def build(
    program: ThreadblockProgram, topology: Topology, model: Model, profile: Profile | None = None
) -> Machine:
    """Return a program on a topology, as a runtime executes it.

    Of the runtime counts only how many sums it does in one go; if none is given, any number.

    Raises
    ------
    InputError
        CS600: the ranks of both differ; CS602: the program cannot be connected.
    InfeasibleError
        CS601: the program sends where no links lead.
    """
    require_ranks(program.header.ranks, topology)
    check(program)
    protocol = program.header.protocol
    blocks = tuple((gpu.rank, tb.id) for gpu in program.gpus for tb in gpu.threadblocks)
    steps = steps_of(program, None if profile is None else profile.longest_sum)
    connections, *ends = _connections(program)
    outgoing, incoming = (np.array(end, np.int32)[steps.block] for end in ends)
    extra = steps.extra >= 0
    number = {connection: index for index, connection in enumerate(connections)}
    for unit in np.flatnonzero(extra).tolist():
        peer, channel = steps.table.folds[int(steps.row[unit])][steps.extra[unit]]
        incoming[unit] = number[peer, blocks[steps.block[unit]][0], channel]
    further = steps.joined | extra
    sending, receiving = (steps.table.among(kinds)[steps.row] for kinds in (SENDS, RECEIVES))
    return Machine(
        program=program,
        topology=topology,
        model=model,
        protocol=protocol,
        blocks=blocks,
        steps=steps,
        block_first=np.searchsorted(steps.block, np.arange(len(blocks) + 1)),
        receives=np.where(receiving, incoming, np.int32(-1)),
        sends=np.where(sending, outgoing, np.int32(-1)),
        pieces=steps.table.count[steps.row],
        signals=(steps.table.signals[steps.row] > 0) & ~extra,
        ordinal=steps.ordinal,
        # Nanoseconds that a call keeps its threadblock beside moving data.
        busy=np.where(further, 0.0, 1e3 * model.step[protocol]),
        # Bytes per nanosecond of what sends nothing.
        speed=np.where(receiving, model.rate[protocol], model.local_rate[protocol])
        / np.where(further, model.operand, 1.0),
        wait_first=steps.wait_first,
        wait_block=steps.wait_block.astype(np.int32),
        wait_ordinal=steps.wait_ordinal,
        connections=connections,
        **_wiring(connections, topology, model, protocol),
    )


Wires = tuple[tuple[tuple[int, int, int], ...], list[int], list[int]]


def _connections(program: ThreadblockProgram) -> Wires:
    """Return the connections, and the outgoing and incoming one of every threadblock."""
    adds = bool(program.steps.folds)
    numbers: dict[tuple[int, int, int], int] = {}
    ends: tuple[list[int], list[int]] = ([], [])
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            out = None if block.send is None else (gpu.rank, block.send, block.channel)
            into = None if block.recv is None else (block.recv, gpu.rank, block.channel)
            for side, name in enumerate((out, into)):
                if name is None:
                    ends[side].append(-1)
                    continue
                index = numbers.setdefault(name, len(numbers))
                ends[side].append(index)
            for folds in [step.folds for step in block.steps] if adds else ():
                for peer, channel in folds:
                    numbers.setdefault((peer, gpu.rank, channel), len(numbers))
    return tuple(numbers), *ends


def _wiring(
    connections: tuple[tuple[int, int, int], ...],
    topology: Topology,
    model: Model,
    protocol: str,
) -> dict[str, Any]:
    """Return the routes and latencies of the connections, and the capacity of the links."""
    found = pair_routes(topology, {(source, target) for source, target, _ in connections})
    taken = []
    for source, target, channel in connections:
        choice = found[source, target]
        taken.append(choice[channel % len(choice)])
    first = np.zeros(len(taken) + 1, np.int64)
    np.cumsum([len(route) for route in taken], out=first[1:])
    wire_of = {x: float(sum(topology.links[i].latency for i in x)) for x in dict.fromkeys(taken)}
    wires = [wire_of[route] for route in taken]
    far = [not topology.network.isdisjoint(route) for route in taken]
    hops = [1e3 * (model.network_hop if out else model.hop)[protocol] for out in far]
    payload = model.payload[protocol] / _NANO
    return {
        "latency": np.array([_NANO * w + hop for w, hop in zip(wires, hops, strict=True)]),
        "give_back": np.array([_NANO * w for w in wires]),
        "cap": np.full(len(taken), min(model.rate[protocol], _ANY_RATE), np.float64),
        "route_first": first,
        "route": np.array([i for route in taken for i in route], np.uint32),
        "capacity": np.array(
            [speed_of(topology, link, model) * payload for link in range(len(topology.links))]
        ),
    }
