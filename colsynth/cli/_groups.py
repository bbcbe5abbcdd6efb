"""What ``colsynth bound`` prints where cuts may promise too much: how much of it trees reach.

Cuts let a switch send more than it receives, and GPUs outside a group do what the group would have
to pay for.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from colsynth.errors import InfeasibleError
from colsynth.model import AllreduceBound, FlowBound, Problem
from colsynth.units import exact_gb_per_s, format_bandwidth, gb_per_s, percent

if TYPE_CHECKING:
    from colsynth.model import Bound, Forest

_MOST_WORK = 400_000
"""Members of all groups times links up to which trees are packed to see what they reach. The 256
GPUs of 32 DGX A100 in two groups (390,000) take 0.9 s."""
_MOST_WITH_RELAYS = 40_000
"""The same where other GPUs relay: 24 GPUs of 32 DGX A100 (37,000) take 7 s."""


class Reached(NamedTuple):
    """The rate that trees reach: the bound by theorem (no forest), or that of a forest."""

    forest: Forest | None
    algbw: Fraction | None


def reached(problem: Problem, found: Bound | FlowBound | AllreduceBound) -> Reached | None:
    """Return what trees reach; None for flows, and where the bound is reached by theorem.

    That is with one group, no transit, and as much ingress as egress at every switch.
    """
    from colsynth.synthesis.forest.forwarding import is_lopsided

    several = problem.transit or len(problem.groups) > 1
    if isinstance(found, FlowBound) or not (several or is_lopsided(problem.topology)):
        return None
    if len(problem.groups) == 1 and _by_theorem(problem, found):
        return Reached(None, found.algbw)
    most = _MOST_WITH_RELAYS if problem.transit else _MOST_WORK
    if sum(map(len, problem.members)) * len(problem.topology.links) > most:
        return Reached(None, None)
    from colsynth import api

    forest = api.pack(problem)
    if forest.algbw < found.algbw:
        forest = max(forest, api.pack(problem, "optimal"), key=lambda x: x.algbw)
    is_free = isinstance(found, AllreduceBound) and found.rooted and not problem.groups
    if is_free and forest.algbw < found.algbw:
        with suppress(InfeasibleError):  # none may be found
            free = api.pack(problem, "optimal", free_roots=True)
            forest = max(forest, free, key=lambda x: x.algbw)
    return Reached(forest, forest.algbw)


def _by_theorem(problem: Problem, found: Bound | AllreduceBound) -> bool:
    from colsynth.bounds.groups.bounds import forwarding_suffices

    best = found.composition.algbw if isinstance(found, AllreduceBound) else found.algbw
    return best == found.algbw and forwarding_suffices(problem)


def reached_text(found: Reached, bound: Fraction) -> str:
    """Return what trees reach, as text."""
    if found.algbw is None:
        return "not known here: trees of so many GPUs take long; api.pack packs them"
    if found.forest is None:
        return "yes, by trees for which other nodes only forward (edge splitting)"
    trees = "trees with free roots" if found.forest.together else "trees"
    if found.algbw == bound:
        return f"yes, by {trees}"
    less = f"{percent(1 - found.algbw / bound):.2f} % less"
    return f"{format_bandwidth(found.algbw)} by {trees}, {less}; what lies between is not known"


def group_fields(problem: Problem, found: Reached | None) -> dict[str, Any]:
    """Return the JSON fields of process groups, and of what trees reach; often empty."""
    fields: dict[str, Any] = {}
    if problem.groups:
        fields = {"groups": [list(group) for group in problem.groups], "transit": problem.transit}
    if found is not None:
        best = found.algbw
        fields["reached_gb_per_s"] = None if best is None else gb_per_s(best)
        fields["reached"] = None if best is None else exact_gb_per_s(best)
    return fields


def is_optimum(bound: Fraction, found: Reached | None) -> bool:
    """Return whether a bound is known to be reached."""
    return found is None or found.algbw == bound
