"""What to try so that trees carry a message in segments: how many, how large, in which order.

A GPU passes a segment on as soon as it has it, so with small ones little time is lost until the
last GPU begins. But each costs a step. `worthwhile` computes numbers to try from that.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import sqrt

from colsynth.cost import model_of
from colsynth.cost.usable import exact
from colsynth.lowering.orders import LIST_SCHEDULE
from colsynth.lowering.paired import is_round
from colsynth.lowering.segment_sizes import CHUNKS, ones_and_twos, sizes_of
from colsynth.runtimes.choice import PROTOCOL, Basis, Changes, Proposal, Shape

ORDER, SEGMENTS = "order-transfers.order", "lower-forest.segments"
STRATEGY, MERGE = "assign-threadblocks.strategy", "coalesce-chunks.merge"
MOST = "lower-forest.most"
NIC_WINDOW = "assign-threadblocks.nic_window"
INSTANCES = "lower-forest.instances"
SUMS = "place-slots.sums"
LAG, SPACING = "order-transfers.lag", "order-transfers.spacing"
ROTATION = "order-transfers.rotation"
UNIT = "spell-dependencies.unit"

_FEWER = 1, 2, 4
"""By what the best number of segments is divided (`worthwhile`).

In 144 cases (nine machines of 8 to 32 GPUs, allreduce and allgather, msccl and rccl, 1 to 64 MiB)
programs take 4.0 % less time so than with one number, of segments that take 20 us each; with 2, 4
and 8 instead they take 3.5 % less.
"""

_ROUND_SECONDS = Fraction(8, 10**6)
"""What a segment takes where threadblocks work in rounds, and arrivals wait for each other.

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

_LIKELY = 1.25
"""Times the least estimate up to which a protocol is tried where time orders segments (`_likely`).

In 129 cases of RCCL (nine machines of 8 to 32 GPUs, three collectives, 256 KiB to 64 MiB), 23 take
3 to 32 % less time than with the protocol alone that moves most, and 3 take 5 to 7 % more. Files
of 1 GiB stay the same.
"""

_TRIES = 4
"""How many numbers of segments are tried: threadblock allocation decides what fits."""

_SMALLEST = 1 << 14
"""Fewest bytes of an iteration that are tried: of so many, they gain 1 % at most."""

WINDOW = 2
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


def segmentations(basis: Basis) -> Iterator[Proposal]:
    """Yield numbers and sizes of segments, where GPUs pass on what they receive."""
    shape = basis.shape
    if basis.values[SEGMENTS] != "1":
        return
    yield from _single_chunks(basis)
    if shape.height < 2:
        yield from _rotated(basis)
        return
    every = _WAITS if leaves_boxes(basis) or not shape.rises else _WAITS[1:]
    for most in worthwhile(basis, basis.protocol, _room(basis)):
        segmented = tuple(_segmented(basis, most))
        for waits in every:
            yield tuple({**changes, **waits} for changes in segmented)
    if not basis.profile.fuses and shape.rises and is_round(basis.problem.topology):
        yield tuple(_in_rounds(basis, {STRATEGY: "paired", NIC_WINDOW: WINDOW}))
        if leaves_boxes(basis) and not shape.falls:
            yield tuple(_in_rounds(basis, {STRATEGY: "paired-all"}))
        yield from _rotated(basis)
    yield from ordered_by_time(basis)


def halves(basis: Basis) -> Iterator[Proposal]:
    """Yield twice as many segments of equal size, with copies and threadblocks as they are.

    Where chunks are no longer than the runtime's tiles, so that these do not cut them already, and
    passing a segment on takes longer than a step. Rounds have other means (`proposals.spreads`).
    """
    if ORDER not in basis.values:
        return
    shape, model, sizes = basis.shape, model_of(basis), basis.values[SEGMENTS].split("-")
    whole = basis.size <= shape.chunks * basis.profile.tile_bytes[basis.protocol]
    moved = basis.size / shape.chunks * shape.count
    seconds = moved / (model.rate[basis.protocol] * 1e9)
    worth = whole and (shape.hops - 1) * seconds > model.step[basis.protocol] / 1e6
    if worth and len(set(sizes)) == 1 and basis.parts_of(shape.chunks) % 2 == 0:
        for order in dict.fromkeys((basis.values[ORDER], LIST_SCHEDULE)):
            yield ({SEGMENTS: "-".join(sizes * 2), ORDER: order},)


