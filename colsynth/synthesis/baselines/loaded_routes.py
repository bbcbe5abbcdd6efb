"""Direct ways between GPUs, and how full their links are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import lcm

from colsynth.cost.pair_routes import gpus_passed, most_passed, pair_routes
from colsynth.cost.routes import Route, routes
from colsynth.model import Topology
from colsynth.runtimes.profile import Profile


class LoadedRoutes:
    """Ways from GPU to GPU through no third, and the loads that were put on them so far.

    Parameters
    ----------
    topology : Topology
    known : dict, optional
        The ways of every pair, where they have been searched for already.
    """

    def __init__(
        self, topology: Topology, known: dict[tuple[int, int], list[Route]] | None = None
    ) -> None:
        self.topology = topology
        self._routes: dict[tuple[int, int], list[Route]] = {}
        for source, target, route in routes(topology) if known is None else ():
            self._routes.setdefault((source, target), []).append(route)
        self._routes.update(known or {})
        self._targets: dict[int, list[int]] = {}
        for source, target in sorted(self._routes):
            self._targets.setdefault(source, []).append(target)
        self._load = [0] * len(topology.links)
        unit = lcm(*(link.bandwidth.numerator for link in topology.links))
        self._busy = [int(unit / link.bandwidth) for link in topology.links]
        self.taken = Counter[tuple[int, int]]()

    def unloaded(self) -> LoadedRoutes:
        """Return the same ways without loads."""
        return LoadedRoutes(self.topology, self._routes)

    def widened(self, more: dict[tuple[int, int], list[Route]]) -> LoadedRoutes:
        """Return these ways and others, without loads."""
        return LoadedRoutes(self.topology, self._routes | more)

    def joins(self, source: int, target: int) -> bool:
        """Whether a way leads from one rank to another."""
        return (source, target) in self._routes

    def length(self, source: int, target: int) -> int:
        """Return the links of the shortest way from one rank to another."""
        return min(map(len, self._routes[source, target]))

    def targets(self, source: int) -> list[int]:
        """Return the ranks that ways from a rank lead to, ascending."""
        return self._targets.get(source, [])

    def cost(self, source: int, target: int) -> int:
        """Return how long the fullest link of the best way is busy with one load more.

        It is in a unit of time in which every link takes whole numbers.
        """
        return min(self._fullest(route) for route in self._routes[source, target])

    def best(self, source: int, target: int) -> Route:
        """Return the way whose fullest link is least so with one load more, first of equals."""
        return min(self._routes[source, target], key=self._fullest)

    def take(self, pairs: Iterable[tuple[int, int]]) -> tuple[Route, ...]:
        """Put one load on the best way of each pair, and return these ways."""
        taken = []
        for source, target in pairs:
            route = self.best(source, target)
            self.taken[source, target] += 1
            for link in route:
                self._load[link] += 1
            taken.append(route)
        return tuple(taken)

    @property
    def fullest(self) -> Fraction:
        """How long the fullest link is busy with its loads."""
        links = self.topology.links
        busy = (Fraction(n) / links[i].bandwidth for i, n in enumerate(self._load))
        return max(busy, default=Fraction(0))

    def _fullest(self, route: Route) -> int:
        return max((self._load[link] + 1) * self._busy[link] for link in route)


def connections(
    topology: Topology, profile: Profile, pairs: Iterable[tuple[int, int]]
) -> LoadedRoutes:
    """Return the ways between GPUs, also those that pass others.

    Data of a connection passes no more of them than a runtime lets it (`most_passed`).

    Parameters
    ----------
    topology : Topology
    profile : Profile
    pairs : iterable of (int, int)
        Ranks for which ways that pass others are looked for.
    """
    ways = LoadedRoutes(topology)
    most = {
        pair: most_passed(topology, pair, profile.passes_on)
        for pair in pairs
        if not ways.joins(*pair)
    }
    apart = [pair for pair, limit in most.items() if limit]
    found = pair_routes(topology, apart) if apart else {}
    known = {
        pair: list(kept)
        for pair, kept in found.items()
        if gpus_passed(topology, kept[0]) <= most[pair]
    }
    return ways.widened(known)
