"""Levels of the search, -O0 to -O3: their budgets, and the order of choices."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.errors import Diagnostic, InputError, require_whole
from colsynth.model import Collective
from colsynth.model.problem import PHASES
from colsynth.pipeline.registry import ADDED, ALGORITHMS, DEFAULT
from colsynth.units import parse_size

OWN = ("forest", "roots", "bfb", "ten", "exact", "relays")
"""The algorithms that follow from the machine. All of their choices are varied."""

PATTERNS = tuple(name for name in ALGORITHMS if name not in OWN and name not in ADDED)
"""All others, which follow a fixed pattern."""

OTHER_PATTERNS = ("rails", "pipelined")
"""Patterns of our own."""

BASELINES = tuple(name for name in PATTERNS if name not in OTHER_PATTERNS)
"""The patterns of libraries."""

TIMED = "ten"
"""The algorithm of timed schedules, which may be for one size or for large messages."""

RELAYED = "relays"
"""The algorithm of broadcasts and reduces whose choices are varied beside those of trees.

Of 252 searches on 14 machines of 8 to 32 GPUs for 1 KiB, 64 KiB and 1 MiB, 167 are faster by that
and by trees in copies, none is slower, and all take 0.86 times as long on average, for half as much
work again. A broadcast of 1 MiB by rccl on one DGX A100 takes 32 us instead of 81.
"""

HEAVY = "exact"
"""The algorithm that is tried only where it is asked for, or on the highest level."""

LIBRARY = ("channels", "instances", "sums", "unit", "build-rails.segments")
"""The choices that are varied for a fixed pattern: those of libraries, and how a GPU adds up.

Each is an option of any pass, or of one.
"""

SWEEP = (
    *("pack-trees.trees", "pack-roots.trees", "pack-trees.grid", "pack-trees.bandwidth"),
    *("build-relays.relays", "grow-trees.chunks_per_gpu", "grow-trees.balance"),
    "round-weights.parts",
    *("lower-forest.most", "coalesce-chunks.merge"),
    *("order-transfers.order", "lower-forest.instances", "lower-forest.segments"),
    *("pack-trees.grid", "pack-trees.prefer"),
    *("place-slots.sums", "assign-threadblocks.fold"),
    *("lower-forest.instances", "lower-timed.instances"),
    *("match-chunks.chunks_per_gpu", "lower-timed.instances"),
    *("assign-threadblocks.fold", "pack-trees.trees", "lower-rounds.spread"),
    "build-rails.segments",
    *("build-rails.instances", "build-all-pairs.instances", "build-two-level.instances"),
    *("build-ring.channels", "build-tree.channels", "assign-threadblocks.strategy"),
    *("build-multicast.instances", "build-multicast.unit"),
)
"""The choices that -O1 varies, in this order, each from the best plan so far.

Instances come before segments too: a few more copies cost little work, and segments begin without.
They come before and after chunks of a timed schedule: of 32 alltoalls on machines of 4 to 32 GPUs,
more chunks make 12 faster, by 3 to 36 %; chosen before any copies, they make one slower.
Rings fill the links with as few channels as they can. Sixteen share the sums: a reduce-scatter of
1 MiB by msccl on one DGX-1 takes 31 us so, 36 without. Of 156 searches (120 of five presets, 36 of
direct-connect fabrics) only this one and that of an NDv2 gain, and none loses.
"""

LATE = ("match-chunks.chunks_per_gpu",)
"""Choices that wait until other algorithms were tried, where any may be taken.

More chunks of a timed schedule are twice the work: an alltoall by rccl on eight DGX A100, where
`two-level` wins in any case, takes 19 s like this, and 30 otherwise. They are left out where they
cannot help much (`colsynth.search.timed`): 72 GPUs on a switch take 6 s so, and took 10.
"""

LAST = (
    *("lower-forest.halves", "assign-threadblocks.redealt", "assign-threadblocks.fold"),
    "spell-dependencies.unit",
)
"""Choices that are varied when all else is done: they begin with the copies that were found.

Halves and units cut what is sent at a time. Of 48 searches by mscclpp (eight machines of 8 to 32
GPUs, three collectives, 1 and 16 MiB), 15 gain 1 to 32 % by halves alone, and none is slower; of 72
by msccl, five gain 4 to 8 %. Among the other choices, halves would keep segments of unequal sizes
from being tried: a reduce-scatter of 16 MiB by rccl on two DGX H100 takes 4 % longer so.

With segments, plans try other threadblocks again, and sums of fewer messages. Of 51 searches by
mscclpp (nine machines of 16 to 32 GPUs, 512 KiB to 32 MiB) ten gain 2 to 16 %, and one is 0.8 %
slower: an allgather of 16 MiB on four DGX H100 takes 66 us instead of 76. The searches themselves
take 4 % longer.
"""

REPEATED = (
    "match-chunks.chunks_per_gpu",
    "lower-forest.instances",
    "lower-timed.instances",
    "lower-forest.halves",
    "build-all-pairs.instances",
)
"""Choices that are raised again and again, while that helps."""

WORTH = 1.005
"""The gain from which more copies of rounds are tried. They take twice the work.

Each gains half as much as the one before: 1.2 % the first, 0.1 % the last of five, in an allreduce
of 1 GiB by torch on four DGX H100. In 48 cases (twelve machines of 4 to 32 GPUs, four collectives),
files stay the same. Threadblocks may gain later: two copies 0, four 5 %.
"""

PROTOCOLS: dict[str, int | None] = {"Simple": None, "LL128": None, "LL": parse_size("4MiB")}
"""The largest message in bytes at which each protocol is tried.

