"""Box -> Plan: how many there are, and the switch between them where no file tells of a fabric."""

from __future__ import annotations

from dataclasses import replace

from colsynth.errors import Diagnostic, InputError
from colsynth.topology.builder import MAX_NODES
from colsynth.topology.importers import rates
from colsynth.topology.importers.plan import Box, Group, Part, Plan, Port, Wire, free_name

FABRIC = "ib"
"""What switches between boxes are called, as in the presets."""


def repeated(name: str, box: Box, boxes: int, hosts: tuple[str, ...] = ()) -> Plan:
    """Return equal boxes on one switch that blocks nothing, or on one per rail that is named.

    Raises
    ------
    InputError
        CS153: there are several boxes, and nothing tells what joins them. CS125: there are too
        many.
    """
    nodes = boxes * sum(len(group.members) for group in box.part.groups)
    if nodes > MAX_NODES:
        phrase = f"{boxes} boxes of {box.title} are too many"
        notes = (f"they have {nodes} nodes, the limit is {MAX_NODES}",)
        raise InputError(Diagnostic("CS125", phrase, notes=notes, help="give fewer --boxes"))
    if boxes > 1 and not box.ports:
        phrase = f"nothing joins the {boxes} boxes: no NIC with a known rate"
        advice = "give --nic-bandwidth, such as '50 GB/s'"
        raise InputError(Diagnostic("CS153", phrase, help=advice))
    names = hosts or ("",) * boxes
    plan = Plan(name, box.title, box.notes, box.part, names, uplinks=((),) * boxes)
    if not box.ports:
        return plan
    planes = sorted({port.plane for port in box.ports if port.plane is not None})
    rails = len(planes) > 1 and all(port.plane is not None for port in box.ports)
    note = "Rails that the file names." if rails else "One switch that blocks nothing, assumed."
    count = len(planes) if rails else 1
    name = free_name(FABRIC, box.part)
    group = Group(name, "switch", ("",) * count, note)
    wires = tuple(
        uplink(port, planes.index(port.plane) if rails and port.plane is not None else 0, name)
        for port in box.ports
    )
    return replace(plan, fabric=Part((group,)), uplinks=(wires,) * boxes)


def uplink(port: Port, switch: int, group: str) -> Wire:
    """Return the link from a port of a box to a switch of the fabric."""
    rate = port.rate
    if not rate.latency:
        delay = rates.latency("fabric")
        rate = replace(rate, latency=delay.value, latency_source=delay.source)
    return Wire(port.node, (group, switch), rate)
