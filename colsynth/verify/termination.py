"""Rules K01, K02 and D08: whether the program finishes for every size the file admits."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.verify.execute import UNBOUNDED, Run, execute
from colsynth.verify.table import Ints, Table
from colsynth.verify.units import Units

_NETWORK_STEP = 4
"""Simple broadcast and reduce: the host counts a quarter of a tile per chunk (4.4)."""


@dataclass(frozen=True)
class Sizing:
    """How a chunk count becomes calls: `group` chunks per call, `tiles` passes."""

    group: int
    tiles: int


@dataclass(frozen=True)
class Termination:
    """The order in which steps completed, whether all did, and what was tried."""

    order: Ints
    finishes: bool
    depth: int
    sizings: tuple[Sizing, ...]


def sizings(table: Table, profile: Profile) -> tuple[Sizing, ...]:
    """Return the ways to split steps into calls that the file's byte range admits.

    The largest message gives the most calls, the smallest the fewest.
    """
    header = table.header
    most = Sizing(1, 2)
    if header.max_bytes is not None:
        most = _sizing(table, profile, header.max_bytes)
    least = _sizing(table, profile, max(header.min_bytes, 1))
    if int(table.count.max(initial=1)) <= most.group:
        return (most,)
    return (most, Sizing(least.group, 1)) if least.group != most.group else (most,)


def _sizing(table: Table, profile: Profile, message: int) -> Sizing:
    header = table.header
    tile = profile.tile_bytes[header.protocol]
    chunk = max(1, -(-message // header.chunks))
    host = (
        tile // _NETWORK_STEP if header.collective.rooted and header.protocol == "Simple" else tile
    )
    group = min(max(1, host // chunk), profile.max_count)
    return Sizing(group, 1 if chunk <= tile else 2)


def check_termination(units: Units, profile: Profile, findings: Findings) -> Termination:
    """Execute with a FIFO depth of one, then with the runtime's, then with no bound."""
    table = units.table
    tried = sizings(table, profile)
    depth = profile.fifo_calls[table.header.protocol]
    run = _run(units, 1, tried)
    if not run.stuck:
        return Termination(run.order, True, depth, tried)
    narrow, run = run, _run(units, depth, tried)
    if not run.stuck:
        text = (
            "the file is fine in this respect: it finishes at all its sizes, because a connection "
            f"of {profile.name} holds {depth} calls of {table.header.protocol}; if it held only 1, "
            f"{len(narrow.stuck)} threadblocks would wait for each other"
        )
        _report(units, narrow, findings, "K02", text, most=2)
        return Termination(run.order, True, depth, tried)
    free = _run(units, UNBOUNDED, tried)
    if free.stuck:
        _report(units, free, findings, "D08", _never(free, "whatever the FIFO depth"))
    _report(units, run, findings, "K01", _never(run, f"with a FIFO depth of {depth}"))
    return Termination(free.order, False, depth, tried)


def _run(units: Units, depth: int, tried: tuple[Sizing, ...]) -> Run:
    """Return the first run that gets stuck, or else the first."""
    first = None
    for sizing in tried:
        run = execute(units, depth=depth, group=sizing.group, tiles=sizing.tiles)
        if run.stuck:
            return run
        first = first or run
    return first or Run(units.unit[:0], [])


def _never(run: Run, when: str) -> str:
    return f"{len(run.stuck)} threadblocks never finish {when}"


def _report(
    units: Units, run: Run, findings: Findings, rule: str, text: str, most: int = 6
) -> None:
    """Name the circle of threadblocks that wait for each other, or one that waits in vain."""
    unit_of = dict(run.stuck)
    path = [run.stuck[0][0]]
    while (following := _waits_for(units, unit_of, path[-1])) is not None:
        if following in path:
            path = path[path.index(following) :]
            break
        path.append(following)
    shown = [units.table.name(unit_of[block]) for block in path[:most]]
    if len(path) > len(shown):
        shown.append(f"... ({len(path)} in all)")
    findings.add(rule, f"{text}: {' waits for '.join(shown)}", *units.table.place(unit_of[path[0]]))


def _waits_for(units: Units, unit_of: dict[int, int], block: int) -> int | None:
    """Return a stuck threadblock that this one waits for."""
    unit = unit_of[block]
    begin, end = units.wait_first[unit : unit + 2]
    candidates = units.wait_block[begin:end].tolist()
    if units.recv[unit] >= 0:
        candidates.append(units.sender[units.recv[unit]])
    if units.send[unit] >= 0:
        candidates.append(units.receiver[units.send[unit]])
    return next((other for other in candidates if other in unit_of and other != block), None)