Half of an LL line is flags (contract 4.6), so LL is faster only where latency dominates. It lost to
LL128 or Simple above 1 MiB on every preset.
"""

NEAR = 1.01
"""A program within this factor of the floor is not improved, and no other algorithm is tried.

With 1.02, an allreduce of 1 GB by msccl on two NDv2 was 0.8 % slower than with a tree of 16
channels. Of 120 cases, 4 are 0.3 to 0.8 % faster with 1.01; all together take 4 % more work.
"""

CLOSE = 1.1
"""A fixed pattern within this factor of the best is varied too.

Copies of a ring gain 5 % in a reduce-scatter of 1 GiB on one DGX A100; no more was seen. Also how
near to the floor a program has to be at sizes beside the main one, for a search to end (`NEAR`).

Where GPUs have several NICs, a copy of a pattern uses one of them for each pair, so their number
multiplies the factor: an alltoall of 768 MiB by msccl on three boxes with two NICs per GPU takes
11.9 ms with four copies of `allpairs`, 16.5 with `ten`.
"""

FAR = 1.2
"""A program so many times slower than the floor may leave threadblocks behind a big switch idle.

Grids searched by themselves: of 17 cases of 24 or 72 GPUs on a switch, at 1 GiB and 1 MiB, none is
slower, and an allreduce of 1 MiB by rccl on 72 takes 104 us instead of 168.
"""

WAITING = 2
"""A program that takes so many times as long as links ask for may gain by lower trees.

Shortest-path trees swept by themselves: a reduce-scatter of 64 KiB on an MI250 by msccl takes 21 us
instead of 25, an allreduce of 1 MiB by rccl 93 instead of 102; of 168 cases 5 gain, 6 to 16 %.
"""

RIVAL = 1.4
"""A timed schedule within this factor of the best plan is varied too, by itself.

Of 93 cases of 4 to 20 GPUs, 15 are 1 to 13 % faster so, or by trying both sizes and all numbers of
copies; an allgather of 1 MiB by msccl on two boxes of MI300X takes 23.3 us instead of 24.2. With 2,
two of them gain another 1 and 5 %, and allreduces take twice the work for nothing.
"""

BEHIND = 1.25
"""Times as long as another program beyond which what was varied by itself is varied no further.

Of 403 such sweeps in 256 searches (eight machines, one and two boxes, four collectives, msccl and
rccl, 1 and 16 MiB) 56 led to the best program, none from that far behind, nor from beyond 1.1.
All together take a tenth less time.
"""

SLACK = 1.1
"""A program within this factor of the floor has no timed schedule varied beside it."""

PROMISING = 4
"""An algorithm is varied further while its best plan is within this factor of the best of all.

With 2.5, searches take 2 % less time, but some algorithms gain a lot by another protocol: an
alltoall of 64 KiB by mscclpp on four DGX A100 takes 20.1 us so, and 19.2 by `two-level`, which is
2.7 times behind in Simple.
"""


@dataclass(frozen=True, slots=True)
class Level:
    """The additions of a level to the one below.

    Parameters
    ----------
    sweep : bool
        Whether to vary the choices of `SWEEP`.
    work : int
        Budget in steps per GPU, summed over all programs. No program starts that would exceed it.
        Twice that where several protocols are tried: an allreduce of 64 MiB by rccl on two MI250
        reaches 73 GB/s so instead of 60.
    evaluations : int
        Budget of programs for neighbours of the best plans.
    everything : bool
        Whether all algorithms and protocols are starting points. Otherwise other algorithms are
        tried only where the first is not near the floor (`NEAR`).
    """

    sweep: bool
    work: int
    evaluations: int = 0
    everything: bool = False


LEVELS = (
    Level(sweep=False, work=0),
    Level(sweep=True, work=8_000),
    Level(sweep=True, work=40_000, evaluations=40),
    Level(sweep=True, work=200_000, evaluations=128, everything=True),
)
"""-O0 to -O3."""

DEFAULT_LEVEL = 1


def varied() -> tuple[str, ...]:
    """Return the algorithms all of whose choices are varied: `OWN`, and those users added."""
    return (*OWN, *sorted(ADDED))


def swept() -> tuple[str, ...]:
    """Return the choices that -O1 varies: those of passes that users added, then `SWEEP`."""
    own = ((item, getattr(item, "choices", ())) for item in DEFAULT.own)
    return (*(f"{item.name}.{one.known_as}" for item, choices in own for one in choices), *SWEEP)  # type: ignore[attr-defined]


def check_level(level: int) -> None:
    """Refuse a level that does not exist (CS210)."""
    require_whole("-O", level)
    if not 0 <= level < len(LEVELS):
        phrase = f"-O{level}: there are -O0 to -O{len(LEVELS) - 1}"
        raise InputError(Diagnostic("CS210", phrase, help="-O1 is the default, -O3 tries all"))


def first_algorithms(collective: Collective) -> tuple[str, ...]:
    """Return the algorithms that a search starts with, the most promising first."""
    return ("forest",) if collective in PHASES else ("ten",)


def other_algorithms(first: tuple[str, ...]) -> tuple[str, ...]:
    """Return all other algorithms; patterns come first, since they are quick to make."""
    rest = [name for name in ALGORITHMS if name not in first]
    return tuple(sorted(rest, key=lambda name: name in OWN))
