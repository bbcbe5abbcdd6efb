"""The operations of one threadblock: steps spelt as operations, with nops between (contract 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap

from colsynth.model import RECEIVES, SENDS, Slot, Step, Threadblock
from colsynth.runtimes.plans import sequence
from colsynth.runtimes.plans.form import Loop, Op, Operand
from colsynth.runtimes.plans.shape import CREDITS, Form, PlanShape

_FUSED = frozenset({"rcs", "rrs", "rrcs"})


@dataclass(frozen=True)
class Links:
    """What a threadblock is connected to, in its own numbering.

    Parameters
    ----------
    kind_in, kind_out : str
        ``"memory"`` or ``"port"``.
    channel_in, channel_out : int
        Index in the threadblock's list of channels of that type; -1 for none.
    slot_in, slot_out : int
        First slot of the connection, here and at the peer.
    stage : int
        First staging chunk of the threadblock.
    thrown : int
        Where sums go that only travel on as packets.
    acquires : dict
        Semaphores to take before a step, by its place.
    releases : dict
        Semaphores to give after a step.
    folds : dict
        Of further connections whose messages are added, by rank and channel: the index in the
        list of memory channels, and the first slot.
    lies_in : dict
        Of the rank, as `PlanShape.lies_in` returns it.
    """

    kind_in: str
    kind_out: str
    channel_in: int
    channel_out: int
    slot_in: int
    slot_out: int
    stage: int
    thrown: int
    acquires: dict[int, tuple[int, ...]]
    releases: dict[int, tuple[int, ...]]
    folds: dict[tuple[int, int], tuple[int, int]]
    lies_in: dict[str, tuple[str, int]]


class BlockWriter:
    """Spells the steps of one threadblock.

    In a pipeline every operation moves one chunk, so steps of several become several. Local sums
    in a row become one operation: `joins` says of each step if it belongs to the one before.
    """

    def __init__(
        self, block: Threadblock, shape: PlanShape, links: Links, joins: Sequence[bool]
    ) -> None:
        self.block, self.shape, self.links, self.joins = block, shape, links, joins
        self.out = sequence.Sequence(lies_in=links.lies_in)
        self.slot, self.remote, self.stage = links.slot_in, links.slot_out, links.stage
        self.credited = shape.packets
        self.sends = links.channel_out >= 0
        self.receives = links.channel_in >= 0
        self.folded = {fold: slot for fold, (_, slot) in links.folds.items()}
        self.incoming = (links.channel_in, *(channel for channel, _ in links.folds.values()))

    def ops(self) -> tuple[Op, ...]:
        """Return all operations."""
        self._body()
        links, credit = self.links, self.shape.form is Form.PIPELINE
        first: list[Op] = []
        last: list[Op] = []
        if self.shape.packets:
            return tuple(self.out.ops)
        if self.receives:
            first += [self._signal(links.kind_in, *self.incoming)] * (CREDITS if credit else 1)
        if not credit:
            return (*first, *self._flat())
        if self.receives:
            self.out.add(self._signal(links.kind_in, *self.incoming))
        if self.sends:
            last = [self._wait(links.kind_out, links.channel_out)] * CREDITS
        if not self.out.ops:
            return (*first, *last)
        loop = Op("pipeline", iter_context=Loop(self.shape.unit, 1), ops=self.out.closed())
        return (*first, loop, *last)

    def _flat(self) -> tuple[Op, ...]:
        """Return the body with what tells that ports have read their sources."""
        links = self.links
        if self.receives and links.kind_in == "port":
            self.out.add(self._signal(links.kind_in, links.channel_in))
        if self.sends and links.kind_out == "port":
            self.out.add(self._wait(links.kind_out, links.channel_out))
        return tuple(self.out.ops)

    def _body(self) -> None:
        steps = self.block.steps
        firsts = [place for place, joins in enumerate(self.joins) if not joins]
        for places in starmap(range, pairwise([*firsts, len(steps)])):
            for semaphores in _portions(self.links.acquires, places):
                self.out.add(Op("sem_acquire", semaphore_ids=semaphores))
            if steps[places[0]].op == "re":
                self._added([steps[place] for place in places])
            elif steps[places[0]].op != "nop":
                self._step(steps[places[0]])
            for semaphores in _portions(self.links.releases, places):
                self.out.add(Op("sem_release", semaphore_ids=semaphores))

    def _added(self, steps: list[Step]) -> None:
        """Add to a chunk what further chunks hold, in one operation."""
        count = steps[0].count
        each = self.shape.form is Form.PIPELINE
        for k, size in [(k, 1) for k in range(count)] if each else [(0, count)]:
            target = _own(self._local(steps[0].target, k, size))
            sources = [_own(self._local(step.source, k, size)) for step in steps]
            self._reduce((target, *sources), target)

    def _step(self, step: Step) -> None:
        if self.shape.packets:
            self._packets(step)
            return
        each = self.shape.form is Form.PIPELINE
        if step.op in RECEIVES:
            more = (self.links.folds[fold][0] for fold in step.folds)
            self.out.add(self._wait(self.links.kind_in, self.links.channel_in, *more))
        if step.op in SENDS and not self.credited:
            self.out.add(self._wait(self.links.kind_out, self.links.channel_out))
            self.credited = True
        parts = [(k, 1) for k in range(step.count)] if each else [(0, step.count)]
        puts = [self._moved(step, k, size) for k, size in parts]
        self._received(step)
        if step.op not in SENDS:
            return
        far = self.remote
        self.remote += step.count
        if self.shape.staged(step) and self.links.kind_out == "port":
            self.stage += step.count
        if self.links.kind_out == "memory":
            self.out.add(self._signal("memory", self.links.channel_out))
            return
        for number, (source, (k, size)) in enumerate(zip(puts, parts, strict=True)):
            name = "pws" if number == len(parts) - 1 else "put"
            self.out.add(self._put(name, source, far + k, size))

    def _received(self, step: Step) -> None:
        """Go on to the slots of the next messages."""
        if step.op in RECEIVES:
            self.slot += step.count
        for fold in step.folds:
            self.folded[fold] += step.count

    def _slots(self, step: Step, k: int, size: int) -> tuple[Operand, ...]:
        """Return the slots of all messages that a step takes."""
        places = (self.slot, *(self.folded[fold] for fold in step.folds))
        return tuple([Operand(place + k, size, "s") for place in places])

    def _moved(self, step: Step, k: int, size: int) -> Operand | None:
        """Do what a step does on this side; return what a port has to send."""
        source, target = self._local(step.source, k, size), self._local(step.target, k, size)
        slot = Operand(self.slot + k, size, "s")
        if step.op == "s":
            return self._sent(step, _own(source), k)
        if step.op in _FUSED:
            return self._passed_on(step, slot, source, target, k)
        if step.op in ("cpy", "r"):
            self._copy(slot if step.op == "r" else _own(source), _own(target))
        else:
            self._reduce((*self._slots(step, k, size), _own(source)), _own(target))
        return None

    def _stage(self, step: Step, k: int, size: int) -> Operand | None:
        port = self.links.kind_out == "port"
        return Operand(self.stage + k, size, "s") if port and self.shape.staged(step) else None

    def _sent(self, step: Step, source: Operand, k: int) -> Operand:
        far = Operand(self.remote + k, source.size, buffer_id=0)
        stage = self._stage(step, k, source.size)
        if self.links.kind_out == "memory":
            self.out.add(Op("put", (source,), (far,), channel_type="memory"))
        elif stage is not None:
            self._copy(source, stage)
        return stage or source

    def _passed_on(
        self, step: Step, slot: Operand, source: Operand | None, target: Operand | None, k: int
    ) -> Operand:
        """Receive, perhaps add, and send on."""
        far = Operand(self.remote + k, slot.size, buffer_id=0)
        stage = self._stage(step, k, slot.size)
        memory = self.links.kind_out == "memory"
        kept = (stage or slot) if step.op == "rrs" else _own(target)
        other = None if step.op == "rcs" else _own(source)
        wraps = other is not None and other.type == "s" and self.shape.form is Form.PIPELINE
        if memory and not wraps:
            sources = (slot,) if other is None else (slot, other)
            self.out.add(Op("res", sources, (kept, far), channel_type="memory"))
            return kept
        if other is None:
            self._copy(slot, kept)
        else:
            self._reduce((slot, other), kept)
        if memory:
            self.out.add(Op("put", (kept,), (far,), channel_type="memory"))
        elif stage is not None and step.op != "rrs":
            self._copy(kept, stage)
        return stage or kept

    def _reduce(self, operands: tuple[Operand, ...], target: Operand) -> None:
        """Add local operands; where slots wrap, what lies in scratch comes first (T1)."""
        sources = tuple(sorted(operands, key=lambda operand: operand.type != "s"))
        targets: tuple[Operand, ...] = (target,)
        if self.shape.form is Form.PIPELINE:
            # The executor takes the type of each further target for that of the source there.
            like = target if target.type == "s" else sources[0]
            targets += (like,) * sum(operand.type == "s" for operand in sources[1:])
        self.out.add(Op("re", sources, targets))

    def _copy(self, source: Operand, target: Operand) -> None:
        self.out.add(Op("copy", (source,), (target,)))

    def _put(self, name: str, source: Operand | None, far: int, size: int) -> Op:
        target = Operand(far, size, buffer_id=0)
        ids = (self.links.channel_out,)
        return Op(name, (_own(source),), (target,), channel_ids=ids, channel_type="port")

    def _local(self, slot: Slot | None, k: int, size: int) -> Operand | None:
        if slot is None:
            return None
        at = self.shape.place(slot.offset) if slot.buffer == "s" else slot.offset
        return Operand(at + k, size, slot.buffer)

    def _packets(self, step: Step) -> None:
        """Spell a step with packets (contract 6.5)."""
        op, size, port = step.op, step.count, self.links.kind_out == "port"
        source, target = self._local(step.source, 0, size), self._local(step.target, 0, size)
        slot = Operand(self.slot, size, "s")
        if op == "rrs":
            target = Operand(self.links.thrown, size, "s")
        if op == "cpy":
            self._copy(_own(source), _own(target))
        elif op in ("r", "rrc"):
            self._unpacked(self._slots(step, 0, size), source, _own(target))
        else:
            self._sent_packets(op, slot, source, target)
        self._received(step)
        if op in SENDS:
            self.remote += size
            self.stage += size * port

    def _unpacked(self, slots: tuple[Operand, ...], other: Operand | None, target: Operand) -> None:
        if other is None:
            self.out.add(Op("upkt", slots, (target,)))
        else:
            self.out.add(Op("repkt", (other, *slots), (target,)))

    def _sent_packets(
        self, op: str, slot: Operand, source: Operand | None, target: Operand | None
    ) -> None:
        far, kind = Operand(self.remote, slot.size, buffer_id=0), self.links.kind_out
        if op == "rcs":
            ids = (self.links.channel_out,) if kind == "port" else ()
            self.out.add(Op("rppkt", (slot,), (far,), channel_ids=ids, channel_type=kind))
            self._unpacked((slot,), None, _own(target))
        elif kind == "memory":
            sources = (_own(source),) if op == "s" else (_own(source), slot)
            targets = (far,) if op == "s" else (_own(target), far)
            name = "ppkt" if op == "s" else "respkt"
            self.out.add(Op(name, sources, targets, channel_type="memory"))
        else:
            if op != "s":
                self._unpacked((slot,), source, _own(target))
            self._staged(source if op == "s" else target, far)

    def _staged(self, source: Operand | None, far: Operand) -> None:
        """Send packets over a port, which takes them from a staging chunk."""
        stage = Operand(self.stage, far.size, "s")
        self.out.add(Op("cpkt", (_own(source),), (stage,)))
        self.out.nop()
        ids = (self.links.channel_out,)
        self.out.add(Op("ppkt", (stage,), (far,), channel_ids=ids, channel_type="port"))

    def _signal(self, kind: str, *channels: int) -> Op:
        return Op("signal", channel_ids=channels, channel_type=kind)

    def _wait(self, kind: str, *channels: int) -> Op:
        return Op("wait", channel_ids=channels, channel_type=kind)


def _own(operand: Operand | None) -> Operand:
    if operand is None:
        raise ValueError("a step lacks an operand")
    return operand


def _portions(found: dict[int, tuple[int, ...]], places: range) -> list[tuple[int, ...]]:
    """Return the semaphores at some places, in portions of what one operation takes."""
    semaphores = [number for place in places for number in found.get(place, ())]
    starts = range(0, len(semaphores), sequence.OP_SEMAPHORES)
    return [tuple(semaphores[k : k + sequence.OP_SEMAPHORES]) for k in starts]
