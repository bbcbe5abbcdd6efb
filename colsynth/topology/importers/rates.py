"""Bandwidths by generation (``rates.yaml``): what no file of a machine says about its links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.runtimes.data import read_data
from colsynth.topology.importers.machine import Pcie
from colsynth.units import parse_bandwidth, parse_duration

BASES = ("spec", "library", "measured")
"""What ``--link-bandwidth`` takes."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its source.

    Parameters
    ----------
    value : Fraction
        Bytes per second, or seconds.
    source : str
        In words, for a comment.
    """

    value: Fraction
    source: str


@cache
def table() -> dict[str, Any]:
    """Return all of ``rates.yaml``."""
    found: dict[str, Any] = read_data("topology", "importers", "rates.yaml")
    return found


def generation(model: str) -> str:
    """Return the key of the table for a GPU: its generation; empty where none is known.

    Parameters
    ----------
    model : str
        ``"sm103"``, ``"gfx942:sramecc+"``, or the name of a product.
    """
    word = model.strip().lower().partition(":")[0]
    if re.fullmatch(r"sm[0-9]{2,3}", word):
        number = int(word[2:])
        known = [int(key[2:]) for key in table()["nvlink"]]
        exact = [key for key in known if key == number]
        near = [key for key in known if key <= number and key // 10 == number // 10]
        later = [max(known)] if number > max(known) else []
        found = exact or later or near[:1]
        return f"sm{found[0]}" if found else ""
    if word.startswith("gfx"):
        similar = [key for key in table()["xgmi"] if key[:5] == word[:5] and word[:5] != "gfx90"]
        return word if word in table()["xgmi"] else (similar[0] if similar else "")
    words: dict[str, str] = table()["gpus"]
    named = (key for name, key in words.items() if re.search(_product(name.lower()), word))
    return next(named, "")


def _product(name: str) -> str:
    """Return the pattern of a product as a word, maybe of a variant: MI300X, L40S, H100SXM5."""
    return rf"(?<![a-z0-9])(?:rtx|hgx|dgx)?{name}x?(?:[a-z]|ti|nvl|oam|pcie|sxm\d?)?(?![a-z0-9])"


def read_gpu(text: str) -> str:
    """Return the generation that ``--gpu`` names; raise CS151 where there is none."""
    found = generation(text)
    if not found:
        phrase = f"--gpu cannot be {text!r}"
        help_ = did_you_mean(text, [str(name) for name in table()["gpus"]])
        raise InputError(Diagnostic("CS151", phrase, help=help_))
    return found


def row(medium: str, model: str) -> dict[str, Any]:
    """Return the entry of a generation; empty where it is not known."""
    found: dict[str, Any] = table()[medium].get(model, {})
    return found


def link_rate(medium: str, model: str, basis: str) -> Figure | None:
    """Return the bandwidth of one NVLink or xGMI link; None for a generation without any."""
    entry = row(medium, model)
    return _figure(entry, basis, str(entry.get("title"))) if entry.get("links") else None


def pcie_rate(link: Pcie, basis: str) -> Figure:
    """Return the bandwidth of a PCIe link."""
    speeds = {Fraction(str(speed)): entry for speed, entry in table()["pcie"].items()}
    speed = max((s for s in speeds if s <= link.speed), default=min(speeds))
    title = f"PCIe {float(speed):g} GT/s x{link.width}"
    figure = _figure(speeds[speed], basis, title)
    return Figure(figure.value * link.width / 16, figure.source)


def socket_rate(cpu: str) -> Figure:
    """Return the bandwidth between two sockets."""
    entry = table()["socket"][cpu]
    return Figure(parse_bandwidth(entry["library"]), f"{entry['title']} sockets as NCCL counts")


def latency(kind: str) -> Figure:
    """Return the latency of a kind of link."""
    entry = table()["latency"][kind]
    return Figure(parse_duration(entry["time"]), entry["by"])


def _figure(entry: dict[str, Any], basis: str, title: str) -> Figure:
    """Return the figure of a basis; the library's where nobody has measured."""
    if basis == "measured" and "measured" in entry:
        return Figure(parse_bandwidth(entry["measured"]), f"{title}, measured: {entry['by']}")
    known = "spec" if basis == "spec" else "library"
    told = "weak" if known == "spec" and entry.get("weak") else known
    source = f"{title}: {table()['sources'][told]}"
    if basis == "measured":
        source += "; no measurement is known"
    return Figure(parse_bandwidth(entry[known]), source)
