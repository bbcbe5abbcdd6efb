"""NICs lead from their box to one place outside: they do not pass data from port to port."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Direction, Kind, Topology
from colsynth.text import listed
from colsynth.topology.reach import joined

_Wire = dict[Direction, tuple[Fraction, Fraction]]
"""Bandwidth and latency from a node to another, and back."""

_NAMED = 3
"""Neighbours that are named before the rest is counted."""


def require_one_port(topology: Topology, spans: Sequence[Span | None]) -> None:
    """Refuse NICs with several neighbours outside their box, unless these are alike.

    Routes lead through NICs. One between two switches of the fabric would pass data on to GPUs of
    other boxes, which no NIC does. Switches with the same links are planes of one network: to pass
    from one to the other leads to nothing that is out of reach.

    Parameters
    ----------
    topology : Topology
    spans : sequence of Span or None
        Where each node is declared.

    Raises
    ------
    InputError
        CS145: a NIC has two different neighbours outside its box, or more.
    """
    nics = [index for index, node in enumerate(topology.nodes) if node.kind is Kind.NIC]
    if not nics:
        return
    around: dict[int, dict[int, _Wire]] = {}
    for link in topology.links:
        wire = link.bandwidth, link.latency
        around.setdefault(link.source, {}).setdefault(link.target, {})[Direction.OUT] = wire
        around.setdefault(link.target, {}).setdefault(link.source, {})[Direction.IN] = wire
    inside = _with_gpus(topology)
    for nic in nics:
        near, box = around.get(nic, {}), topology.nodes[nic].box
        far = sorted(i for i in near if topology.nodes[i].box != box or i not in inside)
        if any(around[other] != around[far[0]] for other in far[1:]):
            raise _refusal(topology, nic, far, spans[nic])


def _with_gpus(topology: Topology) -> set[int]:
    """Return the nodes that links without NICs join to a GPU."""
    plain = [index for index, node in enumerate(topology.nodes) if node.kind is not Kind.NIC]
    kept = set(plain)
    arcs = [link.ends for link in topology.links if kept.issuperset(link.ends)]
    gpus = set(topology.ranks)
    return {node for part in joined(plain, arcs) if part & gpus for node in part}


def _refusal(topology: Topology, nic: int, far: list[int], span: Span | None) -> InputError:
    name = topology.nodes[nic].name
    places = listed([repr(topology.nodes[other].name) for other in far], _NAMED)
    phrase = f"NIC {name!r} has {len(far)} neighbours outside its box: {places}"
    note = "data would pass through it from one to the other, which no NIC does"
    advice = "describe each port as a NIC of its own; a switch in the box may lead to all of them"
    return InputError(Diagnostic("CS145", phrase, span, notes=(note,), help=advice))
