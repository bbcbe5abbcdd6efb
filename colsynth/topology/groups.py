"""Process groups and roots: their text on the command line, and whether there are such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from colsynth.errors import Diagnostic, InputError, Span, is_whole
from colsynth.model import Topology
from colsynth.topology.builder import MAX_NODES

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")

Groups = tuple[tuple[int, ...], ...]


def read_range(text: str) -> range | None:
    """Return the ranks that ``"5"`` or ``"0-7"`` names, None where the text names none."""
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        return None
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    return range(first, last + 1) if first <= last else None


def read_groups(text: str, option: str, topology: Topology) -> Groups:
    """Return the groups of a text such as ``"0-7,16-23;8-15"``, ranks in the order given.

    Parameters
    ----------
    text : str
    option : str
        Where the text was given; ``"--group"`` takes one group.
    topology : Topology

    Raises
    ------
    InputError
        CS216, with the column of the word that is neither rank nor range, or has a rank that is
        not there or is named twice.
    """
    if option == "--group" and ";" in text:
        phrase = "--group takes one group"
        span = Span(option, 1, text.index(";") + 1)
        advice = "several are for --groups, of bound, compile and synthesize"
        raise InputError(Diagnostic("CS216", phrase, span, help=advice))
    groups: list[tuple[int, ...]] = []
    seen: set[int] = set()
    column = 1
    for part in text.split(";"):
        ranks: list[int] = []
        for word in part.split(","):
            span = Span(option, 1, column + len(word) - len(word.lstrip()))
            for rank in _ranks(word, span):
                _count(rank, seen, topology, span)
                ranks.append(rank)
            column += len(word) + 1
        groups.append(tuple(ranks))
    return tuple(groups)


def read_roots(text: str) -> tuple[int, ...]:
    """Return the ranks of a text such as ``"0,8"`` or ``"0-3"``, in the order given.

    Raises
    ------
    InputError
        CS211, with the column of the word that is neither rank nor range.
    """
    ranks: list[int] = []
    column = 1
    for word in text.split(","):
        found = read_range(word)
        if found is None or len(ranks) + len(found) > MAX_NODES:
            span = Span("--root", 1, column + len(word) - len(word.lstrip()))
            named = f"{word.strip()!r} is no rank" if word.strip() else "expected a rank"
            if found is not None:
                named = f"more than {MAX_NODES} ranks"
            raise InputError(Diagnostic("CS211", named, span, help="write ranks as 3 or 0,8"))
        ranks += found
        column += len(word) + 1
    return tuple(ranks)


def _ranks(word: str, span: Span) -> range:
    found = read_range(word)
    if found is None:
        wrong = f"{word.strip()!r} is no rank and no range of ranks"
        phrase = wrong if word.strip() else "expected a rank or a range of ranks"
        advice = "write ranks and ranges with commas, groups with ';': 0-7,16-23;8-15,24-31"
        raise InputError(Diagnostic("CS216", phrase, span, help=advice))
    if len(found) > MAX_NODES:
        raise InputError(
            Diagnostic("CS216", f"{word.strip()} is more than {MAX_NODES} ranks", span)
        )
    return found


def check_groups(groups: Sequence[Sequence[int]], topology: Topology) -> Groups:
    """Return groups as a problem holds them: empty where one group has all ranks in order.

    Raises
    ------
    InputError
        CS216: a group is no sequence of whole numbers, a rank is not there or is named twice, a
        group has one rank, or sizes differ.
    """
    groups = [_ranks_of(group) for group in groups]
    seen: set[int] = set()
    for group in groups:
        for rank in group:
            _count(rank, seen, topology)
    sizes = [len(group) for group in groups]
    if not sizes or min(sizes) < 2:
        raise _wrong("a group needs two ranks or more")
    if len(set(sizes)) > 1:
        other = next(i for i, size in enumerate(sizes) if size != sizes[0])
        raise InputError(
            Diagnostic(
                "CS216",
                f"group 1 has {sizes[0]} ranks, group {other + 1} has {sizes[other]}",
                notes=("all chunks are of one size, so groups at the same time are too",),
                help="give groups of equal size, or synthesize one --group after the other",
            )
        )
    whole = tuple(map(tuple, groups))
    return () if whole == (tuple(range(topology.size)),) else whole


def _ranks_of(group: object) -> list[int]:
    """Return the ranks of a group that was given in Python."""
    advice = "a group is a sequence of ranks, several are a sequence of groups: [[0, 1], [2, 3]]"
    if not isinstance(group, Iterable) or isinstance(group, str):
        raise InputError(Diagnostic("CS216", f"{group!r} is no group", help=advice))
    ranks = []
    for rank in group:
        if not is_whole(rank):
            raise InputError(Diagnostic("CS216", f"{rank!r} is no rank", help=advice))
        ranks.append(int(rank))
    return ranks


def _count(rank: int, seen: set[int], topology: Topology, span: Span | None = None) -> None:
    """Take a rank down as seen; refuse one that is not there, or is there already."""
    if not 0 <= rank < topology.size:
        note = f"ranks of {topology.name} are 0 to {topology.size - 1}"
        raise _wrong(f"there is no rank {rank}", note, span=span)
    if rank in seen:
        phrase = f"rank {rank} is named twice"
        raise _wrong(phrase, "a rank is in one group at most, and once", span=span)
    seen.add(rank)


def _wrong(phrase: str, *notes: str, span: Span | None = None) -> InputError:
    return InputError(Diagnostic("CS216", phrase, span, notes))
