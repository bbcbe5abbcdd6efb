"""The certificates of allreduce bounds, checked from their definitions in exact arithmetic.

A `Limit` is a cut or a partition and its arithmetic. A `RootedBound` is a set of prices.
A chunk whose root lies in a priced OUT set leaves that set on its way to some GPU outside;
one whose root lies in a priced IN set enters it from there. Links are paid at most what
the dearer half of their data pays, and a node that forwards loses nothing by refunds:
what it takes from the units that enter, it gives back to those that leave. So

    rate * (least price over roots) <= sum(bandwidth * price of the link).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from colsynth.errors import Diagnostic, VerificationError
from colsynth.model import Direction, Kind, Limit, Link, Problem, RootedBound, Topology

_POWER = {Direction.OUT: "multicast", Direction.IN: "reduce"}


def open_links(problem: Problem, groups: Iterable[tuple[int, ...]]) -> list[bool]:
    """Return by link whether one of some process groups may take it: with transit, any link.

    Elsewhere no link at a GPU of others; and of a group that its box joins, only those in the box.
    """
    topology = problem.topology
    if problem.transit or not problem.groups:
        return [True] * len(topology.links)
    found = [False] * len(topology.links)
    for group in groups:
        gone = set(topology.ranks) - {topology.ranks[rank] for rank in group}
        own = [not {link.source, link.target} & gone for link in topology.links]
        within = [x and _stays(topology, link) for x, link in zip(own, topology.links, strict=True)]
        taken = within if _joins(topology, within, group) else own
        found = [x or y for x, y in zip(found, taken, strict=True)]
    return found


def _stays(topology: Topology, link: Link) -> bool:
    """Whether a link is inside a box."""
    near, far = (topology.nodes[node].box for node in (link.source, link.target))
    return near is not None and near == far


def _joins(topology: Topology, taken: Sequence[bool], group: tuple[int, ...]) -> bool:
    """Whether some links lead from the first GPU of a group to all others, and back."""
    arcs = [(x.source, x.target) for x, y in zip(topology.links, taken, strict=True) if y]
    for ways in (arcs, [(target, source) for source, target in arcs]):
        seen, grown = {topology.ranks[group[0]]}, True
        while grown:
            more = {target for source, target in ways if source in seen} - seen
            grown, seen = bool(more), seen | more
        if not {topology.ranks[rank] for rank in group} <= seen:
            return False
    return True


def check_limit(problem: Problem, limit: Limit) -> None:
    """Check a bound on all allreduces; raise VerificationError CS524 where it is none."""
    topology = problem.topology
    nodes = [node for part in limit.parts for node in part]
    gpus = _members(problem)
    if not limit.parts or len(nodes) != len(set(nodes)):
        raise _failure("the sets of the limit overlap, or there are none")
    if any(not gpus & set(part) for part in limit.parts):
        raise _failure("a set of the limit holds no GPU")
    outside = gpus - set(nodes)
    if len(limit.parts) == 1 and not outside:
        raise _failure("the cut of the limit leaves no GPU outside")
    if len(limit.parts) > 1 and outside:
        raise _failure("the partition of the limit leaves GPUs out")
    if len(limit.parts) > 1 and problem.transit:
        raise _failure("a partition bounds nothing where other GPUs may add up")
    owner = {node: number for number, part in enumerate(limit.parts) for node in part}
    counted = Fraction(0)
    is_open = open_links(problem, problem.members)
    for index, link in enumerate(topology.links):
        if not is_open[index]:
            continue
        ends = (link.source, link.target)
        near, far = ends if limit.direction is Direction.OUT else (ends[1], ends[0])
        if near in owner and owner.get(far) != owner[near]:
            counted += link.bandwidth
    times = max(1, 2 * (len(limit.parts) - 1))
    if counted != limit.bandwidth or limit.algbw * times != counted:
        text = f"the limit's links carry {counted} bytes/s, {times} times the data"
        raise _failure(f"{text} must cross, which does not allow {limit.algbw}")


def check_rooted(problem: Problem, found: RootedBound) -> None:
    """Check a bound on allreduces with roots; raise VerificationError CS524 where it is none."""
    topology = problem.topology
    gpus = _members(problem)
    for cut in found.cuts:
        if cut.price <= 0 or gpus <= set(cut.nodes):
            raise _failure("a priced set leaves no GPU outside, or its price is not above 0")
    for way, node, _ in found.potentials:
        name, kind = topology.nodes[node].name, topology.nodes[node].kind
        if kind is Kind.GPU:
            raise _failure(f"{name} is a GPU and cannot give refunds")
        if found.in_network and _POWER[way] in topology.nodes[node].capabilities:
            raise _failure(f"{name} does not just forward and cannot give refunds")
    roots = gpus | set(_summing(problem, found))
    least = min(sum(cut.price for cut in found.cuts if root in cut.nodes) for root in roots)
    if least <= 0:
        raise _failure("some root pays nothing")
    out = _paid(topology, found, Direction.OUT)
    into = _paid(topology, found, Direction.IN)
    is_open = open_links(problem, problem.members)
    worth = sum(
        (
            link.bandwidth * max(0, out[i], into[i])
            for i, link in enumerate(topology.links)
            if is_open[i]
        ),
        Fraction(0),
    )
    if worth != found.algbw * least:
        raise _failure(f"the prices allow {worth / least} bytes/s, not {found.algbw}")


def _members(problem: Problem) -> set[int]:
    """Return the nodes of the GPUs that want the sum; they are of one group."""
    if len(problem.members) > 1:
        raise _failure("the bound is for one process group, not for several")
    return {problem.topology.ranks[rank] for rank in problem.members[0]}


def _summing(problem: Problem, found: RootedBound) -> Iterator[int]:
    """Yield the nodes outside the group at which a chunk may be added up as well."""
    if problem.transit:
        yield from problem.topology.ranks
    for index, node in enumerate(problem.topology.nodes):
        if found.in_network and set(_POWER.values()) <= set(node.capabilities):
            yield index


def _paid(topology: Topology, found: RootedBound, direction: Direction) -> list[int]:
    """Return what a unit of one direction's data pays on every link."""
    sets = [(set(c.nodes), c.price) for c in found.cuts if c.direction is direction]
    refunds = {node: value for way, node, value in found.potentials if way is direction}
    prices = []
    for link in topology.links:
        ends = (link.source, link.target)
        near, far = ends if direction is Direction.OUT else (ends[1], ends[0])
        price = refunds.get(far, 0) - refunds.get(near, 0)
        price += sum(value for nodes, value in sets if near in nodes and far not in nodes)
        prices.append(price)
    return prices


def _failure(phrase: str) -> VerificationError:
    return VerificationError(Diagnostic("CS524", phrase))
