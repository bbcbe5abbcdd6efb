"""Options with which an algorithm is tried beside its pipeline as it stands (`Wish.variants`)."""

from __future__ import annotations

from typing import Any

Options = dict[str, tuple[dict[str, Any], ...]]
"""By algorithm, options by name."""

VARIANTS: Options = {
    "rails": (
        {"strategy": "shared"},
        {"strategy": "spread"},
        {"strategy": "spread", "segments": 4},
    ),
}
"""Options with which an algorithm is tried once more, beside its pipeline as it stands.

Rails of paired threadblocks are the fastest up to 1 MiB. Shared ones are from 4 MiB: a
reduce-scatter of 64 MiB by rccl on one MI300X takes 259 us instead of 331. Spread ones are among
many GPUs on one switch, in segments in many allreduces of 1 to 64 MiB: 16 MiB by rccl on one MI300X
take 138 us instead of 143.
"""

MEETING: Options = {"rails": ({"strategy": "shared", "segments": 2},)}
"""Further `VARIANTS` of a reduce-scatter between boxes, beside the others.

A GPU has its own shards to send there while sums of others are on their way. By msccl, 16 MiB on
two DGX A100 take 93 us so, and 105 without.
"""

MEETING_IN_PLANS: Options = {"rails": ({"strategy": "spread", "segments": 2},)}
"""What takes the place of `MEETING` in plans of MSCCL++, whose sums need more threadblocks.

On two DGX H100, 4 MiB take 32 us so, and 35 without.
"""

DIVIDED: Options = {
    "rails": ({"strategy": "shared", "shards": "gpu"}, {"strategy": "spread", "segments": 4})
}
"""What takes the place of `VARIANTS` in an allreduce between boxes by XML, if all GPUs have rails.

With a shard for each GPU, a box adds up and spreads some while others change boxes: by rccl, 16 MiB
on two MI300X take 171 us instead of 234, and 4 MiB on four 139 instead of 155.
"""

HALVED: Options = {
    "rails": (
        {"strategy": "shared", "shards": "gpu", "segments": 2},
        {"shards": "gpu"},
        {"strategy": "spread", "segments": 8},
        {"strategy": "shared"},
    )
}
"""Further ones between two boxes, for messages of one size: none is for the largest.

By msccl, 64 MiB on two DGX A100 take 529 us with the first, and 548 without; by rccl, 4 MiB on two
MI300X 86 with the second, and 92 without; by msccl, 16 MiB on two DGX A100 158 with the third, and
168 without: no sweep comes to it from shards of GPUs. With the fourth, 2 MiB on two DGX H100 take
48.8 us by msccl, and 50.2 without.
"""

COPIED = "allpairs"
"""The algorithm that is tried in as many copies as threadblocks suffice for, and in half as many.

Copies have threadblocks of their own for each peer, and some for sums, so half as many are faster
on 10 GPUs. An allreduce of 8 KiB by msccl on one DGX A100 takes 10.3 us with eight copies, 13.8
with one, and 12.4 by rails.
"""

MOST_COPIES = 8
"""Copies of `COPIED` at most: with more, messages of few bytes would not use the file."""

GATHERED: Options = {"rails": ({"strategy": "shared"},)}
"""What takes the place of `VARIANTS` in an allgather, which has no sums.

By rccl, 16 MiB on two MI300X take 81 us so, and 109 by trees; on three 92 and 103. By mscclpp,
1 MiB on three boxes of 24 GPUs (gb200-nvl72) takes 18.1 us so, and 20.5 by trees.
"""

RING: Options = {"rails": ({"strategy": "shared", "exchange": "ring"},)}
"""Further ones between three boxes or more, by XML, where hops do not take most of the time: of an
allgather, and of others where steps do not add to what arrives (elsewhere, trees are faster).

There, most threadblocks serve other boxes, though most data moves within. In a ring they need one
connection. By rccl, an allgather of 1 GiB on eight MI300X takes 2.95 ms so, and 3.88 by trees.
"""

MEETING_IN_RING: Options = {"rails": ({"strategy": "shared", "exchange": "ring", "segments": 2},)}
"""One more of a reduce-scatter: by rccl, 64 MiB on four MI300X take 367 us so, 392 without."""

TWO_SHOT: Options = {
    "rails": (
        {"strategy": "spread", "exchange": "two-shot", "segments": 2},
        {"strategy": "spread", "exchange": "two-shot", "segments": 4},
        {"strategy": "shared", "exchange": "two-shot", "segments": 2},
    )
}
"""Further ones of an allreduce between three boxes or more, by XML, if a hop more may be worth it.

Boxes exchange less data than all to all, in fewer channels than within boxes. By rccl, 4 MiB on
eight MI300X take 112 us so, and 151 without; by msccl, 1 MiB on eight DGX H100 47.5 and 55.0. The
last shares threadblocks where few are left for sums alone: by rccl, 4 MiB on twelve MI300X take
119 us with it, and 143 with the first.
"""

STAGED: Options = {
    "rails": ({"strategy": "spread", "exchange": "two-shot", "radix": 4, "segments": 4},)
}
"""One more of these where there are more boxes than GPUs in each.

To all other boxes, a GPU would have more connections than within its own. By rccl, 16 MiB on
sixteen MI300X take 298 us so, and 529 without; by msccl on twelve DGX H100, 176 and 197.
"""

KEPT: Options = {"rails": ({"strategy": "spread"},)}
"""Further ones in one box, where threadblocks are left to copy a GPU's own shard.

By rccl, an allgather of 64 MiB on one MI300X takes 213 us so, 225 without, and 281 by trees.
"""

STRAIGHT: Options = {"rails": ({"shots": 1, "strategy": "spread"}, {"shots": 1, "pieces": 1})}
"""Further `VARIANTS` of an allreduce between boxes, where hops take most of the least time.

By msccl, 4 KiB on two DGX A100 take 16 us with the first, 19 without; by mscclpp, on four DGX H100,
16 with the second, 18 without.
"""

PAIRS: Options = {"allpairs": ({"shots": 2},)}
"""Further ones of an allreduce by XML where no file sends along rails or one shot is refused.

By rccl, 60 KiB on a ring of 20 GPUs take 48 us so, and 93 without; by msccl, 64 KiB on two MI250
take 43 us, and 69 without.
"""

FEWER: Options = {"rails": tuple({"instances": number} for number in (8, 4, 2, 1))}
"""Options with which an algorithm is tried where its pipeline as it stands is refused.

Rails choose their channels by the threadblocks that connections need. Where these hold few steps,
as in plans of MSCCL++, sums need more threadblocks than that, and fewer channels fit.
"""
