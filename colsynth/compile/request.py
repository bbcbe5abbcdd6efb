"""What is asked of a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colsynth.compile.modes import Mode
from colsynth.errors import Diagnostic, InputError
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.options import spelt
from colsynth.search.levels import DEFAULT_LEVEL
from colsynth.search.wish import Wish, configured

ANY = None
"""The algorithm of requests that leave it to the search."""


@dataclass(frozen=True, slots=True)
class Request:
    """How a problem is to be compiled; what runtime for is in the target.

    Parameters
    ----------
    algorithm : str or None
        A key of `ALGORITHMS`; None leaves it to the search.
    passes : str or None
        A pipeline to run as it stands.
    settings : mapping
        Options of passes by field, such as ``{"trees": "2"}``; the search does not vary them.
    mode : Mode
    several : bool
        Whether more than one file may be written.
    level : int
        How hard the search tries, 0 to 3 (`colsynth.search.levels`).
    size : int or None
        Bytes of the message to be fast at; None: a large one, and a small one a little.
    any_protocol : bool
        Whether the search may take another protocol than the target has.
    evaluations : int or None
        Most programs that the search makes; None is what the level allows.
    """

    algorithm: str | None = ANY
    passes: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode = Mode.AUTO
    several: bool = False
    level: int = DEFAULT_LEVEL
    size: int | None = None
    any_protocol: bool = False
    evaluations: int | None = None

    def wish(self, protocol: str) -> Wish:
        """Return what the search is told."""
        return Wish(
            algorithm=self.algorithm,
            settings=dict(self.settings),
            protocol=None if self.any_protocol else protocol,
            passes=self.passes,
            level=self.level,
        )

    def check(self) -> None:
        """Refuse options that no problem makes right.

        Raises
        ------
        InputError
            CS213 for an unknown algorithm, CS206 for options beside ``passes``, CS217 for
            options that the algorithm does not have, CS210 for numbers that cannot be, CS201
            to CS204 for wrong text.
        """
        if self.passes is not None:
            if self.settings:
                name = spelt(next(iter(self.settings)))
                phrase = f"--{name} and --passes both say what the pipeline does"
                advice = f"write {name}= into the pipeline"
                raise InputError(Diagnostic("CS206", phrase, help=advice))
            Pipeline.from_text(self.passes)
        elif self.algorithm is not None:
            configured(self.algorithm, self.settings)
        else:
            self.wish("Simple").check()
