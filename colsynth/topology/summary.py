"""What a topology adds up to: totals per node, and who is linked to whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from colsynth.model import Kind, Node, Topology


@dataclass(frozen=True, slots=True)
class Totals:
    """Bandwidth of one node, in bytes per second, by the kind of node at the other end.

    Parameters
    ----------
    node : Node
    rank : int or None
        None for switches and NICs.
    egress, ingress : dict
        Only kinds that it is linked to, in the order gpu, switch, nic.
    """

    node: Node
    rank: int | None
    egress: dict[Kind, Fraction]
    ingress: dict[Kind, Fraction]

    @property
    def total_egress(self) -> Fraction:
        """Bytes per second out of the node."""
        return sum(self.egress.values(), Fraction(0))

    @property
    def total_ingress(self) -> Fraction:
        """Bytes per second into the node."""
        return sum(self.ingress.values(), Fraction(0))


def totals(topology: Topology) -> tuple[Totals, ...]:
    """Return the totals of every node: GPUs in order of rank, then switches and NICs."""
    out: list[dict[Kind, Fraction]] = [{} for _ in topology.nodes]
    into: list[dict[Kind, Fraction]] = [{} for _ in topology.nodes]
    for link in topology.links:
        _add(out[link.source], topology.nodes[link.target].kind, link.bandwidth)
        _add(into[link.target], topology.nodes[link.source].kind, link.bandwidth)
    others = [i for i in range(len(topology.nodes)) if i not in topology.rank_of]
    return tuple(
        Totals(topology.nodes[i], topology.rank_of.get(i), _ordered(out[i]), _ordered(into[i]))
        for i in (*topology.ranks, *others)
    )


def matrix(topology: Topology) -> list[list[Fraction]]:
    """Return the direct bandwidth from rank (row) to rank (column), bytes per second."""
    rows = [[Fraction(0)] * topology.size for _ in topology.ranks]
    rank_of = topology.rank_of
    for link in topology.links:
        if link.source in rank_of and link.target in rank_of:
            rows[rank_of[link.source]][rank_of[link.target]] = link.bandwidth
    return rows


def headline(topology: Topology) -> str:
    """Return one line: name, sizes."""
    linked = {end for link in topology.links for end in link.ends}
    kinds = Counter(topology.nodes[node].kind for node in linked)  # not those that were left out
    counts = [(kind, kinds[kind]) for kind in Kind]
    names = {Kind.GPU: "GPU", Kind.SWITCH: "switch", Kind.NIC: "NIC"}
    parts = [_plural(count, names[kind]) for kind, count in counts if count]
    if topology.boxes:
        parts.append(_plural(len(topology.boxes), "box"))
    return f"{topology.name}: {', '.join((*parts, _plural(len(topology.links), 'link')))}"


def _plural(count: int, word: str) -> str:
    ending = "" if count == 1 else "es" if word.endswith(("x", "ch")) else "s"
    return f"{count} {word}{ending}"


def _add(sums: dict[Kind, Fraction], kind: Kind, bandwidth: Fraction) -> None:
    sums[kind] = sums.get(kind, Fraction(0)) + bandwidth


def _ordered(sums: dict[Kind, Fraction]) -> dict[Kind, Fraction]:
    return {kind: sums[kind] for kind in Kind if kind in sums}
