"""What a sketch file says, before a topology is known: GPUs by their place in a box."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Connections
from colsynth.topology.document import Document, Path_, Wording
from colsynth.units import parse_size

WORDING = Wording(
    "sketch",
    "a sketch: a mapping with version, or a sketch of TACCL with nnodes",
    "`colsynth sketch suggest dgx2 --nodes 2 --pick relays` prints a complete example",
    "give a YAML file, or a JSON sketch of TACCL",
)

ALL, RAILS, LISTED = "all", "rails", "listed"
"""Connections between boxes: any GPU to any, each to the one in its place, or listed pairs."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A symmetry: a permutation of the ranks, or blocks of `size` ranks turned by `offset`."""

    at: Path_
    offset: int = 0
    size: int = 0
    image: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A sketch in places of GPUs within a box; paths say where in the file each of them stands.

    Parameters
    ----------
    document : Document
    boxes : int or None
    boxes_at : Path_
    between : str or None
        `ALL`, `RAILS`, or `LISTED`.
    pairs : tuple of (int, int, Path_)
        (sender, receiver, path), where listed.
    between_at : Path_
    senders : tuple of (int, int, Path_)
        (GPU, sender through which its chunks leave the box, path).
    relay : (int, int) or None
        (r, p) instead of `senders`: in blocks of r GPUs, all leave through the one at place p.
    in_order : bool
    among : tuple of (tuple of int, Path_)
        GPUs of a box that may send to each other.
    connections : Connections or None
    turns : tuple of Turn
    chunks, share : int or None
    notes : tuple of str
        What of the file is not used.
    """

    document: Document
    boxes: int | None = None
    boxes_at: Path_ = ()
    between: str | None = None
    pairs: tuple[tuple[int, int, Path_], ...] = ()
    between_at: Path_ = ()
    senders: tuple[tuple[int, int, Path_], ...] = ()
    relay: tuple[int, int] | None = None
    in_order: bool = False
    among: tuple[tuple[tuple[int, ...], Path_], ...] = ()
    connections: Connections | None = None
    turns: tuple[Turn, ...] = ()
    chunks: int | None = None
    share: int | None = None
    notes: tuple[str, ...] = ()


def contradiction(
    phrase: str, at: Span | None, *notes: str, code: str = "CS142", advice: str | None = None
) -> InputError:
    """Return the refusal of a sketch that contradicts itself (CS142), or of another kind."""
    return InputError(Diagnostic(code, phrase, at, notes, advice))


def size_at(document: Document, value: str | int | None, *path: str) -> int | None:
    """Return the bytes that a field gives; refuse what is no size (CS142)."""
    if value is None or isinstance(value, int):
        return value
    try:
        return parse_size(value)
    except ValueError as fault:
        phrase = f"{path[-1]} cannot be {value[:40]!r}"
        raise contradiction(phrase, document.at(*path), str(fault)) from None
