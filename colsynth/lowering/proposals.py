"""What to try so that a program fills and drains quickly: round-robin order and segments.

A large message takes as long as its busiest links are busy, plus the time until the first data
reaches them and the time that others need after their last. With few chunks per tree, these are
a tenth to a third of the total. Two things shorten them. All boxes send round-robin
(`order-transfers{order=round-robin}`), with threadblocks in proportion to load or with a window
on the NICs. And trees carry their chunks in several segments (`lower-forest{segments=...}`):
small ones first where a collective begins by reducing, small ones last where it ends by copying.
There are as many as the steps and nodes of a file allow (`segment_sizes` has their sizes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from colsynth.cost.pair_routes import is_network
from colsynth.lowering.orders import ORDERS
from colsynth.lowering.paired import is_round
from colsynth.lowering.segment_sizes import CHUNKS, ones_and_twos, sizes_of
from colsynth.runtimes.choice import PROTOCOL, Basis, Changes, Proposal
from colsynth.runtimes.selection import dividing

ORDER, SEGMENTS = "order-transfers.order", "lower-forest.segments"
STRATEGY, MERGE = "assign-threadblocks.strategy", "coalesce-chunks.merge"
MOST = "lower-forest.most"
NIC_WINDOW = "assign-threadblocks.nic_window"
INSTANCES = "lower-forest.instances"
SUMS = "place-slots.sums"
LAG, SPACING = "order-transfers.lag", "order-transfers.spacing"

_PLAIN = "spread", "fewest", "balanced"
"""Strategies that need no other options."""

SPREAD = "lower-rounds.spread"
_SPREADS = ((2, 2), (4, 4), (8, 8), (16, 16))
"""Parts of the busiest link's load in a round, and copies of the program.

An allreduce of 1 GiB on two MI250 boxes: 61.7 GB/s with (16, 16), 61.8 with (16, 32).
"""

_SEGMENT_SECONDS = Fraction(20, 10**6)
"""Time that a threadblock should take for a segment: about ten times what a step costs it."""

_ROUND_SECONDS = Fraction(8, 10**6)
"""The same where threadblocks work in rounds, and arrivals of a round wait for each other.

Reduce-scatter on two boxes of DGX A100 or MI300X, 8 to 64 MiB, of 10 to 81 segments: the fastest
take 4 to 8 us a segment. With 20 us, 64 MiB take 17 % longer.
"""

_MOST = 12
"""Most segments. More cost small messages more than they gain, and leave less of the budget.

An allreduce of 1 GiB on six DGX H100 reaches 192 GB/s with 12, 198 with 16, at 3.0 and 2.4 GB/s for
768 KiB. On three, with 16 no budget is left for two instances of segments: 187 GB/s, with 12 201.
"""

_SPARE = Fraction(9, 10)
"""The share of a threadblock's steps that is planned with; the others are nops."""

_LEAST = 5
"""Fewer segments are not tried where reductions are steps of their own."""

_TRIES = 4
"""How many numbers of segments are tried: threadblock allocation decides what fits."""

_NIC_WINDOW = 2
"""Sends in flight per NIC. With one, the NIC idles between two; with more, all of them end late."""

_WAITS: tuple[Changes, ...] = ({LAG: 2, SPACING: 1}, {LAG: 1, SPACING: 0})
"""Beats that data waits before sums are copied, and before it is passed on within a phase.

A step then seldom waits for another threadblock, and holds up what stands behind it. An allreduce
of 1 GiB reaches 185 GB/s instead of 118 on four DGX H100 boxes, 189 instead of 151 on eight. With
few segments the beats cost more than they gain: with 7 on 16 boxes, the second are faster, 179 GB/s
instead of 173. Where GPUs add up within one box, the second alone are tried: they give 319 GB/s
instead of 309 on a switch of 84 GPUs, 99 instead of 89 on an MI250.
"""

BY_LOAD: Changes = {ORDER: "round-robin", STRATEGY: "balanced", MOST: 0}
"""Round-robin with threadblocks by load, and no tree cut."""

