"""Who sends which chunk to whom, and when, in exact integer time.

Chunks are numbered group after group (`Problem.members`). With n members and c chunks
per GPU, a group has

- allgather, reduce-scatter, allreduce: n * c chunks; i * c + k belongs to member i;
- alltoall: n * n * c chunks; (i * n + j) * c + k goes from member i to member j, and
  those with i = j never move;
- scatter, gather: n * c chunks; i * c + k belongs to member i;
- broadcast, reduce: c chunks of the root;
- custom: the chunks of `Problem.demands`, one demand after the other, each c times.

All chunks have the same size: the message (what nccl-tests calls size) divided by n * c,
for broadcast and reduce by c, for custom by all chunks.

A link passes bytes at its bandwidth and delivers them a latency later: latency is a lag.
Chunks that follow each other without a pause are one message and pay it once. A schedule may
leave a gap after each message, where links are occupied for longer than their bytes take.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from colsynth.model.problem import Direction, Problem
from colsynth.units import format_duration, format_size, plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Hops:
    """Ways from one GPU to another through no third, with their cost per chunk.

    Hop h takes the links ``links[first[h]:first[h + 1]]`` in this order; the times of
    `begin` and `end`, aligned with `links`, say when after the start of a transfer each
    of them is occupied. Hops are sorted by (target, source, links).

    Parameters
    ----------
    source, target : int32 (H,)
        Ranks.
    first : int64 (H + 1,)
    links : int32 (L,)
        Link indices of the topology.
    begin, end : int64 (L,)
        Ticks.
    lag : int64 (H,)
        Ticks from the end of a hop's last link until the target holds the chunk.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    first: NDArray[np.int64]
    links: NDArray[np.int32]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    lag: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of hops."""
        return len(self.source)

    @property
    def duration(self) -> NDArray[np.int64]:
        """Ticks from the start of a transfer until the target holds the chunk, (H,)."""
        return self.end[self.first[1:] - 1] + self.lag

    @property
    def stride(self) -> NDArray[np.int64]:
        """Least ticks between two starts on the same hop: its busiest link's, (H,)."""
        import numpy as np

        return np.maximum.reduceat(self.end - self.begin, self.first[:-1])


@dataclass(frozen=True, eq=False)
class TimedPhase:
    """Transfers of one phase, hop by hop and on each hop in order of time.

    Hop h carries ``chunk[first[h]:first[h + 1]]``. Starts are kept as runs of transfers
    that follow each other by the hop's stride: run r of hop h (``run_first[h] <= r <
    run_first[h + 1]``) starts at `run_start[r]` and has `run_length[r]` transfers. Where the
    stride is what the bytes of a chunk take, a run is one message of several chunks.

    Parameters
    ----------
    direction : Direction
        IN: what arrives is added to what the target has; OUT: it is copied.
    hops : Hops
        In the direction data takes.
    first : int64 (H + 1,)
    chunk : uint16 or uint32 (M,)
    run_first : int64 (H + 1,)
    run_start, run_length : int64 (R,)
        Ticks; transfers.
    """

    direction: Direction
    hops: Hops
    first: NDArray[np.int64]
    chunk: NDArray[Any]
    run_first: NDArray[np.int64]
    run_start: NDArray[np.int64]
    run_length: NDArray[np.int64]

    @property
    def transfers(self) -> int:
        """Number of transfers."""
        return len(self.chunk)

    def hop_of(self, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
        """Return the hop of every transfer, of the hops from `first` to before `last` alone."""
        import numpy as np

        last = len(self.hops) if last is None else last
        return np.repeat(np.arange(first, last), np.diff(self.first[first : last + 1]))

    def starts(self, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
        """Return the start of every transfer in ticks, of these hops as in `hop_of`."""
        import numpy as np

        last = len(self.hops) if last is None else last
        runs = slice(self.run_first[first], self.run_first[last])
        start, length = self.run_start[runs], self.run_length[runs]
        stride = np.repeat(self.hops.stride[first:last], np.diff(self.run_first[first : last + 1]))
        place = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        found: NDArray[np.int64] = np.repeat(start, length) + place * np.repeat(stride, length)
        return found


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A time that no schedule of the problem can beat.

    Parameters
    ----------
    seconds : Fraction
    reason : str
        What takes that long, such as ``"ingress of gpu5"``.
    """

    seconds: Fraction
    reason: str


@dataclass(frozen=True, eq=False)
class TimedSchedule:
    """A timed schedule beside the bound it is measured against.

    Parameters
    ----------
    problem : Problem
    size : int
        Bytes of the message.
    chunks_per_gpu : int
    chunks : int
        Number of chunks, numbered as this module says.
    chunk_bytes : Fraction
    tick : Fraction
        Seconds.
    ticks : int
        When the last transfer ends.
    phases : tuple of TimedPhase
        In order; transfers of a later phase may overlap those of an earlier one.
    bound : TimeBound
    claim : str
        What is proven beyond the bound, with its conditions; empty for nothing.
    """

    problem: Problem
    size: int
    chunks_per_gpu: int
    chunks: int
    chunk_bytes: Fraction
    tick: Fraction
    ticks: int
    phases: tuple[TimedPhase, ...]
    bound: TimeBound
    claim: str = ""

    def __repr__(self) -> str:
        """Return one line: fields hold the topology and every transfer."""
        problem, times = self.problem, map(format_duration, (self.seconds, self.bound.seconds))
        found = f"{problem.collective} on {problem.topology.name}, {format_size(self.size)}"
        found += f", {plural(self.transfers, 'transfer')}"
        return f"TimedSchedule({found}, {', at least '.join(times)})"

    @property
    def seconds(self) -> Fraction:
        """Time from the first start to the last end."""
        return self.ticks * self.tick

    @property
    def algbw(self) -> Fraction:
        """Algorithm bandwidth, bytes per second."""
        return self.size / self.seconds

    @property
    def gap(self) -> Fraction:
        """Lost share of time: reached / bound - 1; 0 is proven optimal."""
        return self.seconds / self.bound.seconds - 1

    @property
    def link_rate(self) -> Fraction:
        """Bytes of the message per second, if the busiest link never idles."""
        import numpy as np

        links = self.problem.topology.links
        load = np.zeros(len(links), np.int64)
        for phase in self.phases:
            carried = np.repeat(np.diff(phase.first), np.diff(phase.hops.first))
            np.add.at(load, phase.hops.links, carried)
        pairs = zip(load.tolist(), links, strict=True)
        return self.size / (self.chunk_bytes * max(n / link.bandwidth for n, link in pairs))

    @property
    def transfers(self) -> int:
        """Number of transfers of all phases."""
        return sum(phase.transfers for phase in self.phases)
