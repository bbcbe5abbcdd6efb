"""How hard a search tries, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective
from colsynth.model.problem import PHASES
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.units import parse_size

OWN = ("forest", "roots", "ten")
"""The algorithms that colsynth brings; every other one is a baseline, what libraries do."""

LIBRARY = ("channels", "instances")
"""What is varied of a baseline: what a library varies."""

SWEEP = (
    *("pack-trees.trees", "round-weights.parts", "lower-forest.most", "coalesce-chunks.merge"),
    *("order-transfers.order", "lower-forest.segments", "pack-trees.prefer"),
    *("lower-forest.instances", "pack-trees.trees"),
)
"""What -O1 varies, one after the other, each from the best so far."""

PROTOCOLS: dict[str, int | None] = {"Simple": None, "LL128": None, "LL": parse_size("4MiB")}
"""The largest message a protocol is tried at. Half of an LL line is flags (contract 4.6), so it
pays while latency does: it lost to LL128 or Simple above 1 MiB on every preset."""

NEAR = 1.02
"""A program within this factor of what links allow is not improved further."""

FAR = 1.25
"""A program behind what links allow by more than this is compared with other algorithms."""

PROMISING = 4
"""An algorithm is tried further while its best is within this factor of the best of all."""


@dataclass(frozen=True, slots=True)
class Level:
    """What a level adds to the one below.

    Parameters
    ----------
    sweep : bool
        Whether `SWEEP` is gone through.
    work : int
        Steps per GPU of all programs that are made; none is begun that would exceed it.
    evaluations : int
        Programs that neighbours of the best may cost.
    everything : bool
        Whether all algorithms and protocols are starting points, not only those that serve
        where the first is far from what links allow.
    """

    sweep: bool
    work: int
    evaluations: int = 0
    everything: bool = False


LEVELS = (
    Level(sweep=False, work=0),
    Level(sweep=True, work=8_000),
    Level(sweep=True, work=40_000, evaluations=40),
    Level(sweep=True, work=200_000, evaluations=128, everything=True),
)
"""-O0 to -O3."""

DEFAULT_LEVEL = 1


def check_level(level: int) -> None:
    """Refuse a level that does not exist (CS210)."""
    if not 0 <= level < len(LEVELS):
        phrase = f"-O{level}: there are -O0 to -O{len(LEVELS) - 1}"
        raise InputError(Diagnostic("CS210", phrase, help="-O1 is the default, -O3 tries all"))


def first_algorithms(collective: Collective) -> tuple[str, ...]:
    """Return the algorithms to begin with, the most promising first."""
    return ("forest",) if collective in PHASES else ("ten",)


def other_algorithms(first: tuple[str, ...]) -> tuple[str, ...]:
    """Return all others, baselines that are quick to make first."""
    rest = [name for name in ALGORITHMS if name not in first]
    return tuple(sorted(rest, key=lambda name: name in OWN))
