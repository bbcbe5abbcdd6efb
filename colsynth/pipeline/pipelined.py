"""Pipelines of passes whose programs fill and drain quickly, to be measured against others.

A large message takes as long as its busiest links are busy, and as long as they have to wait
before the first data arrives and others have to work after the last: of a few chunks per tree
that is a tenth to a third of all time. Shorter are both where boxes take turns
(`order-transfers{order=waves}`), where what leaves a box takes turns on its NICs
(`assign-threadblocks{turns=...}`), and where trees carry their chunks in pieces
(`lower-forest{pieces=...}`): small ones first where a collective begins with sums, small ones
last where it ends with copies. In between they are as large as steps and nodes of a file ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from colsynth.model import Direction, Forest, ThreadblockProgram
from colsynth.pipeline.manager import Pipeline
from colsynth.runtimes.profile import Profile

LOWERER, ORDERER, ASSIGNER = "lower-forest", "order-transfers", "assign-threadblocks"

_CHUNK = 480_000
"""About as many bytes has a chunk where there are pieces: a threadblock moves them in 20 us."""

_MOST = 12
"""More pieces gain little: 1 % between 12 and 18 on eight DGX A100."""

_SPARE = Fraction(9, 10)
"""The share of the steps that is planned with; the others are nops."""

_LEAST = 5
"""Fewer pieces are not tried where sums are steps."""

_TRIES = 4
"""How many numbers of pieces are tried: staffing decides what fits."""

_TURNS = 2
"""Sends that share a NIC at a time: with one it is idle between any two, with more all end late."""


def leaves_open(asked: Pipeline) -> bool:
    """Return whether a pipeline as it was asked for leaves all this to colsynth."""
    known: dict[str, Any] = {item.name: item for item in asked.passes}
    if not {LOWERER, ORDERER, ASSIGNER} <= known.keys():
        return False
    assigner = known[ASSIGNER]
    return (
        known[LOWERER].pieces == "1"
        and known[LOWERER].most == 0
        and known[ORDERER].order == "chains"
        and not (assigner.even or assigner.turns or assigner.share or assigner.abreast)
    )


def in_waves(pipeline: Pipeline) -> Iterator[Pipeline]:
    """Yield the pipeline with its transfers in waves: threadblocks by load, then taking turns."""
    ordered = changed(pipeline, ORDERER, order="waves")
    yield changed(ordered, ASSIGNER, even=True)
    yield changed(ordered, ASSIGNER, turns=_TURNS)


def in_pieces(
    pipeline: Pipeline, forest: Forest, base: ThreadblockProgram, size: int, profile: Profile
) -> Iterator[Pipeline]:
    """Yield the pipeline with ever fewer pieces: the first that fits is the best.

    Parameters
    ----------
    pipeline : Pipeline
    forest : Forest
    base : ThreadblockProgram
        What is made of it without pieces, best with its transfers in waves.
    size : int
        Bytes of the message for which pieces are made.
    profile : Profile
    """
    chunks = 1 << max(0, (size // (_CHUNK * forest.chunks)).bit_length() - 1)
    number = min(_room(base, profile), chunks * 3 // 8)
    rises = forest.phases[0].direction is Direction.IN
    falls = forest.phases[-1].direction is Direction.OUT
    ordered = changed(pipeline, ORDERER, order="waves")
    staffed = changed(ordered, ASSIGNER, even=True, turns=_TURNS, apart=len(forest.phases) == 1)
    while number > 1:
        sizes = shape(number, chunks, rises=rises, falls=falls)
        yield changed(staffed, LOWERER, pieces=sizes)
        number = number * 3 // 4


def in_rounds(
    pipeline: Pipeline, forest: Forest, base: ThreadblockProgram, size: int, profile: Profile
) -> Iterator[Pipeline]:
    """Yield the pipeline with threadblocks in pairs and rounds, with ever fewer pieces.

    Where a runtime adds up in steps of their own, all its threadblocks have to share them
    (`colsynth.lowering.paired`). Those that also serve the second phase of an allreduce begin
    with it when all sums are begun: sums take longer than a beat, and copies that wait for
    them hold up other sums. Nothing where it fuses, or nothing is added up.

    Parameters
    ----------
    pipeline, forest, base, size, profile
        As for `in_pieces`.
    """
    if profile.fuses or forest.phases[0].direction is not Direction.IN:
        return
    steps = max(sum(len(block.steps) for block in gpu.threadblocks) for gpu in base.gpus)
    blocks = min(profile.resident_threadblocks, profile.max_threadblocks)
    room = int(profile.max_steps * blocks * _SPARE) // steps
    most = min(room, size // (_CHUNK * forest.chunks))
    ordered = changed(pipeline, ORDERER, order="waves")
    staffed = changed(ordered, ASSIGNER, even=True, share=True, turns=_TURNS)
    for less in range(_TRIES):
        number = most - less * max(1, most // 16)
        if number < _LEAST:
            return
        apart = changed(staffed, ORDERER, lag=number if len(forest.phases) > 1 else 0)
        yield changed(apart, LOWERER, pieces=ones_and_twos(number))


def ones_and_twos(number: int) -> str:
    """Return the sizes of two pieces or more, those at both ends half as large as the others.

    Their sum is the largest power of two that leaves some small: runtimes take a file only for
    messages whose elements its chunks divide (contract 1.4).
    """
    total = 1 << ((2 * number - 2).bit_length() - 1)
    small = 2 * number - total
    sizes = [1] * (small // 2) + [2] * (number - small) + [1] * (small - small // 2)
    return "-".join(map(str, sizes))


def _room(base: ThreadblockProgram, profile: Profile) -> int:
    """Return how many pieces a file has room for, `_MOST` at most.

    Where arrivals are added up by steps of their own, these stay with their threadblocks as
    long as all of them fit there; elsewhere, they hold up what has nothing to do with them.
    """
    steps = max(sum(len(block.steps) for block in gpu.threadblocks) for gpu in base.gpus)
    blocks = min(profile.resident_threadblocks, profile.max_threadblocks)
    room = min(profile.max_xml_nodes - blocks, blocks * profile.max_steps)
    found = min(_MOST, int(room * _SPARE) // steps)
    if profile.fuses:
        return found
    return min(found, int(profile.max_steps * _SPARE) // base.max_steps)


def shape(number: int, chunks: int, *, rises: bool, falls: bool) -> str:
    """Return the sizes of pieces as `lower-forest{pieces}` has them.

    The further from an end that is to be small, the larger; chunks are divided as d'Hondt
    divides seats.

    Parameters
    ----------
    number, chunks : int
        One or more; no more pieces than chunks.
    rises, falls : bool
        Whether the first, the last are small.
    """
    inside = [
        min(place if rises else number, number - 1 - place if falls else number)
        for place in range(number)
    ]
    sizes = [1] * number

    def claim(place: int) -> tuple[Fraction, int, int]:
        return Fraction(sizes[place] + 1, inside[place] + 2), -inside[place], place

    for _ in range(chunks - number):
        sizes[min(range(number), key=claim)] += 1
    return "-".join(map(str, sizes))


def changed(pipeline: Pipeline, name: str, **values: Any) -> Pipeline:
    """Return the pipeline with options of one pass changed."""
    passes: list[Any] = list(pipeline.passes)
    return Pipeline(tuple(replace(x, **values) if x.name == name else x for x in passes))
