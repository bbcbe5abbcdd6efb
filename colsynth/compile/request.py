"""The request of a compilation: algorithm, options, call mode, level of the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from colsynth.compile.modes import Mode
from colsynth.errors import Diagnostic, InputError
from colsynth.jobs.workers import require_jobs
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.options import spelt
from colsynth.search.levels import DEFAULT_LEVEL
from colsynth.search.wish import Wish, configured

ANY = None
"""The algorithm of requests that let the search choose."""


@dataclass(frozen=True, slots=True)
class Request:
    """How to compile a problem. The runtime is in the target.

    Parameters
    ----------
    algorithm : str or None
        A key of `ALGORITHMS`; None lets the search choose.
    passes : str or None
        Text of a pipeline that is run unchanged.
    settings : mapping
        Options of passes by field, such as ``{"trees": "2"}``; the search does not vary them.
    mode : Mode
    several : bool
        Whether more than one file may be written.
    level : int
        How hard the search tries, 0 to 3 (`colsynth.search.levels`).
    size : int or None
        Message size to optimize for, in bytes; None: a large one, and smaller ones a little.
    any_protocol : bool
        Whether the search may take another protocol than that of the target.
    evaluations : int or None
        Largest number of programs that the search makes; None: that of the level.
    jobs : int
        With more than one, copies of this process may do a part of the work.
    least_given : bool
        Whether the smallest message that files serve is given. The largest is in the target.
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
    jobs: int = 1
    least_given: bool = False

    @property
    def compares(self) -> bool:
        """Whether sizes at which the library is faster are left to it: not without a search."""
        return self.level > 0 and self.passes is None

    def wish(self, protocol: str, size: int | None, *, rounds: bool = False) -> Wish:
        """Return the wish for the search; `size` and `rounds` as in `Wish`."""
        return Wish(
            algorithm=self.algorithm,
            settings=dict(self.settings),
            protocol=None if self.any_protocol else protocol,
            usual=protocol,
            passes=self.passes,
            level=self.level,
            rounds=rounds,
            size=size,
        )

    def check(self) -> None:
        """Raise for options that are wrong for every problem.

        Raises
        ------
        InputError
            CS213 for an unknown algorithm, CS206 for options beside ``passes``, CS217 for
            options that the algorithm does not have, CS210 for values out of range, CS201 to
            CS204 for wrong pipeline text, CS210 for a wrong number of jobs.
        """
        require_jobs(self.jobs)
        if self.evaluations is not None and not self.compares:
            what = "-O0" if self.passes is None else "--passes"
            phrase = f"--budget does not go with {what}: there is no search"
            raise InputError(Diagnostic("CS217", phrase, help="leave it out"))
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
            self.wish("Simple", self.size).check()
