"""Whether the buffers of a file fit into memory: found out before any rank is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from colsynth.errors import Span
from colsynth.execute.definition import counts_of
from colsynth.memory import refuse_beyond_memory
from colsynth.model import ThreadblockProgram
from colsynth.runtimes.plans.form import scratch_stride
from colsynth.units import format_size

if TYPE_CHECKING:
    from colsynth.execute.choose import Choice


def require_memory(choice: Choice, name: str, size: int, *, alone: bool) -> None:
    """Refuse a call whose buffers no memory of this machine holds (CS308).

    Parameters
    ----------
    choice : Choice
        A file that is not refused.
    name : str
        What the refusal calls it.
    size : int
        Bytes of the message.
    alone : bool
        Whether each rank may have a machine of its own, as a launcher decides.
    """
    user = max(counts_of(choice.header, size))
    scratch = list(_scratch(choice, size))
    each = [user + one for one in scratch]
    need = max(each) if alone else sum(each)
    parts = f" with {max(scratch) / 10**9:.3g} GB of scratch on a rank" if any(scratch) else ""
    advice = "give a smaller --size" + (", or a file with less scratch" if parts else "")
    what = f"a call of {format_size(size)}{parts}"
    refuse_beyond_memory(what, need, advice, Span(name))


def _scratch(choice: Choice, size: int) -> Iterator[int]:
    """Yield the bytes of scratch of each rank, at least."""
    reading, header = choice.reading, choice.header
    if reading.plan is not None:
        plan, user = reading.plan, counts_of(header, size)[0]
        for gpu in plan.gpus:
            chunk = user // gpu.input_chunks
            stride = min(chunk, scratch_stride(plan, gpu)) if plan.reuse_resources else chunk
            yield gpu.scratch_chunks * stride
    elif isinstance(reading.program, ThreadblockProgram):
        for block_gpu in reading.program.gpus:
            yield block_gpu.scratch_chunks * (size // header.chunks)
