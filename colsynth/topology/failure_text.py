"""Failures as the command line spells them: names of nodes, links as ``A-B`` or ``A->B``.

A node is called by its name, a GPU also by its rank in the healthy topology; a name that looks
like a rank is the name. ``A-B`` means both directions of a link (those there are), ``A->B`` the
one from A to B. Names may hold ``-`` themselves: of all ways to read a text, the one whose ends
are joined by a link is meant, and a text with two such readings is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.model import Kind, Topology
from colsynth.text import listed
from colsynth.topology.damage import Ends, Failures
from colsynth.units import parse_percent

_ARROWS = re.compile("->|-")
_RANK = re.compile("[0-9]{1,9}")
_ROOM = 100
"""Characters that the text of a link may have beyond two names: an arrow, blanks, ranks."""
_WORDS = {Kind.GPU: "a GPU", Kind.NIC: "a NIC", Kind.SWITCH: "a switch"}
_OPTIONS = {Kind.GPU: "--drop-gpu", Kind.NIC: "--drop-nic"}


def read_failures(
    topology: Topology,
    *,
    links: Sequence[str] = (),
    gpus: Sequence[str] = (),
    nics: Sequence[str] = (),
    degraded: Sequence[str] = (),
) -> Failures:
    """Return the failures that texts name.

    Parameters
    ----------
    topology : Topology
        The healthy one.
    links : sequence of str
        ``"A-B"`` or ``"A->B"``.
    gpus : sequence of str
        Names or ranks.
    nics : sequence of str
    degraded : sequence of str
        A link and the share of its bandwidth that is left: ``"A-B=50%"``.

    Raises
    ------
    InputError
        CS132: there is no such node or link. CS133: a text can mean several links. CS134: a
        percentage is none, or not within 0 and 100. CS135: a link is degraded twice.
    """
    reader = _Reader(topology)
    shares: dict[Ends, Fraction] = {}
    for text in degraded:
        found, share = _degraded(reader, text)
        for ends in found:
            if ends in shares:
                raise _error("CS135", f"{text!r} names a link a second time", "--degrade")
            shares[ends] = share
    return Failures(
        gpus=_ordered(reader.node(text, Kind.GPU) for text in gpus),
        nics=_ordered(reader.node(text, Kind.NIC) for text in nics),
        links=tuple(sorted({x for text in links for x in reader.link(text, "--drop-link")})),
        degraded=tuple(sorted(shares.items())),
    )


def _ordered(nodes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(nodes)))


def _degraded(reader: _Reader, text: str) -> tuple[tuple[Ends, ...], Fraction]:
    """Return directed links and the share that they keep."""
    link, sign, amount = text.rpartition("=")
    if not sign:
        phrase = f"{text!r} does not say what is left of the link"
        raise _error("CS134", phrase, "--degrade", help_="write A-B=50%")
    try:
        share = parse_percent(amount)
    except ValueError as fault:
        phrase = f"{amount.strip()!r} is no percentage"
        raise _error("CS134", phrase, "--degrade", (str(fault),)) from None
    if not 0 < share <= 1:
        phrase = f"a link cannot keep {amount.strip()} of its bandwidth"
        advice = f"--drop-link {link.strip()} takes all of it" if not share else None
        raise _error("CS134", phrase, "--degrade", ("expected more than 0%, at most 100%",), advice)
    return reader.link(link, "--degrade"), share


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read the name of a link."""

    source: int
    target: int
    one_way: bool


