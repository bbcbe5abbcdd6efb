"""What came of one failure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from colsynth.reading import in_form
from colsynth.survey.bottleneck import Bottleneck
from colsynth.units import exact_gb_per_s, gb_per_s, parse_fraction


@dataclass(frozen=True, slots=True)
class _File:
    """A file in the plain values of a row."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """The plain values of a row, without those that repeat others."""

    failure: str
    ranks: int
    bound: str
    algbw: str | None
    trees_per_gpu: int | None
    bottleneck: Any
    refusal: str | None
    files: tuple[_File, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What a failure leaves.

    Parameters
    ----------
    failure : str
        What is gone, such as ``"gpu0.0-nic0.0"``; empty for the healthy topology.
    ranks : int
        GPUs that are left.
    bound : Fraction
        Proven optimum, bytes per second; 0 where GPUs are cut off.
    algbw : Fraction or None
        What links allow the schedule, bytes per second; None where there is none, or where no
        links are known.
    trees_per_gpu : int or None
    bottleneck : Bottleneck or None
    refusal : str or None
        Why there is no schedule, such as ``"CS302: ..."``.
    files : tuple of (str, str)
        Path within the folder and SHA-256 of every schedule file.
    """

    failure: str
    ranks: int
    bound: Fraction
    algbw: Fraction | None = None
    trees_per_gpu: int | None = None
    bottleneck: Bottleneck | None = None
    refusal: str | None = None
    files: tuple[tuple[str, str], ...] = ()

    def entry(self) -> dict[str, Any]:
        """Return plain values that `of_entry` reads back."""
        return {
            "failure": self.failure,
            "ranks": self.ranks,
            "bound_gb_per_s": gb_per_s(self.bound),
            "bound": exact_gb_per_s(self.bound),
            "algbw_gb_per_s": None if self.algbw is None else gb_per_s(self.algbw),
            "algbw": None if self.algbw is None else exact_gb_per_s(self.algbw),
            "trees_per_gpu": self.trees_per_gpu,
            "bottleneck": None if self.bottleneck is None else self.bottleneck.entry(),
            "refusal": self.refusal,
            "files": [{"path": path, "sha256": digest} for path, digest in self.files],
        }

    @classmethod
    def of_entry(cls, entry: Any) -> Row:
        """Return what `entry` wrote; ValueError from others."""
        found = in_form(entry, _Entry)
        cut = found.bottleneck
        row = cls(
            failure=found.failure,
            ranks=found.ranks,
            bound=parse_fraction(found.bound) * 10**9,
            algbw=None if found.algbw is None else parse_fraction(found.algbw) * 10**9,
            trees_per_gpu=found.trees_per_gpu,
            bottleneck=None if cut is None else Bottleneck.of_entry(cut),
            refusal=found.refusal,
            files=tuple((file.path, file.sha256) for file in found.files),
        )
        if row.bound < 0 or (row.algbw is not None and row.algbw < 0):
            raise ValueError("a speed is below zero")
        return row
