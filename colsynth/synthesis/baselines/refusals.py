"""How baselines refuse what their shape does not serve."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective, Problem, Topology


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


def unfit(name: str, topology: Topology, reason: str, *notes: str) -> InputError:
    """Return the refusal of a topology that an algorithm does not fit (CS312)."""
    phrase = f"-a {name} does not fit {topology.name}: {reason}"
    return InputError(
        Diagnostic("CS312", phrase, notes=notes, help="'-a forest' and '-a ten' fit any topology")
    )
