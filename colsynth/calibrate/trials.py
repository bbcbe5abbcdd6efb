"""A log beside what predicts it, or why it cannot be fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from colsynth.calibrate.places import machine_of, members_of, other_gpus
from colsynth.calibrate.programs import ALGORITHMS, library_program
from colsynth.cost import Model, default_model, ideal_model
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.usable import speed_of
from colsynth.errors import ColsynthError, Diagnostic, InputError
from colsynth.logs import Log, Row, Wire
from colsynth.model import Collective, ThreadblockProgram, Topology
from colsynth.model.problem import PHASES
from colsynth.runtimes.profile import Profile
from colsynth.simulate import bus_factor, simulate
from colsynth.simulate.machine import build
from colsynth.simulate.run import run
from colsynth.units import plural

PLATEAU = 0.95
"""Share of the best bandwidth from which a row counts where the protocol is not known."""

_LARGE = 16 * 2**20
"""Bytes of the largest message that must be there for bandwidth to count as reached."""

_FASTER = 1.02
"""How much faster than ideal links a row may be before something else must have carried it."""

_SLICES = 20_000
"""Slices simulated of a message before tiles are left out: a tenth of what `simulate` takes, since
a fit simulates every row hundreds of times; times differ by less than half a percent."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """Measurements and what predicts them.

    Parameters
    ----------
    log : Log
        Without the rows that are not fitted.
    profile : Profile
    topology : Topology
        The GPUs of the run alone.
    program : ThreadblockProgram or None
        None for figures of links.
    label : str
        Such as ``"allreduce ring Simple, 16 channels"``.
    notes : tuple of str
        What was assumed, and what was left out.
    """

    log: Log
    profile: Profile
    topology: Topology
    program: ThreadblockProgram | None
    label: str
    notes: tuple[str, ...] = ()

    @property
    def measured(self) -> Floats:
        """Seconds of every row, or for links bytes per second or seconds."""
        if self.program is None:
            return np.array([wire.value for wire in self.log.wires])
        return np.array([row.seconds for row in self.log.rows])

    def predicted(self, model: Model) -> Floats:
        """Return the same as `measured`, as a model has it."""
        if self.program is None:
            return np.array([self._wire(number, model) for number in range(len(self.log.wires))])
        sizes = [row.size for row in self.log.rows]
        machine = build(self.program, self.topology, model)
        times = [run(machine, self.profile, size, most=_SLICES).seconds for size in sizes]
        return np.array(times)

    def _wire(self, number: int, model: Model) -> float:
        """Return the bytes per second of the narrowest link on the way of a figure."""
        route = _way(self.topology, self.log.wires[number].pair)
        return min(speed_of(self.topology, link, model) for link in route)

    @cached_property
    def constants(self) -> tuple[tuple[str, str | None], ...]:
        """Name and protocol of the constants that may matter."""
        if not len(self.measured):
            return ()
        if self.program is None:
            name = "network" if self.log.tool == "ib_write_bw" else "link"
            return ((f"{name}_efficiency", None),)
        protocol = self.program.header.protocol
        far = [
            not self.topology.network.isdisjoint(choice[0])
            for choice in pair_routes(self.topology, self.program.pairs).values()
        ]
        shared: list[tuple[str, None]] = [("link_efficiency", None)] if not all(far) else []
        shared += [("network_efficiency", None)] if any(far) else []
        own = ["rate", "launch", "step", *(["hop"] if not all(far) else [])]
        own += [*(["network_hop"] if any(far) else [])]
        return (*shared, *((name, protocol) for name in own))


def trials_of(logs: Sequence[Log], profile: Profile, topology: Topology) -> tuple[Trial, ...]:
    """Return logs with what predicts each; of files with the same bytes, one counts.

    A copy measures nothing again, but would narrow the intervals.

    Raises
    ------
    InputError
        CS627: copies of one log are said to be of different runs; what `trial_of` raises.
    """
    first: dict[str, Log] = {}
    trials = []
    for log in logs:
        before = first.setdefault(log.digest, log)
        if before is log:
            trials.append(trial_of(log, profile, topology))
            continue
        if before.pinned != log.pinned:
            phrase = f"{log.name}: the same bytes as {before.name}, but said to be of another run"
            advice = "give the log once, with what it is of"
            raise InputError(Diagnostic("CS627", phrase, help=advice))
        reason = f"the same bytes as {before.name}: counted once"
        trials.append(_nothing(replace(log, notes=(), doubts=()), profile, topology, reason))
    return tuple(trials)


def trial_of(log: Log, profile: Profile, topology: Topology) -> Trial:
    """Return a log with what predicts it, and the rows that one program can have taken.

    Raises
    ------
    InputError
        CS623: the log is of another machine. CS625: it has nothing to fit, and why.
    """
    log = replace(log, doubts=(*log.doubts, *other_gpus(log, topology)))
    if log.tool != "nccl-tests":
        return _of_links(log, profile, topology)
    members = members_of(log, topology)
    place = machine_of(topology, members)
    pinned, notes = log.pinned, list(log.notes)
    if not log.devices:
        notes.append(f"no devices are listed: taken to be of all {plural(place.size, 'GPU')}")
    direct = pinned.collective in ("sendrecv", "alltoall")
    protocol = pinned.protocol or "Simple"
    algorithm = "direct" if direct else pinned.algorithm or "ring"
    known = direct or (pinned.algorithm is not None and pinned.protocol is not None)
    if pinned.algorithm is not None and not direct and pinned.algorithm not in ALGORITHMS:
        reason = f"NCCL_ALGO={pinned.algorithm}: the simulator knows {' and '.join(ALGORITHMS)}"
        return _nothing(log, profile, place, reason)
    if place.size < 2:
        return _nothing(log, profile, place, "a single rank sends nothing")
    collective = str(pinned.collective)
    try:
        base = default_model(profile)
        program = library_program(place, collective, algorithm, protocol, base, pinned.channels)
    except ColsynthError as refusal:
        return _nothing(log, profile, place, refusal.diagnostic.phrase)
    channels = program.header.channels // _ways(algorithm, collective)
    label = f"{collective} {algorithm} {protocol}, {plural(channels, 'channel')}"
    rows: Sequence[Row] = log.rows
    if not known:
        rows = _plateau(rows)
        what = "algorithm and protocol" if pinned.algorithm is None else "protocol"
        notes.append(f"{what} not pinned: only rows near the best bandwidth count, as {label}")
    elif pinned.protocol is None:
        notes.append("protocol not pinned: taken to be Simple")
    rows, above = _on_wires(rows, program, place, profile)
    if above:
        text = f"{plural(above, 'row')} faster than the links carry for {label}"
        notes.append(f"{text}: in-network reduction (NVLS, SHARP) or another algorithm; not fitted")
    if not rows:
        return _nothing(replace(log, notes=tuple(notes)), profile, place, "no row is left")
    return Trial(replace(log, rows=tuple(rows)), profile, place, program, label, tuple(notes))


def _ways(algorithm: str, collective: str) -> int:
    """Return how many channels of a program one of a library is: a tree has one for each way."""
    return len(PHASES[Collective(collective)]) if algorithm == "tree" else 1


def _of_links(log: Log, profile: Profile, topology: Topology) -> Trial:
    """Return figures of links; latencies of NICs are compared, since topologies hold them."""
    try:
        for wire in log.wires:
            _way(topology, wire.pair if wire.what == "copy" else None)
    except (ColsynthError, LookupError):
        return _nothing(log, profile, topology, f"{topology.name} has no such links")
    if log.tool == "ib_send_lat":
        route = _way(topology, None)
        ours = sum(float(topology.links[i].latency) for i in route if i in topology.network)
        text = f"NIC to NIC {log.wires[0].value * 1e6:.3g} us, the topology has {ours * 1e6:.3g} us"
        return _nothing(log, profile, topology, f"{text}: latencies of links belong there")
    wires, notes = _carried(log, topology)
    if not wires:
        return _nothing(replace(log, notes=notes), profile, topology, "no figure is left")
    log = replace(log, wires=wires)
    return Trial(log, profile, topology, None, f"{log.tool}, bytes per second", notes)


def _carried(log: Log, topology: Topology) -> tuple[tuple[Wire, ...], tuple[str, ...]]:
    """Return the figures that links can carry, and the notes of a log."""
    most = [
        min(float(topology.links[link].bandwidth) for link in _way(topology, wire.pair))
        for wire in log.wires
    ]
    kept = tuple(
        wire for wire, rate in zip(log.wires, most, strict=True) if wire.value <= _FASTER * rate
    )
    above = len(log.wires) - len(kept)
    if not above:
        return kept, log.notes
    best = f"{max(wire.value for wire in log.wires) / 1e9:.4g} GB/s"
    text = f"{plural(above, 'figure')} faster than the link of {min(most) / 1e9:.4g} GB/s carries"
    reason = "several links at once, both directions, or another machine"
    return kept, (*log.notes, f"{text}, up to {best}: {reason}; not fitted")


def _way(topology: Topology, pair: tuple[int, int] | None) -> tuple[int, ...]:
    """Return the links between two GPUs; without a pair, those between two boxes that leave them.

    Raises
    ------
    LookupError
        There are no such GPUs, or no network.
    """
    if pair is not None:
        if max(pair) >= topology.size:
            raise LookupError
        return pair_routes(topology, [pair])[pair][0]
    far = topology.nodes[topology.ranks[0]].box
    for rank, node in enumerate(topology.ranks):
        if topology.nodes[node].box != far:
            route = pair_routes(topology, [(0, rank)])[0, rank][0]
            return tuple(link for link in route if link in topology.network)
    raise LookupError


def _plateau(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows near the best bandwidth, if messages are large enough to have reached it."""
    if max(row.size for row in rows) < _LARGE:
        return ()
    best = max(row.size / row.seconds for row in rows)
    return [row for row in rows if row.size / row.seconds >= PLATEAU * best]


def _on_wires(
    rows: Sequence[Row], program: ThreadblockProgram, topology: Topology, profile: Profile
) -> tuple[Sequence[Row], int]:
    """Return the rows that links could carry by this program, and how many they could not."""
    if not rows:
        return rows, 0
    points = simulate(program, topology, profile, [row.size for row in rows], ideal_model())
    kept = [
        row for row, point in zip(rows, points, strict=True)
        if row.seconds * _FASTER >= point.seconds
    ]  # fmt: skip
    return kept, len(rows) - len(kept)


def _nothing(log: Log, profile: Profile, topology: Topology, reason: str) -> Trial:
    """Return a trial without measurements, with the reason."""
    empty = replace(log, rows=(), wires=())
    return Trial(empty, profile, topology, None, "not fitted", (*log.notes, reason))


def busbw(trial: Trial, row: Row) -> float:
    """Return the bus bandwidth of a row, bytes per second, as nccl-tests defines it."""
    name = str(trial.log.pinned.collective)
    kinds = {kind.value: kind for kind in Collective}
    kind = kinds.get(name, Collective.CUSTOM)
    return row.size / row.seconds * bus_factor(kind, trial.topology.size)
