"""The fewest steps of a collective on GPUs whose links all take one step per chunk."""

from __future__ import annotations

from itertools import product

from colsynth.model import Collective, Topology

Pair = tuple[int, int]


def copies_of(collective: Collective, ranks: int, chunks: int) -> list[tuple[int, set[int]]]:
    """Return (holder, wanted) of every chunk of a collective that copies, root 0."""
    everyone = set(range(ranks))
    found = {
        Collective.ALLGATHER: [(i, everyone) for i in range(ranks)],
        Collective.ALLTOALL: [(i, {j}) for i in range(ranks) for j in range(ranks) if i != j],
        Collective.BROADCAST: [(0, everyone)],
        Collective.SCATTER: [(0, {i}) for i in range(ranks)],
        Collective.GATHER: [(i, {0}) for i in range(ranks)],
    }
    return [item for item in found[collective] for _ in range(chunks)]


def fewest_steps(topology: Topology, copies: list[tuple[int, set[int]]]) -> int:
    """Return the steps of the best schedule, by trying every choice in every step.

    For three or four GPUs without switches and a handful of chunks.
    """
    links = [(link.source, link.target) for link in topology.links]
    start = tuple(
        sum(1 << chunk for chunk, (holder, _) in enumerate(copies) if holder == node)
        for node in range(topology.size)
    )
    goal = tuple(
        sum(1 << chunk for chunk, (_, wanted) in enumerate(copies) if node in wanted)
        for node in range(topology.size)
    )
    states, steps = {start}, 0
    while not any(_reached(state, goal) for state in states):
        states = _undominated({new for state in states for new in _after(state, links)})
        steps += 1
    return steps


def _reached(state: tuple[int, ...], goal: tuple[int, ...]) -> bool:
    return all(held & wanted == wanted for held, wanted in zip(state, goal, strict=True))


def _after(state: tuple[int, ...], links: list[Pair]) -> set[tuple[int, ...]]:
    """Return the states that one step may lead to; idle links are never better."""
    choices = []
    for source, target in links:
        news = state[source] & ~state[target]
        bits = [1 << i for i in range(news.bit_length()) if news >> i & 1]
        choices.append(bits or [0])
    found = set()
    for chosen in product(*choices):
        new = list(state)
        for (_, target), bit in zip(links, chosen, strict=True):
            new[target] |= bit
        found.add(tuple(new))
    return found


def _undominated(states: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Drop states that hold no more than another one anywhere."""
    kept: list[tuple[int, ...]] = []
    for state in sorted(states, key=lambda s: -sum(held.bit_count() for held in s)):
        if not any(all(a & ~b == 0 for a, b in zip(state, x, strict=True)) for x in kept):
            kept.append(state)
    return set(kept)
