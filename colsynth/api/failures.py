"""Broken clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from colsynth.model import Topology

if TYPE_CHECKING:
    from colsynth.topology.damage import Damage


def damage(
    topology: Topology,
    *,
    links: Sequence[str] = (),
    gpus: Sequence[str] = (),
    nics: Sequence[str] = (),
    degraded: Sequence[str] = (),
) -> Damage:
    """Return what failures leave of a topology, and who has which rank then.

    Parameters
    ----------
    topology : Topology
        The healthy one.
    links : sequence of str
        Links that are gone: ``"A-B"``, or ``"A->B"`` for one direction.
    gpus : sequence of str
        GPUs that are gone, by name or by rank.
    nics : sequence of str
        NICs that are gone, by name.
    degraded : sequence of str
        Links that are slower: ``"A-B=50%"`` is left of the bandwidth.

    Returns
    -------
    Damage
        Its `topology` is what is left; `old_ranks` has, by rank, the rank before.

    Raises
    ------
    InputError
        CS132 to CS135: a failure names what is not there, or they contradict each other.
        CS117: fewer than two GPUs are left.
    InfeasibleError
        CS302: some GPUs are cut off; they are named.
    """
    from colsynth.topology.failure_text import read_failures
    from colsynth.topology.failures import apply_failures

    failures = read_failures(topology, links=links, gpus=gpus, nics=nics, degraded=degraded)
    return apply_failures(topology, failures)
