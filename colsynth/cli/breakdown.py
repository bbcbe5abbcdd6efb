"""Where the time of a simulation goes, as a table and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colsynth.units import format_size, plural

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.simulate.breakdown import Breakdown
    from colsynth.simulate.trace import Trace

_SHOWN = 5
"""Links, threadblocks and dependencies of the critical path that are listed."""


def breakdown_object(found: Breakdown, traced: Trace) -> dict[str, Any]:
    """Return a breakdown for ``--json``; times in microseconds."""
    topology = traced.machine.topology
    return {
        "size_bytes": found.size,
        "time_us": round(found.seconds * 1e6, 6),
        "launch_us": found.launch * 1e6,
        "not_simulated_us": round(found.left_out * 1e6, 6),
        "simulated_share": found.simulated,
        "path_us": {name: round(value * 1e6, 6) for name, value in found.classes.items()},
        "links_us": {
            topology.link_name(link): round(value * 1e6, 6) for link, value in found.links.items()
        },
        "threadblocks_us": {
            traced.place(block): round(value * 1e6, 6) for block, value in found.blocks.items()
        },
        "legs_by_cause": found.causes,
        "dependencies": {traced.step(unit): legs for unit, legs in found.dependencies.items()},
        "threadblock_time": {name: round(share, 6) for name, share in found.waiting.items()},
    }


def show_breakdown(console: Console, found: Breakdown, traced: Trace) -> None:
    """Print the critical path, and the waits of threadblocks."""
    from rich.table import Table

    topology = traced.machine.topology
    whole = found.seconds
    console.print(f"critical path of {format_size(found.size)}, {micro_or_milli(whole)}:")
    table = Table.grid(padding=(0, 2))
    rows = [("launch", found.launch), *found.classes.items()]
    if found.simulated < 1:
        tiles = f"the {100 * (1 - found.simulated):.1f} % of the tiles that repeat the rhythm"
        rows.append((tiles, found.left_out))
    rows += [(f"  by link {topology.link_name(i)}", t) for i, t in [*found.links.items()][:_SHOWN]]
    rows += [(f"  by {traced.place(b)}", t) for b, t in [*found.blocks.items()][:_SHOWN]]
    for name, seconds in rows:
        if seconds:
            table.add_row(f"  {name}", micro_or_milli(seconds), f"{100 * seconds / whole:.1f} %")
    console.print(table)
    counts = ", ".join(f"{cause} {count}" for cause, count in found.causes.items() if count)
    console.print(f"  {len(found.path)} slices, each held up last by: {counts}")
    for unit, legs in [*found.dependencies.items()][:_SHOWN]:
        console.print(f"  waiting {plural(legs, 'time')} for {traced.step(unit)}")
    shares = ", ".join(f"{k} {100 * v:.1f} %" for k, v in found.waiting.items() if v >= 0.0005)
    console.print(f"time of all threadblocks: {shares}")


def micro_or_milli(seconds: float) -> str:
    """Return a time as text for a column: in microseconds, or in milliseconds from ten on."""
    micro = seconds * 1e6
    return f"{micro:.2f} us" if micro < 1e4 else f"{micro / 1e3:.2f} ms"