class _Reader:
    """Finds nodes and links by name."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology.whole or topology
        self.names = {node.name: i for i, node in enumerate(topology.nodes)}
        self.longest = max(map(len, self.names))

    def node(self, text: str, kind: Kind) -> int:
        """Return the node of a kind that a text names."""
        found = self._find(text)
        if found is None:
            raise self._no_node(text, kind)
        actual = self.topology.nodes[found].kind
        if actual is not kind:
            phrase = f"{text.strip()!r} is {_WORDS[actual]}, not {_WORDS[kind]}"
            other = _OPTIONS.get(actual)
            advice = None if other is None else f"{other} {text.strip()} drops it"
            raise _error("CS132", phrase, _OPTIONS[kind], help_=advice)
        return found

    def link(self, text: str, option: str) -> tuple[Ends, ...]:
        """Return the directed links that a text names."""
        readings = tuple(self._readings(text))
        joined = {reading: ends for reading in readings if (ends := self._links(reading))}
        if not joined:
            raise self._no_link(text, readings, option)
        if len(joined) > 1:
            notes = tuple(f"it may mean {self._spelt(reading)}" for reading in joined)
            advice = "write A->B, and B->A for the other direction"
            raise _error("CS133", f"{text!r} can mean several links", option, notes, advice)
        return next(iter(joined.values()))

    def _find(self, text: str) -> int | None:
        """Return the node of a name, else the GPU of a rank, else None."""
        word = text.strip()
        if word in self.names:
            return self.names[word]
        rank = int(word) if _RANK.fullmatch(word) else self.topology.size
        return self.topology.ranks[rank] if rank < self.topology.size else None

    def _readings(self, text: str) -> Iterator[_Reading]:
        """Yield every way to cut a text into the names of two nodes."""
        if len(text) > 2 * self.longest + _ROOM:
            return
        cuts = {(cut.start(), cut.end()) for cut in _ARROWS.finditer(text)}
        # A "-" before ">" may end a name that is followed by one that begins with ">".
        cuts |= {(start, start + 1) for start, _ in cuts}
        for start, end in sorted(cuts):
            ends = self._find(text[:start]), self._find(text[end:])
            if ends[0] is not None and ends[1] is not None:
                yield _Reading(ends[0], ends[1], end - start == 2)

    def _links(self, reading: _Reading) -> tuple[Ends, ...]:
        way = (reading.source, reading.target)
        ways = (way,) if reading.one_way else (way, way[::-1])
        return tuple(x for x in ways if x in self.topology.link_between)

    def _spelt(self, reading: _Reading) -> str:
        ends = (repr(self.topology.nodes[i].name) for i in (reading.source, reading.target))
        return (" -> " if reading.one_way else " and ").join(ends)

    def _no_node(self, text: str, kind: Kind) -> InputError:
        topology = self.topology
        names = [node.name for node in topology.nodes if node.kind is kind]
        word = _WORDS[kind].rpartition(" ")[2]
        if not names:
            return _error("CS132", f"{topology.name} has no {word}s", _OPTIONS[kind])
        notes = (f"ranks are 0 to {topology.size - 1}",) if kind is Kind.GPU else ()
        advice = did_you_mean(text.strip(), names)
        phrase = f"{topology.name} has no {word} {text.strip()!r}"
        return _error("CS132", phrase, _OPTIONS[kind], notes, advice)

    def _no_link(self, text: str, readings: Sequence[_Reading], option: str) -> InputError:
        phrase = f"{self.topology.name} has no link {text.strip()!r}"
        if readings:
            return _error("CS132", phrase, option, tuple(map(self._around, readings)))
        known = (self.topology.link_name(i) for i in range(len(self.topology.links)))
        arrow = "->" if "->" in text else "-"
        advice = did_you_mean(text.strip(), [name.replace(" -> ", arrow) for name in known])
        notes = ("a link is called by its ends: A-B, or A->B for one direction",)
        return _error("CS132", phrase, option, notes, advice)

    def _around(self, reading: _Reading) -> str:
        """Return who a node is linked to."""
        nodes = self.topology.nodes
        links = (link for link in self.topology.links if link.source == reading.source)
        names = [nodes[link.target].name for link in links]
        linked = f"linked to {listed(names)}" if names else "linked to nothing"
        return f"{nodes[reading.source].name} is {linked}"


def _error(
    code: str,
    phrase: str,
    option: str,
    notes: tuple[str, ...] = (),
    help_: str | None = None,
) -> InputError:
    return InputError(Diagnostic(code, phrase, Span(option), notes, help_))
