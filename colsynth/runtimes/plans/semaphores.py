"""Semaphores of one GPU: dependencies between threadblocks, and chunks of scratch used again."""

from __future__ import annotations

from collections import defaultdict

from colsynth.model import Gpu, Slot, Step
from colsynth.runtimes.plans.shape import CREDITS, Form, PlanShape

_Places = list[dict[int, tuple[int, ...]]]
READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re"})
WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
"""Steps that read their source, and that write their target."""


def semaphores_of(shape: PlanShape, gpu: Gpu) -> tuple[_Places, _Places, tuple[int, ...]]:
    """Return what each threadblock acquires before and releases after its steps, and the values.

    One semaphore stands for each dependency. In a pipeline, chunks of scratch are written again
    some iterations later, so who writes one first waits until the others are done with it; such a
    semaphore starts with as many counts as a slot holds iterations.
    """
    pairs: list[tuple[tuple[int, int], tuple[int, int], int]] = []
    for block in gpu.threadblocks:
        for place, step in enumerate(block.steps):
            pairs += [((wait.threadblock, wait.step), (block.id, place), 0) for wait in step.waits]
    if shape.form is Form.PIPELINE:
        pairs += [(late, early, CREDITS) for late, early in _reused(gpu)]
    acquires: list[dict[int, list[int]]] = [defaultdict(list) for _ in gpu.threadblocks]
    releases: list[dict[int, list[int]]] = [defaultdict(list) for _ in gpu.threadblocks]
    for number, ((giver, after), (taker, before), _) in enumerate(pairs):
        releases[giver][after].append(number)
        acquires[taker][before].append(number)
    return _frozen(acquires), _frozen(releases), tuple(value for *_, value in pairs)


def _frozen(found: list[dict[int, list[int]]]) -> _Places:
    return [{place: tuple(numbers) for place, numbers in one.items()} for one in found]


def _reused(gpu: Gpu) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return (last use of a chunk by another threadblock, first write of it)."""
    order = _order(gpu)
    uses: dict[int, list[tuple[int, int, int, bool]]] = defaultdict(list)
    for when, (block, place) in enumerate(order):
        step = gpu.threadblocks[block].steps[place]
        for chunk, writes in _scratch(step):
            uses[chunk].append((when, block, place, writes))
    found = set()
    for users in uses.values():
        first = next((use for use in users if use[3]), None)
        if first is None:
            continue
        last = {block: place for _, block, place, _ in users if block != first[1]}
        found |= {((block, place), first[1:3]) for block, place in last.items()}
    return sorted(_fewest(found))


def _fewest(
    found: set[tuple[tuple[int, int], tuple[int, int]]],
) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Return one pair for every two threadblocks: the latest use, the earliest write."""
    best: dict[tuple[int, int], tuple[int, int]] = {}
    for (giver, after), (taker, before) in found:
        known = best.get((giver, taker))
        best[giver, taker] = (
            (after, before) if known is None else (max(known[0], after), min(known[1], before))
        )
    return {((g, after), (t, before)) for (g, t), (after, before) in best.items()}


def _scratch(step: Step) -> list[tuple[int, bool]]:
    """Return the chunks of the program's scratch that a step touches, and whether it writes."""
    found: list[tuple[int, bool]] = []
    for slot, ops, writes in ((step.source, READS, False), (step.target, WRITES, True)):
        if slot is not None and slot.buffer == "s" and step.op in ops:
            found += [(_chunk(slot, k), writes) for k in range(step.count)]
    return found


def _chunk(slot: Slot, k: int) -> int:
    return slot.offset + k


def _order(gpu: Gpu) -> list[tuple[int, int]]:
    """Return (threadblock, place) of all steps, each after what it waits for."""
    at = [0] * len(gpu.threadblocks)
    order: list[tuple[int, int]] = []
    moved = True
    while moved:
        moved = False
        for number, block in enumerate(gpu.threadblocks):
            while at[number] < len(block.steps):
                waits = block.steps[at[number]].waits
                if any(at[wait.threadblock] <= wait.step for wait in waits):
                    break
                order.append((number, at[number]))
                at[number] += 1
                moved = True
    return order
