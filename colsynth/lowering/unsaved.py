"""An alltoall in place without copies of what it overwrites, where connections hold messages.

In place, what a rank gets from another arrives where it sends to that rank. `place-slots` copies
one of each two shards to scratch first, since a transfer is a send and at once its receive. Where
connections hold all messages of an iteration, both ranks can send first: the data leaves the buffer
when it is sent, and a receive waits for the send from the same place instead of for a copy.

- Plans have a slot for every message. Sends over a network read their source later, so they keep
  their copies.
- Elsewhere a threadblock may send as many calls as a FIFO holds. All data passes through FIFOs, so
  networks make no difference (contract 4.6). An LL send of RCCL reads its source later (rule B07).

What local work remains gets threadblocks of its own, in place of those of the copies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import structs

from colsynth.lowering.allocation import place_of
from colsynth.lowering.finishes import finishes
from colsynth.model import SENDS, Gpu, Slot, Step, Threadblock, ThreadblockProgram, Wait
from colsynth.runtimes.target import Target

Place = tuple[int, int]
"""A threadblock of a rank and the place of a step in it."""


def without_saves(program: ThreadblockProgram, target: Target) -> ThreadblockProgram:
    """Return an alltoall in place that copies less first; the same one where it would hang."""
    boxes = program.header.boxes or (0,) * program.header.ranks
    if not target.profile.plans:
        if target.sends_read_late or not _fits(program, target):
            return program
        boxes = (0,) * program.header.ranks
    most = max(len(gpu.threadblocks) for gpu in program.gpus)
    ranks = [_Unsaver(gpu, boxes) for gpu in program.gpus]
    if not any(rank.dropped for rank in ranks):
        return program
    found = replace(program, gpus=tuple(rank.gpu(most) for rank in ranks))
    return found if finishes(found) else program


def _fits(program: ThreadblockProgram, target: Target) -> bool:
    """Return whether FIFOs hold all calls that any threadblock sends in a tile."""
    depth = target.profile.fifo_calls[target.protocol]
    blocks = (block for gpu in program.gpus for block in gpu.threadblocks)
    return all(sum(step.count for step in b.steps if step.op in SENDS) <= depth for b in blocks)


class _Unsaver:
    """Rewrites the program of one rank."""

    def __init__(self, gpu: Gpu, boxes: tuple[int, ...]) -> None:
        self.whole, self.boxes = gpu, boxes
        self.dropped: set[Place] = set()
        self.sources: dict[Place, Slot] = {}
        self.behind: dict[Place, set[Place]] = defaultdict(set)
        self.early: set[Place] = set()
        self.local = {b.id for b in gpu.threadblocks if b.send is None and b.recv is None}
        self._choose()

    def gpu(self, most: int) -> Gpu:
        """Return the rank with what it does now, in no more than `most` threadblocks."""
        blocks = self._blocks(most)
        new = {
            old: Wait(number, place)
            for number, (_, order) in enumerate(blocks)
            for place, old in enumerate(order)
        }
        return replace(
            self.whole,
            threadblocks=tuple(
                replace(block, id=number, steps=tuple(self._step(old, new) for old in order))
                for number, (block, order) in enumerate(blocks)
            ),
        )

    def _blocks(self, most: int) -> list[tuple[Threadblock, list[Place]]]:
        """Return threadblocks with the old places of their steps, local work dealt in turn."""
        found = []
        for number, block in enumerate(self.whole.threadblocks):
            order = [(number, place) for place in self._block(number)]
            if order:
                found.append((block, order))
        rest = [old for block, order in found if block.id in self.local for old in order]
        if not _independent([self._at(old) for old in rest]):
            return found
        found = [pair for pair in found if pair[0].id not in self.local]
        used = Counter({block.channel: 0 for block in self.whole.threadblocks})
        used.update(block.channel for block, _ in found)
        room = min(len(rest), most - len(found))
        for turn in range(room):
            channel = min(sorted(used), key=used.__getitem__)
            used[channel] += 1
            found.append((Threadblock(0, None, None, channel, ()), rest[turn::room]))
        return sorted(found, key=lambda pair: place_of(pair[0]))

    def _steps(self) -> Iterator[tuple[Place, Threadblock, Step]]:
        for number, block in enumerate(self.whole.threadblocks):
            for place, step in enumerate(block.steps):
                yield (number, place), block, step

    def _choose(self) -> None:
        """Find copies of which all chunks are only sent on to ranks in the box."""
        saved: dict[int, int] = {}
        copies: dict[Place, range] = {}
        readers: dict[int, list[Place]] = defaultdict(list)
        sends: dict[Place, tuple[int, int]] = {}
        for where, block, step in self._steps():
            source, target, count = step.source, step.target, step.count
            if _is_save(step) and source is not None and target is not None:
                copies[where] = range(target.offset, target.offset + count)
                saved |= {target.offset + k: source.offset + k for k in range(count)}
            elif source is not None and source.buffer == "s":
                for chunk in range(source.offset, source.offset + count):
                    readers[chunk].append(where)
                if step.op == "s" and self.boxes[block.send or 0] == self.boxes[self.whole.rank]:
                    sends[where] = source.offset, count
        direct = {
            where: Slot("i", saved[first])
            for where, (first, count) in sends.items()
            if all(saved.get(first + k) == saved.get(first, -count) + k for k in range(count))
        }
        for where, chunks in copies.items():
            users = {reader for chunk in chunks for reader in readers[chunk]}
            if users <= direct.keys() and all(_inside(sends[user], chunks) for user in users):
                self.dropped.add(where)
                self.sources |= {user: direct[user] for user in users}
        self._order()

    def _order(self) -> None:
        """Let what arrives wait for all sends from the same place: a chunk may leave twice."""
        leaves: dict[int, set[Place]] = defaultdict(set)
        for where, slot in self.sources.items():
            for chunk in range(slot.offset, slot.offset + self._at(where).count):
                leaves[chunk].add(where)
        for where, _, step in self._steps():
            if step.target is not None and step.target.buffer == "o":
                first = step.target.offset
                for chunk in range(first, first + step.count):
                    self.behind[where] |= leaves.get(chunk, set())

    def _at(self, where: Place) -> Step:
        return self.whole.threadblocks[where[0]].steps[where[1]]

    def _block(self, number: int) -> list[int]:
        """Return the old places of the steps that remain, sends that wait for nothing first."""
        block = self.whole.threadblocks[number]
        places = [p for p in range(len(block.steps)) if (number, p) not in self.dropped]
        first = []
        for place in places:
            step = block.steps[place]
            if step.op in SENDS:
                source = self.sources.get((number, place), step.source)
                if step.op != "s" or self._waits((number, place)) or source is None:
                    break
                if source.buffer != "i":
                    break
                first.append(place)
        self.early |= {(number, place) for place in first}
        return first + [place for place in places if place not in first]

    def _waits(self, where: Place) -> set[Place]:
        """Return what a step waits for now, in old places."""
        found = set(self.behind[where])
        for block, place in self._at(where).waits:
            # A wait stands for all steps up to the one it names.
            before = [(block, p) for p in range(place + 1) if (block, p) not in self.dropped]
            if block in self.local or (block, place) in self.early:  # they are elsewhere now
                mine, last = self._at(where), (block, place)
                found |= {p for p in before if p == last or _conflict(self._at(p), mine)}
            else:
                found.update(before[-1:])
        return found

    def _step(self, where: Place, new: dict[Place, Wait]) -> Step:
        step, last = self._at(where), dict[int, Wait]()
        for place in self._waits(where):
            wait, own = new[place], new[where]
            if wait.threadblock != own.threadblock or wait.step > own.step:
                last[wait.threadblock] = max(wait, last.get(wait.threadblock, wait))
        waits = tuple(last[block] for block in sorted(last))
        return structs.replace(step, source=self.sources.get(where, step.source), waits=waits)


def _is_save(step: Step) -> bool:
    """Whether a step copies input to scratch and no schedule asked for it."""
    both = step.source is not None and step.target is not None
    own = step.op == "cpy" and step.origin is not None and step.origin.tree < 0
    return both and own and (step.source or ("",))[0] == "i" and (step.target or ("",))[0] == "s"


def _independent(steps: Sequence[Step]) -> bool:
    """Whether no step writes memory of a call in place that another one touches."""
    touched: Counter[tuple[bool, int]] = Counter()
    written: set[tuple[bool, int]] = set()
    for step in steps:
        source, target = (
            {(slot.buffer == "s", slot.offset + k) for k in range(step.count)} if slot else set()
            for slot in (step.source, step.target)
        )
        touched.update(source | target)
        written |= target
    return all(touched[place] == 1 for place in written)


def _conflict(one: Step, other: Step) -> bool:
    """Whether two steps touch the same memory of a call in place, and one writes it."""
    for mine, writes in ((one.source, False), (one.target, True)):
        for theirs, changes in ((other.source, False), (other.target, True)):
            if mine is None or theirs is None or not (writes or changes):
                continue
            near = -other.count < theirs.offset - mine.offset < one.count
            if near and (mine.buffer == "s") == (theirs.buffer == "s"):
                return True
    return False


def _inside(part: tuple[int, int], whole: range) -> bool:
    return part[0] in whole and part[0] + part[1] - 1 in whole
