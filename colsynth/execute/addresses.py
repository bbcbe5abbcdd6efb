"""Where the operands of a plan lie, in bytes (MSCCL++ contract 3 and 6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from colsynth.execute.loop import Fault
from colsynth.runtimes.plans.form import Op, Operand, Plan, scratch_stride

if TYPE_CHECKING:
    from colsynth.execute.definition import Call

_GRAIN = 16
BUFFERS = "ios"


@dataclass(frozen=True)
class Turn:
    """An iteration of a pipeline: its number, and bytes of each."""

    number: int
    unit: int


@dataclass(frozen=True)
class Addresses:
    """Addresses of one rank's operands at one message size.

    Parameters
    ----------
    plan : Plan
    call : Call
    """

    plan: Plan
    call: Call

    @property
    def chunk(self) -> int:
        """Bytes of a chunk."""
        gpu = self.plan.gpus[self.call.rank]
        inputs, outputs = self.call.counts
        size = self.call.dtype.itemsize
        if inputs * size * gpu.output_chunks != outputs * size * gpu.input_chunks:
            raise Fault("chunks of input and output differ in size; the loader refuses the plan")
        chunk, rest = divmod(inputs * size, gpu.input_chunks)
        if rest or chunk % self.plan.buffer_alignment:
            raise Fault(f"{inputs * size} bytes of input are no chunks of 16-byte units")
        return chunk

    @property
    def wrap(self) -> int:
        """S: the bytes behind which a slot of scratch begins again."""
        return scratch_stride(self.plan, self.plan.gpus[self.call.rank])

    @property
    def stride(self) -> int:
        """Bytes from one chunk of scratch to the next."""
        return min(self.chunk, self.wrap) if self.plan.reuse_resources else self.chunk

    @property
    def half(self) -> int:
        """Bytes of scratch that one call uses; packets take twice the room of their data."""
        return 2 * self.stride * self.plan.gpus[self.call.rank].scratch_chunks

    def turns(self, op: Op) -> Sequence[Turn | None]:
        """Return the iterations of a pipeline; of any other operation, None once."""
        if op.iter_context is None:
            return [None]
        unit = op.iter_context.unit_size
        count = -(-op.iter_context.num_chunks * self.chunk // max(1, unit))
        return [Turn(number, unit) for number in range(count)]

    def place(
        self,
        op: Op,
        operand: Operand,
        scratch: bool,
        turn: Turn | None,
        *,
        wraps: bool | None = None,
    ) -> tuple[int, int]:
        """Return first byte and number of bytes of an operand, without pointers and halves.

        Parameters
        ----------
        op, operand
        scratch : bool
            Whether it lies in scratch.
        turn : Turn or None
        wraps : bool, optional
            Whether the executor takes the offset of an iteration modulo S; usually where the
            operand lies in scratch and resources are reused.
        """
        start = operand.index * (self.stride if scratch else self.chunk)
        length = operand.size * self.chunk
        if turn is not None:
            shift = turn.number * turn.unit
            if shift >= length:
                raise Fault(f"iteration {turn.number} is behind the {length} bytes of an operand")
            length = min(length - shift, turn.unit)
            if wraps is None:
                wraps = scratch and self.plan.reuse_resources
            start += shift % self.wrap if wraps else shift
        if op.tbg_info is not None:
            grains, group = length // _GRAIN, op.tbg_info
            first = grains * group.tb_id // group.tbg_size * _GRAIN
            last = grains * (group.tb_id + 1) // group.tbg_size * _GRAIN
            start, length = start + first, last - first
        return start, length
