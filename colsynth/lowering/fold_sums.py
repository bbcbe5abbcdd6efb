"""Sums of several messages in one step, where a runtime can (plans).

A rank that many send to adds message after message: each step waits for the one before and reads
and writes the partial sum again. A plan can add the messages of several connections in one pass.
Threadblocks of a rank that only receive, and add to the same chunks in the same order, become one
threadblock; addition commutes, so the order within a sum is free. Messages of a network come
later than others and keep their threadblocks.

`place-slots{sums=joined}` serves other cases: packets, whose sums read scratch anyway, and ranks
that must all add in one order. There all messages land first, which costs large ones too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from colsynth.lowering.finishes import finishes
from colsynth.model import Gpu, Step, Threadblock, ThreadblockProgram, Wait
from colsynth.runtimes.choice import Basis, Proposal
from colsynth.runtimes.profile import Profile


def most_folded(profile: Profile) -> int:
    """Return how many messages one step of a runtime adds up at most."""
    if not profile.plans:
        return 1
    channels: int = profile.plans["op_channels"]
    return min(profile.longest_sum or 1, channels - 1)


def folds(basis: Basis) -> Iterator[Proposal]:
    """Yield numbers of messages that one step adds up, where ranks add those of several."""
    running = basis.values.get("place-slots.sums", "running") == "running"
    if running and basis.shape.rises and most_folded(basis.profile) > 1:
        for most in (7, 4, 2, 1):
            if most != basis.values["assign-threadblocks.fold"]:
                yield ({"assign-threadblocks.fold": most},)


def folded(program: ThreadblockProgram, most: int) -> ThreadblockProgram:
    """Return a program whose steps add up to `most` messages; the same one where it would hang."""
    boxes = program.header.boxes or (0,) * program.header.ranks
    found = replace(program, gpus=tuple(_Folder(gpu, boxes, most).gpu() for gpu in program.gpus))
    return found if finishes(found) else program


class _Folder:
    """Folds the sums of one rank."""

    def __init__(self, gpu: Gpu, boxes: tuple[int, ...], most: int) -> None:
        self.whole, self.boxes, self.most = gpu, boxes, most
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.steps: dict[int, tuple[Step, ...]] = {}

    def gpu(self) -> Gpu:
        """Return the rank with what it does now."""
        alike: dict[tuple[object, ...], list[Threadblock]] = defaultdict(list)
        for block in self.whole.threadblocks:
            adds = all(step.op == "rrc" for step in block.steps)
            if adds and block.steps and block.send is None:
                alike[tuple((step.target, step.count) for step in block.steps)].append(block)
        for blocks in alike.values():
            self._fold(blocks)
        if not self.steps:
            return self.whole
        kept = [b for b in self.whole.threadblocks if self.first.get(b.id, b.id) == b.id]
        number = {block.id: place for place, block in enumerate(kept)}
        threadblocks = (
            replace(
                block,
                id=number[block.id],
                steps=tuple(
                    self._renumbered(block.id, place, step, number)
                    for place, step in enumerate(self.steps.get(block.id, block.steps))
                ),
            )
            for block in kept
        )
        return replace(self.whole, threadblocks=tuple(threadblocks))

    def _parts(self, blocks: list[Threadblock]) -> Iterator[list[Threadblock]]:
        """Yield who shares a threadblock, those of the network by themselves and last."""
        here = self.boxes[self.whole.rank]
        near = [block for block in blocks if self.boxes[block.recv or 0] == here]
        for place in range(0, len(near), self.most):
            yield near[place : place + self.most]
        yield from ([block] for block in blocks if self.boxes[block.recv or 0] != here)

    def _fold(self, blocks: list[Threadblock]) -> None:
        parts = list(self._parts(blocks))
        places = range(len(blocks[0].steps))
        heads = [sum(_begins(block.steps[place]) for block in blocks) for place in places]
        if len(parts) == len(blocks) or max(heads) > 1:
            return
        members = {block.id for block in blocks}
        for part in parts:
            self.first |= {block.id: part[0].id for block in part}
        self.last |= dict.fromkeys(members, parts[-1][0].id)
        for number, part in enumerate(parts):
            before = parts[number - 1][0].id if number else None
            folds = tuple([(block.recv or 0, block.channel) for block in part[1:]])
            self.steps[part[0].id] = tuple(
                self._sum(blocks, members, place, before, folds) for place in places
            )

    def _sum(
        self,
        blocks: list[Threadblock],
        members: set[int],
        place: int,
        before: int | None,
        folds: tuple[tuple[int, int], ...],
    ) -> Step:
        """Return what a part adds at a place, behind the part before it."""
        steps = [block.steps[place] for block in blocks]
        begins = [step for step in steps if _begins(step)]
        waits = {w for step in steps for w in step.waits}
        waits = {w for w in waits if not (w.threadblock in members and w.step == place)}
        step = begins[0] if begins and before is None else steps[-1]
        source = step.source if before is None else step.target
        if before is not None:
            waits = {Wait(before, place)}
        return structs.replace(step, source=source, waits=tuple(sorted(waits)), folds=folds)

    def _renumbered(self, own: int, place: int, step: Step, number: dict[int, int]) -> Step:
        last: dict[int, int] = {}
        for wait in step.waits:
            block = wait.threadblock
            part = own in self.steps and self.last[own] == self.last.get(block)
            if not part or wait.step != place:  # a sum is there when its last part is done
                block = self.last.get(block, block)
            if block == own and wait.step < place:
                continue
            last[number[block]] = max(wait.step, last.get(number[block], -1))
        return structs.replace(step, waits=tuple(Wait(*wait) for wait in sorted(last.items())))


def _begins(step: Step) -> bool:
    """Whether a step begins a sum: it adds to something else than the sum so far."""
    return step.source != step.target
