"""JSON sketches of TACCL, as they were published (microsoft/taccl, MIT; arXiv 2111.04867).

Its own reader ignores keys that it does not know, so ours notes them and goes on. GPUs are named
by their place in a node. `chunk_to_relay_map` and `input_size` are of the paper alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from colsynth.model import Connections
from colsynth.sketches.draft import ALL, LISTED, RAILS, Draft, Turn, contradiction, size_at
from colsynth.topology.document import Document, Path_
from colsynth.topology.shape import convert

_Gpu = Annotated[int, Meta(ge=0, le=2**20)]
_Count = Annotated[int, Meta(ge=1, le=2**20)]
_Pair = Annotated[list[int], Meta(min_length=2, max_length=2)]

_CONNECTIONS = {"uc-min": Connections.FEW, "uc-max": Connections.MANY}
_BETWEEN = {"fully-connected": ALL, "direct-map": RAILS}


class _Inside(msgspec.Struct, frozen=True):
    strategy: Literal["none", "switch", "minmax", "maxmin"]
    switches: list[Annotated[list[_Gpu], Meta(min_length=1)]] = []
    switch_hyperedge_strategy: list[str] = []


class _Between(msgspec.Struct, frozen=True):
    internode_conn: Literal["fully-connected", "direct-map"] | dict[str, list[_Gpu]]
    strategy: Literal["relay"] = "relay"
    gpus_to_sender_rev_map: dict[str, list[_Gpu]] | None = None
    enforce_ordering: bool = False
    beta_split: dict[str, Any] | None = None
    chunk_to_relay_map: _Pair | None = None


class _Numbers(msgspec.Struct, frozen=True):
    input_chunkup: _Count = 1
    input_size: str | _Count | None = None


class _File(msgspec.Struct, frozen=True):
    nnodes: _Count
    intranode_sketch: _Inside
    symmetry_offsets: list[_Pair]
    hyperparameters: _Numbers
    internode_sketch: _Between | None = None


KEYS = set(_File.__struct_fields__)
"""By which a file is known."""

_UNUSED = {
    "beta_split": "NICs are shared by all that use them, not divided in advance",
    "minmax": "the matcher balances the load of links by itself",
    "maxmin": "the matcher balances the load of links by itself",
}


def draft_of(document: Document) -> Draft:
    """Return what a sketch of TACCL says.

    Raises
    ------
    InputError
        CS107 and CS108 for keys that are missing and values of the wrong kind, CS142 for what
        contradicts itself.
    """
    form = convert(document, _File)
    inside, between = form.intranode_sketch, form.internode_sketch
    if form.nnodes == 1:
        between = None  # TACCL does not look at it either
    elif between is None:
        at = document.at("nnodes")
        raise contradiction("nothing says how boxes are joined: no internode_sketch", at)
    where: Path_ = ("internode_sketch", "internode_conn")
    first = next(iter(inside.switch_hyperedge_strategy), "")
    return Draft(
        document,
        boxes=form.nnodes,
        boxes_at=("nnodes",),
        between=None if between is None else _BETWEEN.get(str(between.internode_conn), LISTED),
        pairs=tuple(_pairs(document, between, where)),
        between_at=where,
        senders=() if between is None else tuple(_senders(document, between)),
        relay=_relay(document, between),
        in_order=between is not None and between.enforce_ordering,
        among=_switches(document, inside),
        connections=_CONNECTIONS.get(first) if inside.strategy == "switch" else None,
        turns=tuple(
            Turn(("symmetry_offsets", i), offset, size)
            for i, (offset, size) in enumerate(form.symmetry_offsets)
        ),
        chunks=form.hyperparameters.input_chunkup,
        share=size_at(document, form.hyperparameters.input_size, "hyperparameters", "input_size"),
        notes=tuple(_notes(document, form)),
    )


def _pairs(
    document: Document, between: _Between | None, where: Path_
) -> Iterator[tuple[int, int, Path_]]:
    """Yield (sender, receiver, path) of connections that are listed."""
    if between is None or isinstance(between.internode_conn, str):
        return
    for sender, receivers in between.internode_conn.items():
        for i, receiver in enumerate(receivers):
            yield _place(document, sender, (*where, sender)), receiver, (*where, sender, i)


def _senders(document: Document, between: _Between) -> Iterator[tuple[int, int, Path_]]:
    """Yield (GPU, sender, path) of the map from senders to GPUs."""
    if between.gpus_to_sender_rev_map is None:
        return
    where: Path_ = ("internode_sketch", "gpus_to_sender_rev_map")
    for sender, gpus in between.gpus_to_sender_rev_map.items():
        for i, gpu in enumerate(gpus):
            yield gpu, _place(document, sender, (*where, sender)), (*where, sender, i)


def _relay(document: Document, between: _Between | None) -> tuple[int, int] | None:
    """Return the rule of the paper that stands for a map; refuse both together."""
    if between is None or between.chunk_to_relay_map is None:
        return None
    at = document.key("internode_sketch", "chunk_to_relay_map")
    if between.gpus_to_sender_rev_map is not None:
        raise contradiction("two maps say through which GPU chunks leave a box", at)
    block, place = between.chunk_to_relay_map
    if not 0 <= place < block:
        raise contradiction(f"there is no GPU {place} in a block of {block}", at)
    return block, place


def _place(document: Document, key: str, path: Path_) -> int:
    """Return the GPU that a key names."""
    if key.isascii() and key.isdigit() and len(key) < 7:
        return int(key)
    raise contradiction(f"{key[:40]!r} is no GPU", document.key(*path))


def _switches(document: Document, inside: _Inside) -> tuple[tuple[tuple[int, ...], Path_], ...]:
    if inside.strategy != "switch":
        return ()
    where: Path_ = ("intranode_sketch", "switches")
    lists = [set(gpus) for gpus in inside.switches]
    if not lists:
        raise contradiction("strategy 'switch' needs switches", document.at("intranode_sketch"))
    for i, one in enumerate(lists):
        for other in lists[:i]:
            if one != other and (both := sorted(one & other)):
                note = "the lists of two switches hold the same GPUs, or none in common"
                phrase = f"GPU {both[0]} is on two switches with different GPUs"
                raise contradiction(phrase, document.at(*where, i), note)
    return tuple((tuple(gpus), (*where, i)) for i, gpus in enumerate(inside.switches))


def _notes(document: Document, form: _File) -> Iterator[str]:
    known: dict[Path_, type[msgspec.Struct]] = {
        (): _File,
        ("intranode_sketch",): _Inside,
        ("internode_sketch",): _Between,
        ("hyperparameters",): _Numbers,
    }
    for path in document.keys:
        kind = known.get(path[:-1])
        if kind is not None and path[-1] not in kind.__struct_fields__:
            yield f"{document.key(*path)}: {path[-1]} is no key of TACCL's, and not used"
    between = form.internode_sketch
    if between is not None and between.beta_split is not None:
        yield f"beta_split is not used: {_UNUSED['beta_split']}"
    if form.intranode_sketch.strategy in _UNUSED:
        word = form.intranode_sketch.strategy
        yield f"strategy {word} counts as none: {_UNUSED[word]}"
