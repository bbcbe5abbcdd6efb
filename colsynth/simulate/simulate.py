"""Program + topology + model -> time per message size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from colsynth.cost import Model, default_model
from colsynth.errors import Diagnostic, InputError, require_whole
from colsynth.gc_pause import gc_paused
from colsynth.model import RoundProgram
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
    limits: Mapping[int, float] | None = None,
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
    limits : mapping, optional
        Seconds by size. Where the program certainly takes longer, nothing is simulated and
        there is no point at any size.

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
    from colsynth.simulate.least import least_seconds
    from colsynth.simulate.machine import build
    from colsynth.simulate.run import run

    for size in sizes:
        require_whole("size", size)
        if size < 1:
            raise InputError(Diagnostic("CS604", f"a message of {size} bytes is no message"))
    model, header = model or default_model(profile), program.header
    found: Iterable[float]
    if isinstance(program, RoundProgram):
        from colsynth.simulate import rounds

        found = rounds.seconds(program, topology, sizes, model)
    elif program.multicasts:
        from colsynth.simulate import multicast

        found = multicast.seconds(program, topology, sizes, model)
    else:
        with gc_paused():
            machine = build(program, topology, model, profile)
        limited = (limits or {}).items()
        if any(least_seconds(machine, profile, size) > most for size, most in limited):
            return ()
        found = (run(machine, profile, size).seconds for size in sizes)
    times = zip(sizes, found, strict=True)
    return tuple(Point(size, time, header.ranks, header.collective) for size, time in times)