ALONE: Changes = {**BY_LOAD, INSTANCES: 1}
"""The same without instances: the shape from which segments are computed."""


def unmerged(basis: Basis) -> Iterator[Proposal]:
    """Yield smaller steps, where some move several chunks.

    Also single chunks of heavy trees, none merged. An allgather of 1 GiB on an MI250 with RCCL
    takes 8.6 or 8.8 ms with either change alone, with both 5.9 ms.
    """
    if basis.shape.trees and basis.shape.count > 1 and basis.values[MERGE] != 1:
        yield ({MERGE: 1},)
    if basis.shape.weight > 1 and basis.values[MERGE] != 1 and basis.values[MOST] != 1:
        yield ({MOST: 1, MERGE: 1},)


def orders(basis: Basis) -> Iterator[Proposal]:
    """Yield other orders of transfers, where threadblocks hold several steps in a row."""
    if basis.shape.trees and basis.shape.block_steps > 1:
        for order in ORDERS:
            if order != basis.values[ORDER]:
                yield ({ORDER: order},)
    if basis.shape.height < 2 or basis.values[SEGMENTS] != "1":
        return
    cut = [0, 1] if basis.shape.weight > 1 else [0]
    leaves = _leaves_boxes(basis)
    for most in cut:  # neither round-robin nor smaller transfers may be faster alone
        yield ({**BY_LOAD, MOST: most},)
        if leaves:
            yield ({ORDER: "round-robin", NIC_WINDOW: _NIC_WINDOW, MOST: most},)


def _leaves_boxes(basis: Basis) -> bool:
    """Whether there are sends for a window on the NICs to hold back."""
    topology = basis.problem.topology
    return any(is_network(topology, link) for link in range(len(topology.links)))


def smaller_transfers(basis: Basis) -> Iterator[Proposal]:
    """Yield fewer chunks of a tree in a transfer, where trees carry several."""
    for exponent in range(max(0, basis.shape.weight - 1).bit_length()):
        if basis.values[MOST] != 1 << exponent:
            yield ({MOST: 1 << exponent},)


def coarser_weights(basis: Basis) -> Iterator[Proposal]:
    """Yield weights that add up to fewer parts, where trees have weights of several."""
    trees, parts = str(basis.values.get("pack-trees.trees", "")), basis.shape.trees_per_gpu // 2
    while trees.isdigit() and basis.shape.weight > 1 and parts >= int(trees):
        yield ({"round-weights.parts": parts},)
        parts //= 2


def sums_in_one_go(basis: Basis) -> Iterator[Proposal]:
    """Yield sums of all arrivals in one go, where GPUs add up, or the other way round.

    Along a path, as in rings, nobody has two arrivals to add up.
    """
    shape, profile = basis.shape, basis.profile
    if not shape.rises or shape.height == shape.ranks - 1:
        return
    if basis.values[SUMS] != "running":
        yield ({SUMS: "running"},)
        return
    yield ({SUMS: "joined"},)
    if shape.height != 1 or profile.plans:  # plans fold sums (`colsynth.lowering.fold_sums`)
        return
    if profile.fuses:
        yield from _spread_sums(basis)
    else:
        yield tuple(_paired_sums(basis))


