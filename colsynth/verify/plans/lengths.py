"""Which lengths of chunks stand for all messages that a plan serves.

Iterations of a pipeline and the cells that operations share change only where a chunk grows beyond
a multiple of some unit, or of a part of it where pipelines cut several chunks at once. Between two
such lengths all executions are alike. Beyond two rounds of all slots, a further round adds nothing
new; what counters alone can do there is looked for without data (`counts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from math import ceil, floor, gcd, lcm
from typing import TYPE_CHECKING

from colsynth.runtimes.plans.form import Plan, scratch_stride
from colsynth.verify.plans.lists import every_op
from colsynth.verify.plans.program import loops_of
from colsynth.verify.plans.ranges import OFFSETS

if TYPE_CHECKING:
    from colsynth.model import Header
    from colsynth.verify.plans.resolved import Resolved

_MOST_TURNS = 32
"""Iterations of a chunk beyond which execution would take too long."""
_MOST_CLASSES = 1024
"""Lengths that are listed at all."""
_BUDGET = 400_000
"""Operations, and cells that they move, that are executed where lengths differ."""


@dataclass(frozen=True)
class Length:
    """Messages that are executed alike.

    Parameters
    ----------
    chunk : Fraction
        Bytes of a chunk in the execution that stands for them.
    call : int
        Bytes of a chunk in the smallest of these messages.
    turns : int or None
        Iterations of every pipeline, where all have as many.
    """

    chunk: Fraction
    call: int
    turns: int | None = None


@dataclass(frozen=True)
class Lengths:
    """The lengths to execute, smallest first.

    Parameters
    ----------
    tried : tuple of Length
    complete : bool
        Whether they stand for all that the plan serves.
    longer : tuple of int
        Bytes of chunks for which only counters are executed.
    """

    tried: tuple[Length, ...]
    complete: bool = True
    longer: tuple[int, ...] = ()


def span(plan: Plan, header: Header) -> tuple[int, int]:
    """Return the bytes of the smallest and of the largest chunk that calls can have.

    The first is larger where no call can be executed.
    """
    align = max(1, plan.buffer_alignment)
    top = OFFSETS - 1 if header.max_bytes is None else min(header.max_bytes, OFFSETS - 1)
    least = max(1, -(-max(0, header.min_bytes) // header.chunks))
    most = top // header.chunks // align * align
    if plan.reuse_resources and loops_of(plan) and _bare(plan):
        most = min(most, *(scratch_stride(plan, gpu) for gpu in plan.gpus))
    return -(-least // align) * align, most


def _bare(plan: Plan) -> bool:
    """Whether anything outside pipelines moves data through scratch, where it does not wrap."""
    operands = (o for op in every_op(plan) for o in (*op.src_buff, *op.dst_buff))
    return any(o.type == "s" or o.buffer_id is not None for o in operands)


def even_lengths(plan: Plan, header: Header) -> Lengths:
    """Return the lengths of a plan whose pipelines all go round equally often, step by step."""
    loops = loops_of(plan)
    least, most = span(plan, header)
    if not loops:
        return Lengths((Length(Fraction(1), least, 1),))
    (loop,) = loops
    unit, count = loop.unit_size, loop.num_chunks
    slots = _slots(plan)
    enough = 3 if slots is None else slots // unit + 2
    wanted = [min(ceil(Fraction(count * x, unit)), enough) for x in (least, most)]
    if wanted[-1] > _MOST_TURNS:
        return Lengths((), complete=False)
    tried = []
    for turns in dict.fromkeys(wanted):
        tried.append(Length(Fraction(turns * unit, count), least, turns))
        least = most
    return Lengths(tuple(tried))


def cut_alike(plan: Plan, header: Header) -> bool:
    """Whether all pipelines cut the same bytes at the same places."""
    loops = loops_of(plan)
    counts = {loop.num_chunks for loop in loops}
    if len(loops) > 1 or counts <= {1}:
        return len(loops) < 2
    (count,) = counts
    inner = [one for op in every_op(plan) for one in op.ops]
    places = {operand.index for op in inner for operand in (*op.src_buff, *op.dst_buff)}
    shift = header.chunks // header.ranks if header.in_place else 0
    return all(place % count == 0 for place in (*places, shift))


def uneven_lengths(plan: Plan, header: Header, program: Resolved) -> Lengths:
    """Return the lengths of any plan; `program` is that plan, resolved."""
    least, most = span(plan, header)
    loops = loops_of(plan)
    units = [loop.unit_size for loop in loops]
    round_ = _slots(plan) or lcm(*units)
    horizon = min(most, least + 2 * round_ + max(units))
    several = max(loop.num_chunks for loop in loops)
    # Operands of several chunks meet at any difference of multiples of units, divided among chunks.
    steps = {Fraction(unit) for unit in units}
    if several > 1:
        steps = {Fraction(gcd(*units), part) for part in range(1, 2 * several)}
    found: list[Length] = []
    complete = True
    for length in _classes(steps, several > 1, plan.buffer_alignment, (least, most)):
        if length.call > horizon:
            break
        if len(found) == _MOST_CLASSES:
            complete = False
            break
        found.append(length)
    tried = _affordable(found, units, program)
    complete = complete and len(tried) == len(found)
    longer = []
    if most > horizon:
        doubled = (horizon << step for step in range(1, (most // horizon).bit_length()))
        align = plan.buffer_alignment
        longer = [max(least, chunk // align * align) for chunk in doubled] + [most]
    return Lengths(tuple(tried), complete, tuple(dict.fromkeys(longer)))


def _slots(plan: Plan) -> int | None:
    """Return the bytes of the longest slot in scratch, None where none wraps."""
    if not plan.reuse_resources:
        return None
    return max((scratch_stride(plan, gpu) for gpu in plan.gpus if gpu.scratch_chunks), default=None)


def _classes(
    steps: set[Fraction], apart: bool, align: int, between: tuple[int, int]
) -> Iterator[Length]:
    """Yield lengths in order, one of all that are executed alike.

    Parameters
    ----------
    steps : set of Fraction
        Executions differ only at multiples of these.
    apart : bool
        Whether the multiples are no longer alike with what lies below them.
    align : int
    between : (int, int)
        Bytes of the smallest and of the largest chunk.
    """
    least, most = between
    starts = [max(1, floor((least - 1) / step)) for step in steps]
    last = Fraction(0)
    for point in _points(steps, starts):
        call = max(least, floor(last / align + 1) * align)
        if not apart and call <= point and call <= most:
            yield Length(point, call)
        if apart and call < point and call <= most:
            yield Length((last + point) / 2, call)
        if apart and point.denominator == 1 and point % align == 0 and least <= point <= most:
            yield Length(point, int(point))
        if point >= most:
            return
        last = point


def _points(steps: Iterable[Fraction], starts: Iterable[int]) -> Iterator[Fraction]:
    """Yield the multiples of all steps in order, each once."""
    last: Fraction | None = None
    for point in merge(*map(_multiples, steps, starts)):
        if point != last:
            yield point
        last = point


def _multiples(step: Fraction, first: int) -> Iterator[Fraction]:
    value = first * step
    while True:
        yield value
        value += step


def _affordable(
    found: Sequence[Length], units: Sequence[int], program: Resolved
) -> Sequence[Length]:
    """Return those that can be executed in reasonable time: the ends first, then from below."""
    left = _BUDGET
    kept: list[Length] = []
    for length in (*found[:1], *found[1:][-1:], *found[1:-1]):
        left -= _cost(length.chunk, units, program)
        if left < 0 and kept:
            break
        kept.append(length)
    return sorted(kept, key=lambda length: length.chunk)


def _cost(chunk: Fraction, units: Sequence[int], program: Resolved) -> int:
    scale = chunk.denominator
    cells = chunk * scale / gcd(chunk.numerator, *(unit * scale for unit in units))
    parts = list(program.operations())
    moved = sum(len(part.action.moves) for part in parts) * cells
    return int(sum(max(1, ceil(part.rate * chunk)) for part in parts) + moved)
