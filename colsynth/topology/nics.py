"""NICs lead from their box to one place outside: they do not pass data from port to port."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Kind, Topology
from colsynth.text import listed
from colsynth.topology.boxes import parts_without_nics

_NAMED = 3
"""Neighbours that are named before the rest is counted."""


def require_one_port(topology: Topology, spans: Sequence[Span | None]) -> None:
    """Refuse NICs between networks: with several neighbours on the far side, which differ.

    Routes lead through NICs. One between two switches of the fabric would pass data on to GPUs of
    other boxes, which no NIC does. Switches may be planes of one network, where each leads to
    all NICs and GPUs that the next one leads to: what has a port on both needs no such way.

    Parameters
    ----------
    topology : Topology
    spans : sequence of Span or None
        Where each node is declared.

    Raises
    ------
    InputError
        CS145: a NIC is between two networks, or more.
    """
    kinds = [node.kind for node in topology.nodes]
    near: list[set[int]] = [set() for _ in kinds]
    for source, target in topology.link_between:
        near[source].add(target)
        near[target].add(source)
    inside = _joined_to_gpus(topology)
    for nic, kind in enumerate(kinds):
        if kind is not Kind.NIC:
            continue
        far = sorted(near[nic] - inside)
        led = [{i for i in near[other] if kinds[i] is not Kind.SWITCH} for other in far]
        led.sort(key=len)
        if not all(few <= more for few, more in pairwise(led)):
            raise _refusal(topology, nic, far, spans[nic])


def _joined_to_gpus(topology: Topology) -> set[int]:
    """Return the nodes that links without NICs join to a GPU."""
    component = parts_without_nics(topology)
    of_gpus = {component[gpu] for gpu in topology.ranks}
    return {node for node, number in component.items() if number in of_gpus}


def _refusal(topology: Topology, nic: int, far: list[int], span: Span | None) -> InputError:
    name = topology.nodes[nic].name
    places = listed([repr(topology.nodes[other].name) for other in far], _NAMED)
    phrase = f"NIC {name!r} is between {len(far)} networks: {places}"
    note = "data would pass through it from one to the other, which no NIC does"
    advice = "describe each port as a NIC of its own; a switch in the box may lead to all of them"
    return InputError(Diagnostic("CS145", phrase, span, notes=(note,), help=advice))