def units(basis: Basis) -> Iterator[Proposal]:
    """Yield sizes of a plan's iterations, where GPUs pass on what they receive: 2 to 16 a chunk.

    They cut chunks as segments do, for no more operations of a threadblock. Of 15 searches for
    64 MiB on two and four boxes, seven gain 1 to 23 %: an allreduce on two MI300X takes 381 us
    instead of 492.
    """
    if not basis.profile.plans or basis.shape.hops < 2:
        return
    whole = 1 << (-(-basis.size // basis.shape.chunks) - 1).bit_length()
    for parts in (2, 4, 8, 16):
        if whole // parts >= _SMALLEST:
            yield ({UNIT: whole // parts},)


def _single_chunks(basis: Basis) -> Iterator[Proposal]:
    """Yield steps of one chunk each, where unequal roots carry several.

    A GPU passes on a chunk when it has it, not when it has the last of them.
    """
    if basis.shape.trees and basis.is_loose and basis.values[MOST] != 1:
        for strategy in "balanced", "spread":
            yield ({ORDER: "round-robin", STRATEGY: strategy, MOST: 1, MERGE: 1},)


def ordered_by_time(basis: Basis) -> Iterator[Proposal]:
    """Yield segments that a simulation orders, where sums are steps of their own."""
    shape, profile = basis.shape, basis.profile
    if shape.height < 2 or profile.fuses:
        return
    steps = shape.trees * (_moves(shape) + shape.rises * (shape.ranks - 1) / shape.ranks)
    room = int(profile.usable_threadblocks * profile.max_steps * _SPARE / steps)
    for protocol in _likely(basis):
        for most in worthwhile(basis, protocol, room):
            yield tuple(_scheduled(basis, protocol, most))


def _likely(basis: Basis) -> list[str]:
    """Return the protocol of the program, and those that may be as fast (`_LIKELY`).

    What a GPU sends and receives keeps all its threadblocks busy, and the last of it takes every
    hop, with a step at either end and the wait between two.
    """
    shape, profile, model = basis.shape, basis.profile, model_of(basis)
    moved = _moves(shape) * basis.size / profile.usable_threadblocks

    def least(name: str) -> float:
        hop = model.hop[name] + 2 * model.step[name] + model.wait
        return (model.launch[name] + shape.hops * hop) / 1e6 + moved / (model.rate[name] * 1e9)

    times = {name: least(name) for name in profile.fifo_calls}
    most = _LIKELY * min(times.values())
    found = (name for name in sorted(times, key=times.__getitem__) if times[name] <= most)
    return list(dict.fromkeys((basis.protocol, *found)))


def _moves(shape: Shape) -> float:
    """Return how often a GPU sends or receives the message, on average."""
    return 2 * (shape.rises + shape.falls) * (shape.ranks - 1) / shape.ranks


def worthwhile(basis: Basis, protocol: str, room: int) -> Iterator[int]:
    """Yield numbers of segments that may be fastest, most first, up to those that fit.

    Along h hops, s segments of a tree that takes t seconds to send take (h - 1 + s) (t / s + c),
    where each costs c seconds. That is least for s = sqrt((h - 1) t / c). Threadblocks that serve
    several trees begin later and pay for more segments, so fewer are worth trying (`_FEWER`). Not
    if there is room for less than half as many: programs with still fewer only use up the budget.
    """
    shape, model = basis.shape, model_of(basis)
    seconds = basis.size / shape.trees / (model.rate[protocol] * 1e9)
    step = model.step[protocol] / 1e6
    best = sqrt((shape.hops - 1) * seconds / step) if step else room * max(_FEWER)
    if best * shape.trees * basis.profile.tile_bytes[protocol] < basis.size:
        return  # the runtime cuts chunks into smaller parts itself
    last = 0
    for fewer in _FEWER if best < 2 * room else (1,):
        number = min(room, int(best / fewer))
        if number > 1 and (not last or 3 * number <= 2 * last):
            yield number
            last = number


def _segmented(basis: Basis, most: int) -> Iterator[Changes]:
    """Yield ever fewer segments: the first number that fits is the best."""
    rises, falls = basis.shape.rises, basis.shape.falls
    strategy = "pooled" if rises and falls else "balanced"
    fixed = {**ALONE, STRATEGY: strategy, NIC_WINDOW: WINDOW}
    while most > 1:
        total = basis.cut_finely(most, CHUNKS * most)
        yield {**fixed, SEGMENTS: sizes_of(most, total, rises=rises, falls=falls)}
        most = most * 7 // 8


def _in_rounds(basis: Basis, pairs: Changes) -> Iterator[Changes]:
    """Yield ever fewer segments with threadblocks in pairs and rounds.

    Where a runtime reduces in steps of their own, all its threadblocks have to share them
    (`colsynth.lowering.paired`). Those that also serve the second phase of an allreduce begin
    with it when all sums are begun: sums take longer than a beat, and copies that wait for
    them hold up other sums.
    """
    shape, most = basis.shape, _most_in_rounds(basis)
    for less in range(_TRIES):
        number = most - less * max(1, most // 16)
        if number < _LEAST:
            return
        lag = number if shape.falls else 0
        fixed = {**ALONE, **pairs}
        ends = 0 if basis.is_loose else 2  # of half the size; unequal roots leave less to choose
        sizes = ones_and_twos(number, basis.cut(2 * number - ends, number))
        yield {**fixed, LAG: lag, SPACING: 0, SEGMENTS: sizes}


def _most_in_rounds(basis: Basis, seconds: Fraction = _ROUND_SECONDS) -> int:
    """Return the most segments of threadblocks in rounds: what they have steps for, or time."""
    profile = basis.profile
    room = int(profile.max_steps * profile.usable_threadblocks * _SPARE / _gpu_steps(basis))
    each = exact(model_of(basis).rate[basis.protocol]) * 10**9 * seconds
    return min(room, int(basis.size / (each * basis.shape.trees)))


def _rotated(basis: Basis) -> Iterator[Proposal]:
    """Yield ever fewer segments of sums that go round their peers (`colsynth.lowering.rotation`).

    Only where sums of direct peers are steps of their own: in one box, or in a reduce-scatter of
    two. In one box, a sum goes on after one beat less than there are threadblocks for each peer, or
    a third less; in two, of which NICs take some, after half as many. Segments may be smaller than
    where arrivals wait for each other. Reduce-scatters by rccl, 1 GiB: 268 GB/s instead of 244 on a
    DGX H100, 222 instead of 182 on 12 GPUs that are all joined, 233 instead of 215 on two DGX H100;
    16 MiB: 131 instead of 106 on the 12, 101 instead of 79 on two DGX A100. An allreduce of 16 MiB
    on a DGX A100 reaches 85 instead of 75.
    """
    shape, profile = basis.shape, basis.profile
    boxes = len(basis.problem.topology.ranks_by_box)
    peers = shape.ranks // boxes - 1
    blocks = profile.usable_threadblocks // (peers + boxes - 1) if peers else 0
    if profile.fuses or not profile.xml or not shape.rises or not blocks:
        return
    if boxes > 2 - shape.falls or not is_round(basis.problem.topology):
        return
    rotations = (blocks // 2,) if boxes > 1 else (blocks - 1, blocks * 2 // 3)
    for number, seconds in product(rotations, (_ROUND_SECONDS, _ROUND_SECONDS / 4)):
        most, step = _most_in_rounds(basis, seconds), max(1, peers * number // boxes)
        counts = range(most // step * step, _LEAST - 1, -step)[:_TRIES]
        fixed = {**ALONE, STRATEGY: "paired", LAG: 0, SPACING: 0, ROTATION: max(1, number)}
        yield tuple(
            {**fixed, SEGMENTS: ones_and_twos(count, basis.cut(2 * count - 2, count))}
            for count in counts
        )


def leaves_boxes(basis: Basis) -> bool:
    """Whether there are sends for a window on the NICs to hold back."""
    return bool(basis.problem.topology.network)


def _scheduled(basis: Basis, protocol: str, most: int) -> Iterator[Changes]:
    """Yield ever fewer segments with threadblocks by time.

    Trees move one chunk at a time, or where roots are unequal, one of equal segments. Data waits at
    each GPU for the whole of it, so the more there are the better; all their steps have to fit.
    """
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


def _room(basis: Basis) -> int:
    """Return how many segments a file has room for, `_MOST` at most.

    For none where a segment would take several steps. Where arrivals are reduced by steps of their
    own, these stay with their threadblocks as long as all of them fit there; elsewhere, they hold
    up what has nothing to do with them.
    """
    profile, shape = basis.profile, basis.shape
    if profile.max_count < CHUNKS:
        return 0
    blocks = profile.usable_threadblocks
    room = min(profile.max_xml_nodes - shape.ranks - blocks, blocks * profile.max_steps)
    found = min(_MOST, room // _gpu_steps(basis))
    if profile.fuses:
        return found
    return min(found, profile.max_steps // shape.block_steps)
