"""What is broken, what that leaves of a topology, and how both are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from colsynth.model import Topology
from colsynth.text import listed
from colsynth.units import percent, spell_percent

Ends = tuple[int, int]
"""Node indices of a directed link: source, target."""

NAMED = 6
"""Failures that the name of a topology lists before it counts the rest."""


@dataclass(frozen=True, slots=True)
class Failures:
    """What is broken, by the node indices of a topology; each tuple ascending.

    Parameters
    ----------
    gpus, nics : tuple of int
        Nodes that are gone.
    links : tuple of (int, int)
        Directed links that are gone.
    degraded : tuple of ((int, int), Fraction)
        Directed links, and the share of the bandwidth that each still has.
    """

    gpus: tuple[int, ...] = ()
    nics: tuple[int, ...] = ()
    links: tuple[Ends, ...] = ()
    degraded: tuple[tuple[Ends, Fraction], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gpus or self.nics or self.links or self.degraded)


@dataclass(frozen=True)
class Damage:
    """What failures leave of a topology.

    Parameters
    ----------
    healthy : Topology
    failures : Failures
    topology : Topology
        What is left; its name says what is missing.
    old_ranks : tuple of int
        By rank of `topology`, the rank in `healthy`.
    pruned : tuple of int
        Node indices of `healthy`: NICs and switches of no use any more, ascending.
    """

    healthy: Topology
    failures: Failures
    topology: Topology
    old_ranks: tuple[int, ...]
    pruned: tuple[int, ...] = ()

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """What is gone, as `dropped_names` tells it."""
        return dropped_names(self.healthy, self.failures)

    @cached_property
    def degraded(self) -> dict[str, Fraction]:
        """The share of bandwidth that is left, by link as in `dropped`."""
        shares = dict(self.failures.degraded)
        return {label: shares[ends] for ends, label in link_labels(self.healthy, shares).items()}

    @property
    def name(self) -> str:
        """What to call the topology that is left, such as ``"dgx-a100 x2 without nic0.1"``."""
        slow = tuple(f"{name} at {spell_percent(x)}" for name, x in self.degraded.items())
        parts = [self.healthy.name]
        if self.dropped:
            parts.append(f"without {listed(self.dropped, NAMED)}")
        if slow:
            parts.append(f"with {listed(slow, NAMED)}")
        return " ".join(parts)


def dropped_names(topology: Topology, failures: Failures) -> tuple[str, ...]:
    """Return what is gone: GPUs, NICs, then links as ``"A-B"`` (one way ``"A->B"``)."""
    nodes = (topology.nodes[i].name for i in (*failures.gpus, *failures.nics))
    return (*nodes, *link_labels(topology, dict.fromkeys(failures.links)).values())


def link_labels(topology: Topology, links: Mapping[Ends, object]) -> dict[Ends, str]:
    """Return names of links, such as ``"gpu0-gpu1"``; both directions of a link are one.

    Where only one direction is among `links`, or its value differs from the other's, the name
    is ``"gpu0->gpu1"``.
    """
    labels: dict[Ends, str] = {}
    for source, target in sorted(links):
        back = (target, source)
        both = back in links and links[back] == links[source, target]
        if both and back in labels:
            continue
        arrow = "-" if both else "->"
        labels[source, target] = arrow.join(topology.nodes[i].name for i in (source, target))
    return labels


def renumbered(old_ranks: Sequence[int]) -> str:
    """Return who has which rank now, in runs: ``"0-2 as before, 3-14 were 4-15"``."""
    runs: list[tuple[int, int]] = []
    for new, old in enumerate(old_ranks):
        if not runs or old - new != old_ranks[runs[-1][0]] - runs[-1][0]:
            runs.append((new, new))
        runs[-1] = (runs[-1][0], new)
    return ", ".join(_run(old_ranks, *run) for run in runs)


def _run(old_ranks: Sequence[int], first: int, last: int) -> str:
    old = old_ranks[first], old_ranks[last]
    now = _span(first, last)
    return f"{now} as before" if first == old[0] else f"{now} {_verb(first, last)} {_span(*old)}"


def _verb(first: int, last: int) -> str:
    return "was" if first == last else "were"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def describe_damage(damage: Damage) -> dict[str, Any]:
    """Return failures and their consequences as plain values, ready for JSON.

    ``old_ranks`` has, by rank, the rank of the same GPU in the healthy topology; ``degraded``
    the share of bandwidth that is left, in percent.
    """
    return {
        "healthy": damage.healthy.name,
        "dropped": list(damage.dropped),
        "degraded": {name: percent(share) for name, share in damage.degraded.items()},
        "pruned": [damage.healthy.nodes[node].name for node in damage.pruned],
        "old_ranks": list(damage.old_ranks),
    }
