"""What the kernels found, as phases of a timed schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.offsets import group_by, offsets
from colsynth.kernels.sequences import reverse_sequences
from colsynth.model import Direction, Hops, TimedPhase

Ints = NDArray[np.int64]


def phase_of(
    direction: Direction, hops: Hops, start: Ints, hop: NDArray[Any], chunk: NDArray[Any]
) -> TimedPhase:
    """Return the phase of transfers given one by one, in order of start.

    Parameters
    ----------
    direction : Direction
    hops : Hops
    start, hop, chunk : (M,)
        Ticks, hop and chunk number of each transfer.
    """
    first, order = group_by(hop, len(hops))
    hop, start = hop[order], start[order]
    follows = np.zeros(len(hop), np.bool_)
    follows[1:] = (hop[1:] == hop[:-1]) & (start[1:] == start[:-1] + hops.stride[hop[1:]])
    begins = np.nonzero(~follows)[0]
    return TimedPhase(
        direction=direction,
        hops=hops,
        first=first,
        chunk=chunk[order].astype(chunk_type(int(chunk.max(initial=0)))),
        run_first=group_by(hop[begins], len(hops))[0],
        run_start=start[begins],
        run_length=np.diff(np.append(begins, len(hop))),
    )


def chunk_type(most: int) -> type[np.unsignedinteger[Any]]:
    """Return the type in which chunk numbers up to `most` are kept."""
    return np.uint16 if most < 2**16 else np.uint32


def backwards(phase: TimedPhase, hops: Hops, was: Ints, ticks: int) -> TimedPhase:
    """Return a phase run backwards: copying outwards becomes reducing inwards.

    Parameters
    ----------
    phase : TimedPhase
        On the hops of the reversed topology.
    hops : Hops
        In the direction data takes.
    was : int64 (H,)
        Which of `hops` each hop of the phase was (`hops.reverse`).
    ticks : int
        When the phase ends; it will begin then minus its length.
    """
    now = np.empty_like(was)
    now[was] = np.arange(len(was))
    first = offsets(np.diff(phase.first)[now])
    runs = np.diff(phase.run_first)[now]
    run_first = offsets(runs)
    run = np.repeat(phase.run_first[1:][now], runs) - 1
    run -= np.arange(len(run)) - np.repeat(run_first[:-1], runs)
    # The last start of a run backwards is when its first transfer ended.
    hop = np.repeat(np.arange(len(hops)), runs)
    length = phase.run_length[run]
    last = phase.run_start[run] + (length - 1) * hops.stride[hop]
    return TimedPhase(
        direction=Direction.IN,
        hops=hops,
        first=first,
        chunk=reverse_sequences(phase.chunk, phase.first, now, first),
        run_first=run_first,
        run_start=ticks - last - hops.duration[hop],
        run_length=length,
    )


def delayed(phase: TimedPhase, ticks: int) -> TimedPhase:
    """Return a phase that does the same so many ticks later."""
    return replace(phase, run_start=phase.run_start + ticks)


def last_arrivals(phase: TimedPhase, owner: NDArray[np.int32]) -> Ints:
    """Return when the last transfer of each chunk to its owner arrives, (C,).

    Parameters
    ----------
    phase : TimedPhase
    owner : int32 (C,)
        Rank of each chunk's owner.
    """
    hop = phase.hop_of()
    mine = owner[phase.chunk] == phase.hops.target[hop]
    arrived = np.zeros(len(owner), np.int64)
    ends = phase.starts()[mine] + phase.hops.duration[hop[mine]]
    np.maximum.at(arrived, phase.chunk[mine], ends)
    return arrived


def last_end(phase: TimedPhase) -> int:
    """Return when the last transfer of a phase ends, in ticks."""
    hop = np.repeat(np.arange(len(phase.hops)), np.diff(phase.run_first))
    last = phase.run_start + (phase.run_length - 1) * phase.hops.stride[hop]
    return int((last + phase.hops.duration[hop]).max(initial=0))


def last_uses(phase: TimedPhase, links: int) -> Ints:
    """Return when each link is last occupied by a phase, (links,)."""
    hop = np.repeat(np.arange(len(phase.hops)), np.diff(phase.run_first))
    last = np.full(len(phase.hops), np.iinfo(np.int64).min // 2)
    np.maximum.at(last, hop, phase.run_start + (phase.run_length - 1) * phase.hops.stride[hop])
    used = np.zeros(links, np.int64)
    ends = np.repeat(last, np.diff(phase.hops.first)) + phase.hops.end
    np.maximum.at(used, phase.hops.links, ends)
    return used
