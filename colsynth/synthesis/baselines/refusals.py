"""How baselines refuse what their shape does not serve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective, Problem, Topology
from colsynth.runtimes.profile import Profile
from colsynth.synthesis.baselines.loaded_routes import (
    LoadedRoutes,
    connections,
)


def require_collective(name: str, problem: Problem, served: Sequence[Collective]) -> None:
    """Refuse what an algorithm does not serve.

    Raises
    ------
    InputError
        CS117: fewer than two GPUs. CS311: another collective, or process groups.
    """
    if problem.topology.size < 2:
        raise InputError(Diagnostic("CS117", "a collective needs two GPUs or more"))
    what = "process groups" if problem.groups else f"{problem.collective}"
    if problem.groups or problem.collective not in served:
        phrase = f"-a {name} does not serve {what}"
        note = f"it serves {', '.join(served)} of all GPUs"
        advice = "'-a forest' serves all that trees can, '-a ten' everything else"
        raise InputError(Diagnostic("CS311", phrase, notes=(note,), help=advice))


_ANY = "'-a forest' and '-a ten' fit any topology"


def unfit(
    name: str, topology: Topology, reason: str, *notes: str, advice: str = _ANY
) -> InputError:
    """Return the refusal of a topology that an algorithm does not fit (CS312)."""
    phrase = f"-a {name} does not fit {topology.name}: {reason}"
    return InputError(Diagnostic("CS312", phrase, notes=notes, help=advice))


def require_ways(
    name: str,
    topology: Topology,
    pairs: Iterable[tuple[int, int]],
    profile: Profile | None = None,
) -> None:
    """Refuse a topology where a pair of ranks has no way through no third GPU (CS312).

    With a profile, a pair may also have one through as many GPUs as connections of that runtime
    pass (`Profile.passes_on`).
    """
    wanted = tuple(pairs)
    ways = LoadedRoutes(topology) if profile is None else connections(topology, profile, wanted)
    for source, sink in wanted:
        if not ways.joins(source, sink):
            names = topology.gpu_names
            reached = f"{names[source]} reaches {names[sink]}"
            reason = f"{reached} only through other GPUs, or not at all"
            raise unfit(name, topology, reason)


def equal_boxes(name: str, topology: Topology) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of every box, or refuse boxes of several sizes (CS312)."""
    found = topology.ranks_by_box
    sizes = sorted({len(ranks) for ranks in found})
    if len(sizes) > 1:
        listed = " and ".join(map(str, sizes))
        raise unfit(name, topology, "boxes differ in size", f"they have {listed} GPUs")
    return found
