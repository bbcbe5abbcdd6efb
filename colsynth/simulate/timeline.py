"""A trace in Chrome's trace event format, which Perfetto opens.

A process for every GPU with a thread for every threadblock, and one process whose counters
are the links in use, in percent of what they carry. Times are microseconds from the first
step on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from colsynth.simulate.trace import (
    BEGIN,
    BLOCK,
    BYTES,
    CALL,
    CAUSE,
    CAUSES,
    END,
    SLICE,
    START,
    TILE,
    TURN,
    UNIT,
    Trace,
    link_use,
)

Event = dict[str, Any]


def timeline(traced: Trace) -> dict[str, Any]:
    """Return the trace as a JSON object of Chrome's trace event format."""
    header, tiling = traced.machine.program.header, traced.run.tiling
    return {
        "traceEvents": [*_names(traced), *_slices(traced), *_links(traced)],
        "displayTimeUnit": "ns",
        "otherData": {
            "program": header.name,
            "topology": traced.machine.topology.name,
            "size_bytes": traced.run.size,
            "tiles": tiling.tiles,
            "tiles_shown": tiling.simulated,
        },
    }


def _names(traced: Trace) -> Iterator[Event]:
    """Yield the names of processes and threads."""
    topology = traced.machine.topology
    for rank, node in enumerate(topology.ranks):
        name = f"rank {rank} ({topology.nodes[node].name})"
        yield {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": name}}
    links = {"name": "links"}
    yield {"ph": "M", "name": "process_name", "pid": topology.size, "args": links}
    for rank, block in traced.machine.blocks:
        label = {"name": f"threadblock {block}"}
        yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": block, "args": label}


def _slices(traced: Trace) -> Iterator[Event]:
    """Yield what threadblocks do, and what they wait for before."""
    rows = zip(traced.run.integers.tolist(), traced.run.times.tolist(), strict=True)
    for integers, times in rows:
        unit = traced.machine.units[integers[UNIT]]
        rank, block = traced.machine.blocks[integers[BLOCK]]
        place = {"ph": "X", "pid": rank, "tid": block}
        if times[START] > times[TURN]:
            name = f"wait for {CAUSES[integers[CAUSE]]}"
            yield {**place, "name": name, **_span(times[TURN], times[START])}
        yield {
            **place,
            "name": unit.op,
            **_span(times[START], times[END]),
            "args": {
                "step": unit.ordinal,
                "tile": integers[TILE],
                "call": integers[CALL],
                "slice": integers[SLICE],
                "bytes": round(times[BYTES], 3),
                "overhead_us": round((times[BEGIN] - times[START]) / 1e3, 6),
            },
        }


def _links(traced: Trace) -> Iterator[Event]:
    """Yield the use of every link, where it changes."""
    topology = traced.machine.topology
    for use in link_use(traced):
        name = topology.link_name(use.link)
        for time, share in zip(use.times.tolist(), use.share.tolist(), strict=True):
            yield {
                "ph": "C",
                "name": name,
                "pid": topology.size,
                "ts": round(time / 1e3, 6),
                "args": {"percent": round(100 * share, 3)},
            }


def _span(begin: float, end: float) -> Event:
    return {"ts": round(begin / 1e3, 6), "dur": round((end - begin) / 1e3, 6)}
