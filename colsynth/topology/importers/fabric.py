"""What files of a fabric say: switches, cables between them, and the ports of hosts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.errors import Diagnostic, Span


@dataclass(frozen=True, slots=True)
class Cable:
    """Parallel cables between two switches, by index; `rate` is that of one, None if not told."""

    source: int
    target: int
    count: int
    rate: Fraction | None


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a host on a switch; without a label, it stands for all NICs of the host."""

    label: str
    switch: int
    rate: Fraction | None = None
    at: Span | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host and its ports, in the order of their labels."""

    name: str
    at: Span
    ports: tuple[HostPort, ...]


@dataclass(frozen=True, slots=True)
class Fabric:
    """A fabric.

    Parameters
    ----------
    file : str
    switches : tuple of str
    cables : tuple of Cable
    hosts : tuple of Host
    domains : tuple of tuple of str
        Hosts that share an NVLink domain; empty where the file tells of none.
    warnings : tuple of Diagnostic
    """

    file: str
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    hosts: tuple[Host, ...]
    domains: tuple[tuple[str, ...], ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
