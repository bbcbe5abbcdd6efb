"""Broken parts of a cluster: a Topology and its failures -> the Topology that is left.

What a failure takes with it goes too: the links of a GPU or NIC that is gone, then NICs and
switches that no way from GPU to GPU can pass any more. The GPUs that are left keep their order
and get the ranks 0, 1, ... anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from colsynth.errors import Diagnostic, InfeasibleError, InputError
from colsynth.model import Kind, Link, Topology
from colsynth.text import listed
from colsynth.topology.damage import NAMED, Damage, Failures, link_labels
from colsynth.topology.nics import require_one_port
from colsynth.topology.reach import mutual, reached
from colsynth.topology.trunks import as_used


def apply_failures(topology: Topology, failures: Failures) -> Damage:
    """Return what failures leave of a topology.

    Raises
    ------
    InfeasibleError
        CS302: some GPUs can no longer be reached, or can reach nobody; they are named.
    InputError
        CS117: fewer than two GPUs are left. CS135: a link is degraded that is gone. CS145: what is
        left of planes are networks of their own, which NICs would join.
    """
    if not failures:
        return Damage(topology, failures, topology, tuple(range(topology.size)))
    whole = topology.whole or topology
    gone = {*failures.gpus, *failures.nics}
    links = _links_left(whole, failures, gone)
    _refuse_few(whole, gone)
    pruned = _useless(whole, links, gone)
    gone |= pruned
    places = {old: new for new, old in enumerate(_without(range(len(whole.nodes)), gone))}
    left = Topology(
        topology.name,
        tuple(whole.nodes[old] for old in places),
        _moved(links, places),
        tuple(places[node] for node in whole.ranks if node in places),
        whole.notes,
    )
    old_ranks = tuple(rank for rank, node in enumerate(whole.ranks) if node in places)
    damage = Damage(topology, failures, left, old_ranks, tuple(sorted(pruned)))
    _refuse_unreachable(damage)
    require_one_port(left, [None] * len(left.nodes))
    left = replace(left, name=damage.name)
    if topology.whole is not None:  # a slower wire serves again where the faster one is gone
        rates = {x.ends: x.bandwidth for x in _moved(whole.links, places)}
        left = as_used(left, rates)
    return replace(damage, topology=left)


def _moved(links: Iterable[Link], places: Mapping[int, int]) -> tuple[Link, ...]:
    """Return the links between nodes that are left, by their new indices."""
    return tuple(
        replace(link, source=places[link.source], target=places[link.target])
        for link in links
        if link.source in places and link.target in places
    )


def _links_left(topology: Topology, failures: Failures, gone: set[int]) -> tuple[Link, ...]:
    """Return the links that are left, with the bandwidth that they have."""
    dropped = set(failures.links)
    left = {
        ends: link
        for link in topology.links
        if (ends := link.ends) not in dropped and gone.isdisjoint(ends)
    }
    for ends, share in failures.degraded:
        if ends not in left:
            label = link_labels(topology, {ends: share})[ends]
            phrase = f"{label} is degraded, but it is dropped as well"
            raise InputError(Diagnostic("CS135", phrase, help="leave one of the two out"))
        left[ends] = replace(left[ends], bandwidth=left[ends].bandwidth * share)
    return tuple(left.values())


def _useless(topology: Topology, links: Iterable[Link], gone: set[int]) -> set[int]:
    """Return NICs and switches next to a failure that lead nowhere any more."""
    into: dict[int, set[int]] = {}
    out: dict[int, set[int]] = {}
    for link in links:
        into.setdefault(link.target, set()).add(link.source)
        out.setdefault(link.source, set()).add(link.target)
    before = {link.ends for link in links}
    lost = [x for x in topology.links if x.ends not in before]
    front = {end for link in lost for end in link.ends} - gone
    useless: set[int] = set()
    while front:
        node = front.pop()
        around = into.get(node, set()) | out.get(node, set())
        passable = len(around) > 1 and into.get(node) and out.get(node)
        if passable or topology.nodes[node].kind is Kind.GPU:
            continue
        useless.add(node)
        for other in around:
            into.get(other, set()).discard(node)
            out.get(other, set()).discard(node)
        front |= around - useless
    return useless


def _refuse_few(topology: Topology, gone: set[int]) -> None:
    left = [topology.nodes[node].name for node in topology.ranks if node not in gone]
    if len(left) < 2:
        found = f"{left[0]} alone is" if left else "no GPU is"
        phrase = "a collective needs two GPUs or more"
        raise InputError(Diagnostic("CS117", phrase, notes=(f"{found} left",)))


def _refuse_unreachable(damage: Damage) -> None:
    """Refuse a topology in parts; the largest part is the one that others are cut off from."""
    topology = damage.topology
    parts = _parts(topology)
    if len(parts) == 1:
        return
    main = max(parts, key=lambda part: (len(part), -part[0]))
    names = topology.gpu_names
    lost = [names[rank] for rank in range(topology.size) if rank not in set(main)]
    first = topology.ranks[main[0]]
    onwards = reached(first, topology.link_between)
    back = reached(first, ((link.target, link.source) for link in topology.links))
    node = dict(zip(names, topology.ranks, strict=True))
    apart = [name for name in lost if node[name] not in onwards and node[name] not in back]
    other = node[(apart or lost)[0]]
    way = (first, other) if other not in onwards else (other, first)
    source, target = (topology.nodes[end].name for end in way)
    missing = f"no data can pass from {source} to {target}"
    if apart:
        phrase, notes = (
            f"the failures cut {listed(apart, NAMED)} off from the other GPUs",
            [missing],
        )
        if rest := [name for name in lost if name not in apart]:
            notes.append(f"data can pass in one direction only to or from {listed(rest, NAMED)}")
    else:
        phrase = f"after the failures, {missing}"
        notes = ["every GPU must reach every other one, whatever the collective"]
    advice = _advice(lost) if len(main) > 1 else None
    raise InfeasibleError(Diagnostic("CS302", phrase, notes=tuple(notes), help=advice))


def _advice(lost: list[str]) -> str:
    others = " ".join(f"--drop-gpu {name}" for name in lost)
    if len(lost) > NAMED:
        others = f"a --drop-gpu for each of {len(lost)} others"
    return f"run on the largest part that is left: {others}"


def _parts(topology: Topology) -> list[tuple[int, ...]]:
    """Return ranks that can all reach each other, part by part; one part is as it should be."""
    rank = topology.rank_of
    parts = (
        tuple(sorted(rank[node] for node in part if node in rank))
        for part in mutual(topology.ranks, topology.link_between)
    )
    return list(parts)


def _without(values: Iterable[int], gone: set[int]) -> list[int]:
    return [value for value in values if value not in gone]
