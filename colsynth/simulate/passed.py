"""Connections that pass more GPUs than a runtime has them pass.

Where no way joins two GPUs by themselves, a program's connection is predicted over other GPUs. A
runtime passes few or none (`Profile.passes_on`). Otherwise it takes what paths there are: over
spines, over the memory of the host, or to a NIC farther away. Topologies seldom have these.
"""

from __future__ import annotations

from colsynth.cost.pair_routes import gpus_passed, most_passed, pair_routes
from colsynth.model import Program, RoundProgram, Topology
from colsynth.runtimes.profile import Profile
from colsynth.units import plural


def passed_notes(program: Program, topology: Topology, profile: Profile) -> tuple[str, ...]:
    """Return a note if the times of a program count on ways that its runtime does not take."""
    if not isinstance(program, RoundProgram) and program.multicasts:
        return ()
    routes = pair_routes(topology, program.pairs)
    beyond = [
        pair
        for pair, (route, *_) in routes.items()
        if gpus_passed(topology, route) > most_passed(topology, pair, profile.passes_on)
    ]
    if not beyond:
        return ()
    ends = [topology.gpu_names[rank] for rank in beyond[0]]
    count = plural(len(beyond), "connection")
    verb = "passes" if len(beyond) == 1 else "pass"
    what = f"{count}, such as {ends[0]} -> {ends[1]}, {verb} more GPUs than {profile.name} would"
    return (f"{what}; what it takes instead is not in the topology, and may be slower",)
