"""A collective of one's own, from a YAML file.

::

    version: 1
    chunks:
      - {held-by: [0], wanted-by: [1, 2, 3], count: 4}
      - {held-by: [gpu0.0, 1-2], wanted-by: [3], reduces: true}

Every entry says who holds some chunks at first and who must hold them at the end. Where it
`reduces`, each holder has a contribution of its own and one GPU wants the sum. GPUs are
named by rank, by a range of ranks, or by their name in the topology.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Demand, Topology
from colsynth.topology.document import Document, Wording, read_document
from colsynth.topology.gpu_names import GpuNames
from colsynth.topology.shape import convert

MOST_CHUNKS = 2**31 - 1

WORDING = Wording(
    "custom collective",
    "a collective: a mapping with version and chunks",
    "'version: 1' and 'chunks: [{held-by: [0], wanted-by: [1]}]' are a complete example",
    "give a YAML file with version and chunks",
)

_Gpus = Annotated[list[int | str], Meta(min_length=1)]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Like chunks."""

    held_by: _Gpus
    wanted_by: _Gpus
    count: Annotated[int, Meta(ge=1)] = 1
    reduces: bool = False


class _Custom(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The whole file."""

    version: Literal[1]
    chunks: Annotated[list[_Entry], Meta(min_length=1)]


def read_custom(path: Path, topology: Topology) -> tuple[Demand, ...]:
    """Return the demands that a file describes.

    Raises
    ------
    InputError
        CS101 to CS109 for a file that cannot be read, CS130 for GPUs that are not there or
        are named twice, CS131 for entries that ask for nothing sensible; at their place.
    """
    document = read_document(path, WORDING)
    form = convert(document, _Custom)
    reader = _Reader(document, GpuNames(document, topology))
    demands = tuple(reader.demand(i, entry) for i, entry in enumerate(form.chunks))
    span = document.at("chunks")
    if sum(demand.count for demand in demands) > MOST_CHUNKS:
        raise InputError(Diagnostic("CS125", f"more than {MOST_CHUNKS} chunks", span))
    if not any(_moves(demand) for demand in demands):
        raise _senseless("nothing has to move: who wants a chunk holds it already", span)
    return demands


def _moves(demand: Demand) -> bool:
    return demand.reduces or not set(demand.wanted) <= set(demand.holders)


class _Reader:
    """Reads the entries of one file."""

    def __init__(self, document: Document, gpus: GpuNames) -> None:
        self.document = document
        self.gpus = gpus

    def demand(self, place: int, entry: _Entry) -> Demand:
        """Return what one entry asks for."""
        at = self.document.at
        holders = self.gpus.read(entry.held_by, ("chunks", place, "held-by"))
        wanted = self.gpus.read(entry.wanted_by, ("chunks", place, "wanted-by"))
        if entry.reduces and len(wanted) > 1:
            phrase = f"a sum is wanted by one GPU, not by {len(wanted)}"
            advice = "sums for several GPUs are -c allreduce, with --group for some of them"
            raise _senseless(phrase, at("chunks", place, "wanted-by"), advice)
        if entry.reduces and len(holders) == 1:
            phrase = "a sum needs two contributions or more"
            span = at("chunks", place, "held-by")
            raise _senseless(phrase, span, "leave 'reduces' out to copy")
        return Demand(holders, wanted, entry.count, entry.reduces)


def _senseless(phrase: str, span: Span, advice: str | None = None) -> InputError:
    return InputError(Diagnostic("CS131", phrase, span, help=advice))
