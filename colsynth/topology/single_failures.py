"""Every failure of one link, one GPU or one NIC of a topology."""

from __future__ import annotations

import re

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.model import Kind, Topology
from colsynth.topology.damage import Failures
from colsynth.topology.trunks import separate_links

KINDS = ("links", "gpus", "nics")

_WORD = re.compile(r"\s*([a-z]+)\s*(?::\s*([0-9]{1,9})\s*)?")
_OPTION = "--failures"


def read_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of ``"links:1"`` or ``"links:1,nics:1"``, in the order of `KINDS`.

    Raises
    ------
    InputError
        CS136: the text names another kind, or more than one failure at a time.
    """
    found = {_kind(word) for word in text.split(",")}
    return tuple(kind for kind in KINDS if kind in found)


def _kind(word: str) -> str:
    match = _WORD.fullmatch(word)
    if match is None or match[1] not in KINDS:
        phrase = f"there are no failures {word.strip()!r}"
        name = word.partition(":")[0].strip()
        advice = did_you_mean(f"{name}:1", [f"{kind}:1" for kind in KINDS])
        raise InputError(Diagnostic("CS136", phrase, Span(_OPTION), help=advice))
    if int(match[2] or 1) != 1:
        phrase = f"{word.strip()} is not one failure at a time"
        advice = f"write {match[1]}:1; --drop-link and the like break more beforehand"
        raise InputError(Diagnostic("CS136", phrase, Span(_OPTION), help=advice))
    return match[1]


def single_failures(topology: Topology, kind: str) -> tuple[Failures, ...]:
    """Return every failure of a kind, in the order of nodes; a link fails in both directions.

    Raises
    ------
    InputError
        CS136: the topology has nothing of the kind.
    """
    found = tuple(_failures(topology, kind))
    if not found:
        phrase = f"{topology.name} has no {kind} that could fail"
        raise InputError(Diagnostic("CS136", phrase, Span(_OPTION)))
    return found


def _failures(topology: Topology, kind: str) -> list[Failures]:
    if kind == "gpus":
        return [Failures(gpus=(node,)) for node in topology.ranks]
    if kind == "nics":
        nics = (i for i, node in enumerate(topology.nodes) if node.kind is Kind.NIC)
        return [Failures(nics=(node,)) for node in nics]
    there = separate_links(topology)
    pairs = sorted({(min(ends), max(ends)) for ends in there})
    both = (tuple(sorted(x for x in (pair, pair[::-1]) if x in there)) for pair in pairs)
    return [Failures(links=links) for links in both]
