"""Sketches in YAML.

::

    version: 1
    boxes: 2
    between-boxes:
      connections: [{from: 1, to: [0]}, {from: 3, to: [2]}]   # or all, or rails
      senders: [{gpu: 1, for: [0, 1]}, {gpu: 3, for: [2, 3]}]
      in-order: true
    inside-boxes:
      among: [[0, 1, 2, 3]]
      connections: few
    symmetries: [{turn: 2, of: 4}, {ranks: [4-7, 0-3]}]
    chunks: 2
    share: 512KiB

GPUs are named by their place in a box, from 0 on; in symmetries by rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from colsynth.model import Connections
from colsynth.sketches.draft import LISTED, Draft, Turn, contradiction, size_at
from colsynth.topology.document import Document, Path_
from colsynth.topology.groups import read_range
from colsynth.topology.shape import convert

_MOST_RANKS = 2**16
"""Of a permutation; larger machines are described by turns."""

_Gpu = Annotated[int, Meta(ge=0, le=2**20)]
_Gpus = Annotated[list[_Gpu], Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=1, le=2**20)]


class _Connection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    from_: _Gpu = msgspec.field(name="from")
    to: _Gpus


class _Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: _Gpu
    for_: _Gpus = msgspec.field(name="for")


class _Between(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    connections: Literal["all", "rails"] | Annotated[list[_Connection], Meta(min_length=1)] = "all"
    senders: list[_Sender] = []
    in_order: bool = False


class _Inside(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    among: list[_Gpus] = []
    connections: Literal["few", "many"] | None = None


class _Symmetry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    turn: int | None = None
    of: _Count | None = None
    ranks: list[int | str] | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    version: Literal[1]
    boxes: _Count | None = None
    between_boxes: _Between | None = None
    inside_boxes: _Inside = _Inside()
    symmetries: list[_Symmetry] = []
    chunks: _Count | None = None
    share: str | _Count | None = None


def draft_of(document: Document) -> Draft:
    """Return what a sketch in YAML says.

    Raises
    ------
    InputError
        CS106 to CS109 for keys and values that are not of the form, CS142 for what contradicts
        itself.
    """
    form = convert(document, _File)
    between, inside = form.between_boxes or _Between(), form.inside_boxes
    where: Path_ = ("between-boxes", "connections")
    named = between.connections
    return Draft(
        document,
        boxes=form.boxes,
        boxes_at=("boxes",),
        between=named if isinstance(named, str) else LISTED,
        pairs=tuple(
            (one.from_, receiver, (*where, i, "to", k))
            for i, one in enumerate(() if isinstance(named, str) else named)
            for k, receiver in enumerate(one.to)
        ),
        between_at=where,
        senders=tuple(
            (gpu, one.gpu, ("between-boxes", "senders", i, "for", k))
            for i, one in enumerate(between.senders)
            for k, gpu in enumerate(one.for_)
        ),
        in_order=between.in_order,
        among=tuple(
            (tuple(gpus), ("inside-boxes", "among", i)) for i, gpus in enumerate(inside.among)
        ),
        connections=None if inside.connections is None else Connections(inside.connections),
        turns=tuple(_turns(document, form)),
        chunks=form.chunks,
        share=size_at(document, form.share, "share"),
    )


def _turns(document: Document, form: _File) -> Iterator[Turn]:
    for i, one in enumerate(form.symmetries):
        path: Path_ = ("symmetries", i)
        if one.ranks is not None and one.turn is None and one.of is None:
            image: list[int] = []
            for k, word in enumerate(one.ranks):
                found = read_range(str(word))
                if found is None or found.stop > _MOST_RANKS:
                    at = document.at(*path, "ranks", k)
                    raise contradiction(f"{word!r} is no rank, and no range such as 0-7", at)
                image += found
            yield Turn(path, image=tuple(image))
        elif one.ranks is None and one.turn is not None and one.of is not None:
            yield Turn(path, one.turn, one.of)
        else:
            phrase = "a symmetry is 'turn' with 'of', or 'ranks'"
            raise contradiction(phrase, document.at(*path))
