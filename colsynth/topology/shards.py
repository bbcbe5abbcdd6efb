"""Shards of different sizes, from a YAML file.

::

    version: 1
    shards:
      - {gpus: [0-6], weight: 2}
      - {gpus: [gpu0.7], weight: 1}

Every GPU has one shard: what it contributes to an allgather, or gets of a reduce-scatter; of a
broadcast or reduce, the part of the message that it is the root of. GPUs outside a process group
have none. Either all entries have a `weight`, or all have `bytes` such as ``64MB``. GPUs are named
by rank, by a range of ranks, or by their name in the topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from colsynth.errors import Diagnostic, InputError, Span, is_whole
from colsynth.model import Topology
from colsynth.topology.document import Document, Wording, read_document
from colsynth.topology.gpu_names import GpuNames
from colsynth.topology.shape import convert
from colsynth.units import parse_size

WORDING = Wording(
    "file of shards",
    "shards: a mapping with version and shards",
    "'version: 1' and 'shards: [{gpus: [0-7], weight: 1}]' are a complete example",
    "give a YAML file with version and shards",
)

_MOST = 2**62
"""Weights that add up to more do not fit the arithmetic of the bound."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Like shards."""

    gpus: Annotated[list[int | str], Meta(min_length=1)]
    weight: Annotated[int, Meta(ge=0)] | None = None
    bytes: Annotated[int, Meta(ge=0)] | str | None = None


class _Shards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: Literal[1]
    shards: Annotated[list[_Entry], Meta(min_length=1)]


def read_shards(
    path: Path, topology: Topology, members: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return the relative size of every rank's shard, without a common divisor.

    Parameters
    ----------
    path : Path
    topology : Topology
    members : sequence of int, optional
        The ranks that take part; all unless given. Others have no shard, or an empty one.

    Returns
    -------
    tuple of int
        By rank; empty where all that take part have the same.

    Raises
    ------
    InputError
        CS101 to CS109 for a file that cannot be read, CS130 for GPUs that are not there, CS137
        for GPUs without a shard or with two, and sizes that cannot be; at their place.
    """
    return _reduced(*_sizes(*_read(path), topology, members))


def bytes_of_shards(
    path: Path, topology: Topology, members: Sequence[int] | None = None
) -> int | None:
    """Return the bytes of the message that all shards make up; None where they have weights.

    Parameters and errors are those of `read_shards`.
    """
    document, form = _read(path)
    if form.shards[0].weight is not None:
        return None
    return sum(_sizes(document, form, topology, members)[0])


def _read(path: Path) -> tuple[Document, _Shards]:
    document = read_document(path, WORDING)
    return document, convert(document, _Shards)


def _sizes(
    document: Document, form: _Shards, topology: Topology, members: Sequence[int] | None
) -> tuple[list[int], Sequence[int]]:
    """Return weights or bytes by rank, and the ranks that take part."""
    names = GpuNames(document, topology)
    sizes: dict[int, int] = {}
    spans: dict[int, Span] = {}
    for place, entry in enumerate(form.shards):
        size = _size(document, form.shards[0], entry, place)
        span = document.at("shards", place, "gpus")
        for rank in names.read(entry.gpus, ("shards", place, "gpus")):
            if rank in sizes:
                raise _wrong(f"rank {rank} has two shards", span)
            sizes[rank], spans[rank] = size, span
    members = range(topology.size) if members is None else members
    missing = sorted(rank for rank in members if rank not in sizes)
    if missing:
        gpu = topology.gpu_names[missing[0]]
        phrase = f"rank {missing[0]} ({gpu}) has no shard"
        raise _wrong(phrase, document.at("shards"), "a shard of nothing has weight 0")
    if not 0 < sum(sizes.values()) < _MOST:
        phrase = "all shards are empty" if not any(sizes.values()) else "the shards are too large"
        raise _wrong(phrase, document.at("shards"))
    everybody = [sizes.get(rank, 0) for rank in range(topology.size)]
    _refuse_strangers(everybody, topology, members, spans)
    return everybody, members


def _size(document: Document, first: _Entry, entry: _Entry, place: int) -> int:
    """Return the weight or the bytes of an entry; all entries have the same of the two."""
    given = [name for name in ("weight", "bytes") if getattr(entry, name) is not None]
    wanted = "weight" if first.weight is not None else "bytes"
    span = document.at("shards", place)
    if len(given) != 1:
        phrase = "both weight and bytes" if given else "neither weight nor bytes"
        raise _wrong(f"an entry has {phrase}", span, "give one of the two")
    if given != [wanted]:
        phrase = f"this entry has {given[0]}, the first has {wanted}"
        raise _wrong(phrase, span, "give all entries the same")
    if entry.weight is not None:
        return entry.weight
    if isinstance(entry.bytes, int):
        return entry.bytes
    try:
        return parse_size(str(entry.bytes))
    except ValueError as fault:
        phrase = f"bytes cannot be {entry.bytes!r}"
        raise _wrong(phrase, document.at("shards", place, "bytes"), str(fault)) from None


def check_shards(
    sizes: Sequence[int], topology: Topology, members: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return relative sizes, given by rank, as a problem holds them; as `read_shards` otherwise.

    Raises
    ------
    InputError
        CS137: there is not one for each rank, one is negative or no whole number, all are zero,
        or a rank that takes no part has one.
    """
    for rank, size in enumerate(sizes):
        if not is_whole(size):
            phrase = f"the shard of rank {rank} has size {size!r}, which is no whole number"
            raise _wrong(
                phrase, advice="give whole numbers in the same ratio: [3, 2] for 1.5 and 1"
            )
    sizes = [int(size) for size in sizes]
    if len(sizes) != topology.size:
        raise _wrong(f"{len(sizes)} shards for the {topology.size} ranks of {topology.name}")
    if min(sizes) < 0 or not 0 < sum(sizes) < _MOST:
        raise _wrong("shards have sizes from zero, and not all are zero")
    members = range(topology.size) if members is None else members
    _refuse_strangers(sizes, topology, members, {})
    return _reduced(sizes, members)


def _refuse_strangers(
    sizes: Sequence[int],
    topology: Topology,
    members: Sequence[int],
    spans: Mapping[int, Span],
) -> None:
    for rank in sorted(set(range(topology.size)) - set(members)):
        if sizes[rank]:
            gpu = topology.gpu_names[rank]
            phrase = f"rank {rank} ({gpu}) has a shard and is not in the group"
            raise _wrong(phrase, spans.get(rank), "give it weight 0, or leave it out")


def _reduced(sizes: list[int], members: Sequence[int]) -> tuple[int, ...]:
    common = gcd(*sizes)
    shards = tuple(size // common for size in sizes)
    return () if {shards[rank] for rank in members} == {1} else shards


def _wrong(phrase: str, span: Span | None = None, advice: str | None = None) -> InputError:
    return InputError(Diagnostic("CS137", phrase, span, help=advice))
