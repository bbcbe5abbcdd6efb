"""``ibnetdiscover``: switches, cables and host ports of an InfiniBand subnet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from colsynth.errors import Diagnostic, Span
from colsynth.topology.importers.doubts import warning
from colsynth.topology.importers.fabric import Cable, Fabric, Host, HostPort
from colsynth.topology.importers.hostlist import MOST_HOSTS
from colsynth.topology.importers.machine import Source, refusal

_SWITCH = re.compile(r'Switch\s+([0-9]+)\s+"(S-[0-9a-fA-F]+)"\s*#\s*"([^"]*)"')
_CA = re.compile(r'Ca\s+([0-9]+)\s+"(H-[0-9a-fA-F]+)"\s*#\s*"([^"]*)"')
_IMAGE = re.compile(r"sysimgguid=(0x[0-9a-fA-F]+)")
_PORT = re.compile(
    r'\[([0-9]+)\](?:\([0-9a-fA-F]+\))?\s*"([SH]-[0-9a-fA-F]+)"\[([0-9]+)\](?:\([0-9a-fA-F]+\))?'
    r'(?:\s*#\s*"([^"]*)")?(.*)'
)
_SPEED = re.compile(r"\b([0-9]{1,2})x([A-Z]+[0-9]*)\b")
_LANES = {
    "SDR": Fraction(5, 2), "DDR": Fraction(5), "QDR": Fraction(10), "FDR10": Fraction(103, 10),
    "FDR": Fraction(14), "EDR": Fraction(25), "HDR": Fraction(50), "NDR": Fraction(100),
    "XDR": Fraction(200),
}  # fmt: skip
"""Gb/s of a lane."""

_SHARP = "Aggregation Node"
"""What the reduction engines of switches are called; they are no hosts."""

_UNNAMED = re.compile(r"MT[0-9]+|.*Mellanox Technologies|ConnectX.*|[0-9a-fx-]*$")


@dataclass
class _Net:
    source: Source
    switches: dict[str, str] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    cables: dict[tuple[str, str], Counter[Fraction]] = field(default_factory=dict)
    ports: dict[str, list[tuple[str, Fraction]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    ends: dict[tuple[str, str], tuple[str, str, Span]] = field(default_factory=dict)
    """By block and port: the block and port at the other end of the cable, and the line."""

    def called(self, guid: str) -> str:
        """Return what the file calls a switch or an adapter."""
        return self.switches.get(guid) or self.names.get(guid) or guid


def sniff(text: str) -> bool:
    """Whether a text has blocks of switches or adapters."""
    lines = text[:1_000_000].split("\n")
    return any(_SWITCH.match(line) or _CA.match(line) for line in lines)


def parse(source: Source) -> Fabric:
    """Return the switches, and the hosts with their adapters.

    Raises
    ------
    InputError
        CS152: a port has no known speed, or leads to a switch that is not described.
    """
    net = _Net(source)
    block, image = "", ""
    for number, line in enumerate(source.text.split("\n"), 1):
        if found := _IMAGE.match(line):
            image = found[1]
        elif found := _SWITCH.match(line) or _CA.match(line):
            block = found[2]
            net.places[block] = source.span(number)
            if block.startswith("S-"):
                net.switches[block] = found[3]
            else:
                net.names[block] = found[3]
                net.images[block] = image
        elif not line.strip():
            block = ""
        elif block and (found := _PORT.match(line)):
            _end(net, block, found, number)
            if block.startswith("S-"):
                _port(net, block, found, number)
        elif line.startswith("[") and block.startswith("S-"):
            raise refusal("this port cannot be read", source.span(number))
    return _fabric(net)


def _end(net: _Net, block: str, found: re.Match[str], number: int) -> None:
    """Note where the cable in a port leads; refuse a second one in it."""
    key, at = (block, found[1]), net.source.span(number)
    _, _, first = net.ends.setdefault(key, (found[2], found[3], at))
    if first != at:
        phrase = f"port {found[1]} of {net.called(block)} is there twice"
        raise refusal(phrase, at, f"the first is at line {first.line}")


def _torn(net: _Net) -> Iterator[Diagnostic]:
    """Name cables whose two ends lead to different places."""
    for (block, port), (peer, far, at) in net.ends.items():
        back = net.ends.get((peer, far), (block, port, at))
        if back[:2] != (block, port):
            phrase = f"port {port} of {net.called(block)} leads to port {far} of {net.called(peer)}"
            other = f"but that one to port {back[1]} of {net.called(back[0])} (line {back[2].line})"
            note = "the lines of the switches count"
            yield warning("W13", f"{phrase}, {other}", at, note)


def _port(net: _Net, switch: str, found: re.Match[str], number: int) -> None:
    peer, name = found[2], found[4] or ""
    if _SHARP in name:
        return
    speed = _SPEED.search(found[5] or "")
    if speed is None or speed[2] not in _LANES or not int(speed[1]):
        at = net.source.span(number, found.start(5) + 1)
        raise refusal("the port has no known speed", at, "expected one such as 4xNDR")
    rate = _LANES[speed[2]] * int(speed[1]) * 10**9 / 8
    if peer.startswith("S-"):
        net.cables.setdefault((switch, peer), Counter())[rate] += 1
        net.places.setdefault(f"{switch} {peer}", net.source.span(number))
        return
    net.ports.setdefault(peer, []).append((switch, rate))
    net.names.setdefault(peer, name)
    net.places.setdefault(peer, net.source.span(number))


def _fabric(net: _Net) -> Fabric:
    index = {guid: i for i, guid in enumerate(net.switches)}
    cables, odd = [], []
    for (one, other), ports in net.cables.items():
        back = net.cables.get((other, one), Counter())
        if other not in index or one == other or ((other, one) in net.cables and one > other):
            continue  # the file is an excerpt, or the other end is told
        at = net.places[f"{one} {other}"]
        listed = max(ports, back, key=Counter.total)
        if ports.total() == back.total() and ports != back:
            listed = min(ports, back, key=lambda ends: sum(r * n for r, n in ends.items()))
            phrase = f"the cables of {net.switches[one]} and {net.switches[other]} have two speeds"
            note = "one end reports another than the other; the slower counts"
            odd.append(warning("W13", phrase, at, note))
        cables += [Cable(index[one], index[other], n, rate) for rate, n in listed.items()]
    hosts, warnings = _hosts(net, index)
    if not hosts:
        raise refusal("no host is on any switch", net.source.span(1))
    switches = tuple(_labels(net.switches))
    told = (*warnings, *_torn(net), *odd)
    return Fabric(net.source.file, switches, tuple(cables), hosts, (), told)


def _labels(switches: dict[str, str]) -> list[str]:
    """Return the descriptions of switches, with their GUIDs where several have the same."""
    often = Counter(switches.values())
    return [name if often[name] == 1 else f"{name} {guid}" for guid, name in switches.items()]


def _hosts(net: _Net, index: dict[str, int]) -> tuple[tuple[Host, ...], tuple[Diagnostic, ...]]:
    """Return the hosts by name; adapters without one are together that share a system image."""
    cards: dict[str, list[tuple[str, str]]] = {}
    nameless = []
    for guid in net.ports:
        words = net.names[guid].split()
        if _SHARP in net.names[guid]:
            continue
        if words and not _UNNAMED.match(net.names[guid]):
            cards.setdefault(words[0], []).append((words[1] if len(words) > 1 else guid, guid))
        else:
            image = net.images.get(guid, guid)[: -len("00")]
            cards.setdefault(f"unnamed-{image}", []).append((guid, guid))
            nameless.append(guid)
    if len(cards) > MOST_HOSTS:
        raise refusal(f"more than {MOST_HOSTS} hosts", net.source.span(1), code="CS125")
    hosts = []
    doubts = [x for name, members in cards.items() for x in _namesakes(net, name, members)]
    for name, members in cards.items():
        ports = tuple(
            HostPort(label, index[switch], rate, net.places[guid])
            for label, guid in sorted(members, key=lambda card: _natural(card[0]))
            for switch, rate in net.ports[guid]
        )
        hosts.append(Host(name, net.places[members[0][1]], ports))
    if not nameless:
        return tuple(hosts), tuple(doubts)
    phrase = f"{len(nameless)} adapters carry no name of a host"
    note = "those of one system image are taken for one host"
    advice = "set node descriptions, and run ibnetdiscover on each subnet"
    at = net.places[nameless[0]]
    return tuple(hosts), (*doubts, warning("W24", phrase, at, note, advice=advice))


def _namesakes(net: _Net, host: str, members: list[tuple[str, str]]) -> Iterator[Diagnostic]:
    """Name adapters of a host that have the name of another one."""
    first: dict[str, str] = {}
    for label, guid in members:
        if first.setdefault(label, guid) != guid:
            phrase = f"two adapters of {host} are called {label}"
            line = net.places[first[label]].line
            note = f"the first is at line {line}; ports and NICs are paired in order"
            yield warning("W29", phrase, net.places[guid], note)


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts mlx5_10 behind mlx5_9, however long numbers are."""
    parts = re.split(r"([0-9]+)", text)
    return [
        (len(bare := part.lstrip("0")) + 1, bare) if part.isdigit() else (0, part) for part in parts
    ]