def _spread_sums(basis: Basis) -> Iterator[Proposal]:
    """Yield as many channels as fit, and half as many with more threadblocks for sums.

    A channel has a threadblock for each direction of each peer, and one for each of its sums. Where
    sums are sent on, each is a call of its own, so there is one a rank at most.
    """
    ranks, blocks = basis.shape.ranks, basis.profile.usable_threadblocks
    peers, most = 2 * (ranks - 1), ranks if basis.shape.falls else blocks
    number = dividing(basis.parts, blocks // (peers + 2))
    for channels in (number, dividing(basis.parts, number // 2)):
        if channels:
            segments = dividing(basis.parts // channels, min(most, blocks // channels - peers))
            plan = {SUMS: "by-chunk", STRATEGY: "spread", SEGMENTS: str(segments)}
            yield ({**plan, INSTANCES: channels},)


def _paired_sums(basis: Basis) -> Iterator[Changes]:
    """Yield ever fewer channels whose threadblocks share their sums.

    A threadblock serves both directions of a pair, so that a channel has one a rank, and each has
    as many of its sums. Numbers with which calls of the size use the file come first.
    """
    ranks, parts = basis.shape.ranks, basis.parts
    most = basis.profile.usable_threadblocks // ranks
    plan = {SUMS: "by-chunk", STRATEGY: "paired", SEGMENTS: str(ranks)}
    for channels in sorted(range(most, 0, -1), key=lambda number: parts % (number * ranks) > 0):
        yield {**plan, INSTANCES: channels}


def spreads(basis: Basis) -> Iterator[Proposal]:
    """Yield more rounds, with more chunks to follow each other through trees and rings."""
    for parts, instances in _SPREADS:
        changes: Changes = {SPREAD: parts}
        if basis.shape.height > 1 and "lower-forest.instances" in basis.values:
            changes = {SPREAD: parts, "lower-forest.instances": instances, MERGE: 1}
        if basis.shape.height != 1:
            yield (changes,)


def segmentations(basis: Basis) -> Iterator[Proposal]:
    """Yield numbers and sizes of segments, where GPUs pass on what they receive."""
    shape = basis.shape
    if basis.values[SEGMENTS] != "1":
        return
    yield from _single_chunks(basis)
    if shape.height < 2:
        return
    segmented = tuple(_segmented(basis))
    for waits in _WAITS if _leaves_boxes(basis) or not shape.rises else _WAITS[1:]:
        yield tuple({**changes, **waits} for changes in segmented)
    if not basis.profile.fuses and shape.rises and is_round(basis.problem.topology):
        yield tuple(_in_rounds(basis))
    yield from _ordered_by_time(basis)


def _single_chunks(basis: Basis) -> Iterator[Proposal]:
    """Yield steps of one chunk each, where unequal roots carry several.

    A GPU passes on a chunk when it has it, not when it has the last of them.
    """
    if basis.shape.trees and basis.is_loose and basis.values[MOST] != 1:
        for strategy in "balanced", "spread":
            yield ({ORDER: "round-robin", STRATEGY: strategy, MOST: 1, MERGE: 1},)


def _ordered_by_time(basis: Basis) -> Iterator[Proposal]:
    """Yield segments that a simulation orders, where sums are steps of their own."""
    if basis.shape.height > 1 and not basis.profile.fuses:
        yield tuple(_scheduled(basis))


def _segmented(basis: Basis) -> Iterator[Changes]:
    """Yield ever fewer segments: the first number that fits is the best."""
    shape = basis.shape
    bytes_each = _segment_bytes(basis, _SEGMENT_SECONDS)
    if basis.profile.tile_bytes[basis.protocol] < bytes_each:
        return  # the runtime cuts chunks into smaller parts itself
    if basis.profile.max_count < CHUNKS:
        return  # segments would take several steps
    number = min(_room(basis), int(basis.size / (bytes_each * shape.trees)))
    both = shape.rises and shape.falls
    strategy = "pooled" if both else "balanced"
    fixed = {**ALONE, STRATEGY: strategy, NIC_WINDOW: _NIC_WINDOW}
    while number > 1:
        total = basis.cut_finely(number, CHUNKS * number)
        sizes = sizes_of(number, total, rises=shape.rises, falls=shape.falls)
        yield {**fixed, SEGMENTS: sizes}
        number = number * 7 // 8


def _in_rounds(basis: Basis) -> Iterator[Changes]:
    """Yield ever fewer segments with threadblocks in pairs and rounds.

    Where a runtime reduces in steps of their own, all its threadblocks have to share them
    (`colsynth.lowering.paired`). Those that also serve the second phase of an allreduce begin
    with it when all sums are begun: sums take longer than a beat, and copies that wait for
    them hold up other sums.
    """
    shape, profile = basis.shape, basis.profile
    blocks = profile.usable_threadblocks
    room = int(profile.max_steps * blocks * _SPARE / _gpu_steps(basis))
    most = min(room, int(basis.size / (_segment_bytes(basis, _ROUND_SECONDS) * shape.trees)))
    for less in range(_TRIES):
        number = most - less * max(1, most // 16)
        if number < _LEAST:
            return
        lag = number if shape.falls else 0
        fixed = {**ALONE, STRATEGY: "paired", NIC_WINDOW: _NIC_WINDOW}
        ends = 0 if basis.is_loose else 2  # of half the size; unequal roots leave less to choose
        sizes = ones_and_twos(number, basis.cut(2 * number - ends, number))
        yield {**fixed, LAG: lag, SPACING: 0, SEGMENTS: sizes}


def strategies(basis: Basis) -> Iterator[Proposal]:
    """Yield other strategies, where everything is tried.

    One that orders steps as well comes with segments of its own (`segmentations`); here it is
    yielded for programs that have segments already.
    """
    if not basis.thorough:
        return
    for other in _PLAIN:
        if other != basis.values[STRATEGY]:
            yield ({STRATEGY: other},)
    if basis.values.get(SEGMENTS, "1") != "1" and basis.values[STRATEGY] != "scheduled":
        yield from _ordered_by_time(basis)


def _scheduled(basis: Basis) -> Iterator[Changes]:
    """Yield ever fewer segments with threadblocks by time, with the protocol that moves most.

    Trees move one chunk at a time, or where roots are unequal, one of equal segments. Data waits at
    each GPU for the whole of it, so the more there are the better; all their steps have to fit.
    """
    from colsynth.cost import model_of

    shape, profile = basis.shape, basis.profile
    rate = model_of(basis).rate
    protocol = max(profile.fifo_calls, key=lambda name: rate[name])
    phases = shape.rises + shape.falls
    steps = shape.trees * (2 * phases + shape.rises) * (shape.ranks - 1) / shape.ranks
    room = int(profile.usable_threadblocks * profile.max_steps * _SPARE / steps)
    bytes_each = _segment_bytes(replace(basis, protocol=protocol), _SEGMENT_SECONDS)
    most = min(room, int(basis.size / (bytes_each * shape.trees)))
    while (number := most if basis.is_loose else basis.cut(most)) >= _LEAST:
        sizes = sizes_of(number, basis.cut_finely(number, number), rises=False, falls=False)
        moved = int(sizes.partition("-")[0])
        fixed = {STRATEGY: "scheduled", NIC_WINDOW: 0, MOST: moved, MERGE: 1, INSTANCES: 1}
        yield {**fixed, ORDER: "chains", SEGMENTS: sizes, PROTOCOL: protocol}
        most = number // 2


def _gpu_steps(basis: Basis) -> int:
    """Return the steps of the busiest GPU for one instance; segments begin with one."""
    instances: int = max(1, basis.values[INSTANCES])
    return -(-basis.shape.gpu_steps // instances)


def _segment_bytes(basis: Basis, seconds: Fraction) -> Fraction:
    """Return the bytes that a threadblock moves in the time a segment should take."""
    from colsynth.cost import model_of
    from colsynth.cost.usable import exact

    rate = model_of(basis).rate[basis.protocol]
    return exact(rate) * 10**9 * seconds


def _room(basis: Basis) -> int:
    """Return how many segments a file has room for, `_MOST` at most.

    Where arrivals are reduced by steps of their own, these stay with their threadblocks as
    long as all of them fit there; elsewhere, they hold up what has nothing to do with them.
    """
    profile, shape = basis.profile, basis.shape
    blocks = profile.usable_threadblocks
    room = min(profile.max_xml_nodes - shape.ranks - blocks, blocks * profile.max_steps)
    found = min(_MOST, room // _gpu_steps(basis))
    if profile.fuses:
        return found
    return min(found, profile.max_steps // shape.block_steps)
