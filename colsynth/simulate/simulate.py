"""Program + topology + model -> time per message size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colsynth.cost import Model, default_model
from colsynth.errors import Diagnostic, InputError, require_whole
from colsynth.gc_pause import gc_paused
from colsynth.model import Header, RoundProgram
from colsynth.simulate.points import Point

if TYPE_CHECKING:
    from colsynth.model import Program, Topology
    from colsynth.runtimes.profile import Profile


def simulate(
    program: Program,
    topology: Topology,
    profile: Profile,
    sizes: Sequence[int],
    model: Model | None = None,
) -> tuple[Point, ...]:
    """Return the time of a program at each message size.

    Parameters
    ----------
    program : ThreadblockProgram or RoundProgram
        With its dependencies spelt: steps that others wait for signal.
    topology : Topology
        Of as many ranks.
    profile : Profile
        The runtime that executes it.
    sizes : sequence of int
        Bytes, as nccl-tests counts them; whether the file serves them is not looked at.
    model : Model, optional
        `default_model` of the runtime unless given.

    Raises
    ------
    InputError
        CS600: the ranks differ; CS602: the program cannot be connected; CS604: no size;
        CS210: no whole number of bytes.
    InfeasibleError
        CS601: the program sends where no links lead.
    VerificationError
        CS603: the program does not finish.
    """
    for size in sizes:
        require_whole("size", size)
        if size < 1:
            raise InputError(Diagnostic("CS604", f"a message of {size} bytes is no message"))
    return prepare(program, topology, profile, model).points(sizes)


@dataclass(frozen=True)
class Prepared:
    """A program that is connected to its topology.

    Parameters
    ----------
    header : Header
        Of the program.
    seconds : callable
        Takes sizes and returns the time at each.
    least : callable
        Takes a size and returns seconds that the program certainly takes, from its loads alone.
        That needs no simulation; it is 0 for rounds and multicasts, which are quick to simulate.
    """

    header: Header
    seconds: Callable[[Sequence[int]], Iterable[float]]
    least: Callable[[int], float]

    def points(self, sizes: Sequence[int]) -> tuple[Point, ...]:
        """Return the time at each size; raise CS603 where the program does not finish."""
        ranks, collective = self.header.ranks, self.header.collective
        times = zip(sizes, self.seconds(sizes), strict=True)
        return tuple(Point(size, time, ranks, collective) for size, time in times)


def prepare(
    program: Program, topology: Topology, profile: Profile, model: Model | None = None
) -> Prepared:
    """Connect a program to its topology: the part of `simulate` that all sizes share."""
    from colsynth.simulate.least import least_seconds
    from colsynth.simulate.machine import build
    from colsynth.simulate.run import run

    model, header = model or default_model(profile), program.header
    if isinstance(program, RoundProgram):
        from colsynth.simulate import rounds

        def in_rounds(sizes: Sequence[int]) -> Iterable[float]:
            return rounds.seconds(program, topology, sizes, model)

        return Prepared(header, in_rounds, lambda _: 0.0)
    if program.multicasts:
        from colsynth.simulate import multicast

        def by_switches(sizes: Sequence[int]) -> Iterable[float]:
            return multicast.seconds(program, topology, sizes, model)

        return Prepared(header, by_switches, lambda _: 0.0)
    with gc_paused():
        machine = build(program, topology, model, profile)
    return Prepared(
        header,
        lambda sizes: (run(machine, profile, size).seconds for size in sizes),
        lambda size: least_seconds(machine, profile, size),
    )
