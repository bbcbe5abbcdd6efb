"""Large neighbourhood search: a few chunks at a time take other ways through what the rest leaves.

The chunks that arrive last, and some that share links with them, are taken out of a schedule. The
interval model (`intervals`) puts them back so that all arrive earlier than the last one did; other
chunks keep their times. Where it cannot, more chunks are taken out. Random numbers have a seed, and
the limit is the solver's own work.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.intervals import Timing
from colsynth.synthesis.exact.steps import Sent, span
from colsynth.synthesis.exact.worker import solve

_LAST = 4
"""Most chunks of the last moment that are taken out at once."""

_BESIDE = (0, 2, 4, 8)
"""Chunks taken out beside them, after so many failures."""

_ROUNDS = 3
"""How often these are tried in vain."""

_EACH = 0.1
"""Most work of a question, as the solver counts it: those that take longer rarely end."""

_SOLVING, _CHOICES = 5, 20_000
"""Seconds that such questions take per unit of the solver's count, and choices per second that the
model takes to be made: work is about a second, too, where questions are many and small."""


def improve(
    asked: Instance, sent: Sequence[Sent], least: int, work: float, seed: int
) -> tuple[Sent, ...]:
    """Return a schedule that ends no later.

    Parameters
    ----------
    asked : Instance
        Without symmetries.
    sent : sequence of Sent
        A schedule; its steps are the times of starts in units.
    least : int
        Units that some bound asks for.
    work : float
        In the solver's units.
    seed : int
    """
    rng, taken, failures = random.Random(seed), span(asked), 0
    rows: dict[int, list[Sent]] = {}
    for x in sent:
        rows.setdefault(x.chunk, []).append(x)
    while work > 0 and failures < _ROUNDS * len(_BESIDE):
        ends = {c: max(x.step + int(taken[x.hop]) for x in some) for c, some in rows.items()}
        end = max(ends.values())
        if end <= least:
            break
        last = [c for c, time in sorted(ends.items()) if time == end]
        some = _chosen(asked, rows, rng.sample(last, min(len(last), _LAST)), failures, rng)
        busy = _busy(asked, (x for c, row in rows.items() if c not in some for x in row))
        question = Timing(_EACH, least, end - 1, seed, busy=busy)
        answer = solve(_only(asked, some), question)
        work -= _SOLVING * answer.work + answer.choices / _CHOICES
        if answer.sent:
            moved = {c: [x for x in answer.sent if some[x.chunk] == c] for c in some}
            rows |= {c: [x._replace(chunk=c) for x in row] for c, row in moved.items()}
            failures = 0
        else:
            failures += 1
    return tuple(sorted(x for row in rows.values() for x in row))


def _chosen(
    asked: Instance, rows: dict[int, list[Sent]], last: list[int], failures: int, rng: random.Random
) -> list[int]:
    """Return chunks to take out: the last, and some that share links with them."""
    hops = asked.hops
    most = _BESIDE[failures % len(_BESIDE)]
    used = {
        int(link)
        for c in last
        for x in rows[c]
        for link in hops.links[hops.first[x.hop] : hops.first[x.hop + 1]]
    }
    on = np.zeros(len(hops), np.bool_)
    for h in range(len(hops)):
        on[h] = not used.isdisjoint(hops.links[hops.first[h] : hops.first[h + 1]].tolist())
    beside = [c for c, row in sorted(rows.items()) if c not in last and any(on[x.hop] for x in row)]
    return sorted([*last, *rng.sample(beside, min(most, len(beside)))])


def _busy(asked: Instance, sent: Iterable[Sent]) -> tuple[tuple[int, int, int], ...]:
    """Return (link, begin, end) of the times that transfers occupy, those that touch as one."""
    hops, rows = asked.hops, []
    for x in sent:
        for i in range(int(hops.first[x.hop]), int(hops.first[x.hop + 1])):
            link = int(hops.links[i])
            begin = x.step + -(-int(hops.begin[i]) // asked.unit)
            rows.append((link, begin, begin + int(asked.moving[link])))
    joined: list[tuple[int, int, int]] = []
    for link, begin, end in sorted(rows):
        touches = bool(joined) and joined[-1][0] == link and joined[-1][2] >= begin
        _, first, last = joined.pop() if touches else (link, begin, end)
        joined.append((link, first, max(end, last)))
    return tuple(joined)


def _only(asked: Instance, some: list[int]) -> Instance:
    """Return the instance of some chunks."""
    place = {c: i for i, c in enumerate(some)}
    return replace(
        asked,
        holders=[asked.holders[c] for c in some],
        wanted=[asked.wanted[c] for c in some],
        barred=frozenset((place[c], h) for c, h in asked.barred if c in place),
        same=asked.same[some],
    )
