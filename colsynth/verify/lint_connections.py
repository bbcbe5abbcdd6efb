"""Rules about connections: C01, C02, C04 (contract 4.6, 4.7)."""

from __future__ import annotations

import numpy as np

from colsynth.model import Severity
from colsynth.runtimes.rules import Findings
from colsynth.verify.table import Bools
from colsynth.verify.units import Units


def lint_connections(units: Units, findings: Findings, *, single_node: bool | None) -> None:
    """Check that the two ends of every connection agree."""
    ends = zip(units.connections, units.sender, units.receiver, strict=True)
    odd = _differing(units)
    for number, (name, sender, receiver) in enumerate(ends):
        if sender < 0 or receiver < 0:
            _unmatched(units, findings, number)
        elif odd[number]:
            _sequence(units, findings, name, sender, receiver)
    header = units.table.header
    if header.collective.rooted and header.protocol == "Simple" and single_node is not True:
        level = Severity.ERROR if single_node is False else Severity.WARNING
        text = f"a Simple {header.collective} hangs over the network: use LL or LL128"
        if single_node is None:
            text = f"the file is fine within one node (--single-node); {text}"
        findings.add("C04", text, level=level)


def _differing(units: Units) -> Bools:
    """Return whose ends send and receive other numbers of messages, or others."""
    count, many = units.table.count, len(units.connections)
    sent, taken = (np.bincount(end[end >= 0], minlength=many) for end in (units.send, units.recv))
    received = np.flatnonzero(units.match >= 0)
    other = received[count[received] != count[units.match[received]]]
    found: Bools = sent != taken
    found[units.recv[other]] = True
    return found


def _unmatched(units: Units, findings: Findings, number: int) -> None:
    source, target, channel = units.connections[number]
    sends = units.sender[number] >= 0
    block = units.sender[number] if sends else units.receiver[number]
    table = units.table
    text = (
        f"rank {source} sends to rank {target} on channel {channel}, which does not receive it"
        if sends
        else f"rank {target} receives from rank {source} on channel {channel}, which sends nothing"
    )
    findings.add("C01", text, int(table.rank[block]), int(table.id[block]))


def _sequence(
    units: Units, findings: Findings, name: tuple[int, int, int], sender: int, receiver: int
) -> None:
    table = units.table
    own, others = units.of(sender), units.of(receiver)
    sent = table.count[own[units.send[own] >= 0]].tolist()
    taken = table.count[others[units.recv[others] >= 0]].tolist()
    source, target, channel = name
    at = next((n for n, (a, b) in enumerate(zip(sent, taken, strict=False)) if a != b), None)
    what = (
        f"{len(sent)} messages are sent, {len(taken)} received"
        if at is None
        else f"message {at} is sent with cnt {sent[at]} and received with cnt {taken[at]}"
    )
    text = f"from rank {source} to rank {target} on channel {channel}: {what}"
    findings.add("C02", text, int(table.rank[receiver]), int(table.id[receiver]))
