"""What passes have in common that build a program from a problem at once."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.errors import require_least


@dataclass(frozen=True, slots=True)
class Replicated:
    """A pass whose program may be copied as a whole.

    Parameters
    ----------
    instances : int
        Parallel copies of the program, each with its own part of the data.
    """

    instances: int = 1

    def __post_init__(self) -> None:
        require_least("instances", self.instances, 1)
