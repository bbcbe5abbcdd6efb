"""Which nodes of two selections a rule of the compact form joins, and how often."""

from __future__ import annotations

from collections.abc import Callable

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.topology.builder import MAX_LINKS
from colsynth.topology.schema import LinkRule

Place = Callable[..., Span]
"""Where a key of the rule stands: ``place("counts", 2)``."""

Joined = list[tuple[int, int, int]]
"""(index into the sources, index into the targets, parallel links)."""


def joined(rule: LinkRule, sources: int, targets: int, same: bool, place: Place) -> Joined:
    """Return the pairs that a rule joins.

    Parameters
    ----------
    rule : LinkRule
    sources, targets : int
        How many nodes `from` and `to` mean.
    same : bool
        Whether they are the same nodes.
    place : callable

    Raises
    ------
    InputError
        Counts or blocks do not fit the numbers of nodes, or CS125: there are too many pairs.
    """
    if rule.counts is not None:
        return _counted(rule, rule.counts, (sources, targets), same, place)
    if rule.join == "blocks":
        return _shared(_blocks, sources, targets, place)
    if rule.join == "round-robin":
        return _shared(_round_robin, sources, targets, place)
    pairs = sources * (sources - 1) if same else sources * targets * (1 if rule.one_way else 2)
    if pairs > MAX_LINKS:
        phrase = f"{sources} nodes joined to {targets} are {pairs} links"
        raise InputError(
            Diagnostic("CS125", phrase, place("from"), (f"the limit is {MAX_LINKS} links",))
        )
    if not same:
        return [(i, j, 1) for i in range(sources) for j in range(targets)]
    first = [0 if rule.one_way else i for i in range(sources)]
    return [(i, j, 1) for i in range(sources) for j in range(first[i], sources) if i != j]


def _shared(
    spread: Callable[[int, int, Place], list[int]], sources: int, targets: int, place: Place
) -> Joined:
    """Return one pair for every node of the larger side."""
    partners = spread(max(sources, targets), min(sources, targets), place)
    turned = sources < targets
    return [(y, x, 1) if turned else (x, y, 1) for x, y in enumerate(partners)]


def _blocks(large: int, small: int, place: Place) -> list[int]:
    if large % small:
        raise _misfit(f"{large} nodes cannot be shared out evenly among {small}", place("join"))
    return [x * small // large for x in range(large)]


def _round_robin(large: int, small: int, _place: Place) -> list[int]:
    return [x % small for x in range(large)]


def _counted(
    rule: LinkRule, rows: list[list[int]], shape: tuple[int, int], same: bool, place: Place
) -> Joined:
    if rule.join is not None:
        raise _misfit("give either 'join' or 'counts'", place("join"))
    if len(rows) != shape[0]:
        raise _misfit(f"{len(rows)} rows of counts for {shape[0]} nodes", place("counts"))
    for i, row in enumerate(rows):
        if len(row) != shape[1]:
            raise _misfit(f"row of {len(row)} counts for {shape[1]} nodes", place("counts", i))
    if same:
        _check_square(rows, rule.one_way, place)
    return [(i, j, count) for i, row in enumerate(rows) for j, count in enumerate(row) if count]


def _check_square(rows: list[list[int]], one_way: bool, place: Place) -> None:
    """Refuse self-links, and a direction that differs from the other by mistake."""
    for i, row in enumerate(rows):
        if row[i]:
            phrase = f"node {i} has {row[i]} links to itself"
            raise InputError(Diagnostic("CS115", phrase, place("counts", i, i)))
        for j, count in enumerate(() if one_way else row):
            if count != rows[j][i]:
                phrase = f"{count} links from {i} to {j}, but {rows[j][i]} from {j} to {i}"
                raise _misfit(phrase, place("counts", i, j))


def _misfit(phrase: str, span: Span) -> InputError:
    return InputError(Diagnostic("CS118", phrase, span))
