"""What importers of a machine's own files return: one node, and what is odd about its file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from colsynth.errors import Diagnostic, InputError, Span

SWITCHED = -1
"""The target of a bond that ends in the NVSwitches: all of them count as one switch."""

NUMBERED = re.compile(r"GPU[0-9]+")
"""What tools call a GPU by its number, which is not its rank where another GPU is hidden."""

MOST_DEVICES = 512
"""GPUs, and NICs, of one file; the largest NVLink domains hold 144 GPUs."""


@dataclass(frozen=True, slots=True)
class Pcie:
    """A PCIe link: GT/s of a lane, and lanes."""

    speed: Fraction
    width: int

    @property
    def raw(self) -> Fraction:
        """GT/s of all lanes."""
        return self.speed * self.width


@dataclass(frozen=True, slots=True)
class Hub:
    """An inner node of the PCIe tree.

    Parameters
    ----------
    name : str
        Its bus id, or the NUMA node.
    kind : str
        ``"root"`` (a CPU with its host bridges) or ``"switch"``; or what tells what is near and
        limits nothing: ``"emulated"``, a switch, and ``"host"``, a host bridge.
    parent : int
        Index of the hub above it; -1 for roots.
    uplink : Pcie or None
        None where the file does not say.
    at : Span
    cpu : str
        Of a root: key of the table of links between sockets.
    flat : bool
        Whether it is a part of the hub above: the same switch.
    """

    name: str
    kind: str
    parent: int
    uplink: Pcie | None
    at: Span
    cpu: str = ""
    flat: bool = False


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its name in the file, the hub above it (-1: none), and the key of its generation."""

    name: str
    at: Span
    hub: int = -1
    pcie: Pcie | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Nic:
    """A port of a NIC.

    Parameters
    ----------
    name : str
    at : Span
    hub : int
        Index of the hub above it; -1: none.
    pcie : Pcie or None
    rate : Fraction or None
        Bytes per second; None where the file does not say.
    virtual : bool
        Whether it is no device of its own, such as a bridge or a socket interface.
    plane : int or None
        The rail or plane that the file names.
    bus : str
        Its PCI bus id, where the file has one; that of a GPU is its name.
    """

    name: str
    at: Span
    hub: int = -1
    pcie: Pcie | None = None
    rate: Fraction | None = None
    virtual: bool = False
    plane: int | None = None
    bus: str = ""


@dataclass(frozen=True, slots=True)
class Bond:
    """Parallel links from one GPU to another, or to the NVSwitches; one direction."""

    source: int
    target: int
    count: int
    at: Span


@dataclass(frozen=True, slots=True)
class Machine:
    """One node, as a file describes it.

    Parameters
    ----------
    format : str
        Such as ``"NCCL topology dump"``.
    file : str
    gpus : tuple of Gpu
        In the order of the ranks.
    nics : tuple of Nic
    hubs : tuple of Hub
        Parents come before their children.
    bonds : tuple of Bond
    medium : str
        ``"nvlink"`` or ``"xgmi"``.
    warnings : tuple of Diagnostic
        What is odd in the file; codes begin with W.
    """

    format: str
    file: str
    gpus: tuple[Gpu, ...]
    nics: tuple[Nic, ...] = ()
    hubs: tuple[Hub, ...] = ()
    bonds: tuple[Bond, ...] = ()
    medium: str = "nvlink"
    warnings: tuple[Diagnostic, ...] = ()

    def links_of(self) -> Counter[int]:
        """Return the number of links that each GPU lists."""
        totals = Counter[int]()
        for bond in self.bonds:
            totals[bond.source] += bond.count
        return totals

    def path(self, hub: int) -> list[int]:
        """Return the hubs from one up to its root."""
        found = []
        while hub >= 0:
            found.append(hub)
            hub = self.hubs[hub].parent
        return found


@dataclass(frozen=True, slots=True)
class Source:
    """A text to import, and what diagnostics call it."""

    file: str
    text: str

    def span(self, line: int, column: int | None = 1) -> Span:
        """Return a place in it."""
        return Span(self.file, line, column)

    def find(self, word: str, line: int = 1) -> Span:
        """Return the first place of a word from a line on, else the line."""
        for number, text in enumerate(self.text.split("\n")[line - 1 :], line):
            if word in text:
                return self.span(number, text.index(word) + 1)
        return self.span(line)


def refusal(
    phrase: str, at: Span, *notes: str, code: str = "CS152", advice: str | None = None
) -> InputError:
    """Return the error for what cannot be understood, at its place."""
    return InputError(Diagnostic(code, phrase, at, notes, advice))


def limited(devices: Sequence[object], what: str, at: Span) -> None:
    """Refuse more GPUs or NICs than any machine has (CS125)."""
    if len(devices) > MOST_DEVICES:
        raise refusal(f"more than {MOST_DEVICES} {what}", at, code="CS125")
