"""Operations in a row, with the nops that order them (contract 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from colsynth.runtimes.plans.form import Op

_OWN = frozenset({"wait", "sem_acquire"})
_NOP = Op("nop")
_SPEAKS = frozenset({"signal", "sem_release", "pws"})

OP_CHANNELS = 8
"""Most channels of one operation, in every version of the format."""

OP_SEMAPHORES = 16
"""Most semaphores of one operation, in every version of the format."""


@dataclass
class Sequence:
    """Operations with the nops that they need (contract 6.1).

    Between two nops nothing is ordered but a thread with itself, so a nop stands behind a wait
    or an operation on data before anything that relies on it.

    Parameters
    ----------
    ops : list of Op
    lies_in : mapping
        As `colsynth.runtimes.plans.shape.PlanShape.lies_in` returns it.
    """

    ops: list[Op] = field(default_factory=list)
    lies_in: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    _waited: bool = False
    _touched: list[tuple[str, int, int, bool]] = field(default_factory=list)

    def add(self, op: Op) -> None:
        """Append an operation, behind a nop where it needs one."""
        if op.name in _OWN:
            self._wait(op)
            return
        accesses = self._accesses(op)
        speaks = op.name in _SPEAKS or op.channel_type == "port"
        if self._waited or (speaks and self._touched) or self._overlaps(accesses):
            self.nop()
        if not speaks:
            self._touched += accesses or [("", 0, 0, False)]
        elif self.ops and self.ops[-1].name == op.name == "sem_release" and _fits(self.ops[-1], op):
            op = _joined(self.ops.pop(), op)
        self.ops.append(op)

    def nop(self) -> None:
        """Append the barrier of the threadblock."""
        self.ops.append(_NOP)
        self._waited, self._touched = False, []

    def _wait(self, op: Op) -> None:
        last = self.ops[-1] if self.ops else None
        same = last is not None and (last.name, last.channel_type) == (op.name, op.channel_type)
        fresh = last is not None and not set(last.channel_ids) & set(op.channel_ids)
        if same and fresh and self._waited and last is not None and _fits(last, op):
            self.ops[-1] = _joined(last, op)
        else:
            self.ops.append(op)
        self._waited = True

    def _accesses(self, op: Op) -> list[tuple[str, int, int, bool]]:
        """Return the local chunks that an operation touches: memory, first, count, if written."""
        each = [(operand, False) for operand in op.src_buff]
        each += [(operand, True) for operand in op.dst_buff[:1]]
        found = []
        for operand, writes in each:
            if operand.type is not None:
                memory, start = self.lies_in.get(operand.type, (operand.type, 0))
                found.append((memory, start + operand.index, operand.size, writes))
        return found

    def _overlaps(self, accesses: list[tuple[str, int, int, bool]]) -> bool:
        return any(
            one[0] == other[0]
            and one[1] < other[1] + other[2]
            and other[1] < one[1] + one[2]
            and (one[3] or other[3])
            for one in accesses
            for other in self._touched
        )

    def closed(self) -> tuple[Op, ...]:
        """Return the operations as the body of a loop: its end and its start are neighbours."""
        turned = Sequence([], self.lies_in, self._waited, list(self._touched))
        for op in self.ops:
            if op.name == "nop":
                turned.nop()
            else:
                turned.add(op)
        if turned.ops.count(_NOP) > self.ops.count(_NOP):
            self.nop()
        return tuple(self.ops)


def _fits(one: Op, other: Op) -> bool:
    """Return whether one operation can name the channels and semaphores of both."""
    channels = len(one.channel_ids) + len(other.channel_ids)
    semaphores = len(one.semaphore_ids) + len(other.semaphore_ids)
    return channels <= OP_CHANNELS and semaphores <= OP_SEMAPHORES


def _joined(one: Op, other: Op) -> Op:
    return Op(
        one.name,
        channel_ids=one.channel_ids + other.channel_ids,
        channel_type=one.channel_type,
        semaphore_ids=one.semaphore_ids + other.semaphore_ids,
    )
