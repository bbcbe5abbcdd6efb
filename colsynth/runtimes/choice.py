"""How a pass declares what may be chosen for it.

A pass that has options worth varying lists them in a class attribute ``choices``, beside the
code that obeys them. The search (`colsynth.search`) reads these lists; it knows no option by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from colsynth.model import Problem
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.selection import (
    divided_by_ranks,
    dividing,
    parts_of_chunks,
    shares_may_differ,
    trimmed,
)

PROTOCOL = "protocol"
"""What stands for the protocol among changes."""

FINE = 24
"""Most chunks of a segment, on average, where roots carry unequal numbers of them.

An allreduce of 1 GiB by msccl on five DGX A100 with 12 segments reaches 91 GB/s with 1 chunk each,
98 with 4, 99 with 9, and 105 with 17; 640 MiB, which ranks divide, 107 GB/s.
"""

Changes = Mapping[str, Any]
"""New values of options, by ``"pass-name.field"``, and of the protocol."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Figures of a program, from which proposals are computed.

    Parameters
    ----------
    chunks, ranks : int
    steps : int
        Steps of all threadblocks of all GPUs: about what making the program costs.
    gpu_steps, block_steps : int
        Steps of the busiest GPU, and of the longest threadblock.
    threadblocks : int
        Of the busiest GPU.
    count : int
        Most chunks that one step moves.
    trees, trees_per_gpu : int
        Chunks of the forest before it was cut, and trees per root; 0 without a forest.
    height, weight : int
        Of the tallest tree, and of the heaviest; 0 without a forest.
    rises, falls : bool
        Whether the program begins by reducing, and ends by copying.
    """

    chunks: int
    ranks: int
    steps: int
    gpu_steps: int
    block_steps: int
    threadblocks: int
    count: int
    trees: int = 0
    trees_per_gpu: int = 0
    height: int = 0
    weight: int = 0
    rises: bool = False
    falls: bool = False

    @property
    def hops(self) -> int:
        """The most hops of data, in all phases."""
        return self.height * (self.rises + self.falls)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a proposal may look at.

    Parameters
    ----------
    problem : Problem
    profile : Profile
    protocol : str
    size : int
        Bytes of the largest message that counts.
    shape : Shape
        Of the program as it stands, or with the choice's `anchor`.
    values : mapping
        The options of all passes of that program, by ``"pass-name.field"``.
    thorough : bool
        Whether to propose also what rarely pays.
    model : Model, optional
        The constants of the case; None: those of the runtime.
    """

    problem: Problem
    profile: Profile
    protocol: str
    size: int
    shape: Shape
    values: Mapping[str, Any]
    thorough: bool = False
    model: Any = None

    @property
    def parts(self) -> int:
        """Into how many parts the forest's chunks can be cut at this size (`parts_of`)."""
        return self.parts_of(self.shape.trees)

    def cut(self, most: int, least: int = 1) -> int:
        """Return the largest number of parts for the forest's chunks that suits messages.

        Calls of the size use the file, if there is such a number; one root may have a chunk less
        than others where equal ones do not divide the message. Else it is a power of two.
        """
        problem, trees, parts = self.problem, self.shape.trees, self.parts
        if parts or divided_by_ranks(problem.collective):
            return dividing(parts, most, least)
        parts, roots = self.parts_of(1), len(problem.roots)
        found = (n for n in range(most, least - 1, -1) if trimmed(parts, trees * n, roots))
        return next(found, dividing(0, most))

    def cut_finely(self, number: int, most: int) -> int:
        """Return into how many parts to cut the forest's chunks for a number of segments.

        `most` at most; where equal shares do not divide messages, more: a chunk less of some roots
        then matters little (`FINE`).
        """
        if self.is_loose:
            room = (self.profile.max_offset + 1) // self.shape.trees
            most = max(most, min(FINE * number, room))
        return self.cut(most, number)

    @property
    def is_loose(self) -> bool:
        """Whether equal shares do not divide a message, though shares that differ do."""
        return shares_may_differ(self.problem) and not self.parts and self.parts_of(1) > 0

    def parts_of(self, chunks: int) -> int:
        """Return into how many parts chunks can be cut at this size (`parts_of_chunks`)."""
        problem = self.problem
        ranks = problem.topology.size
        return parts_of_chunks(self.size, chunks, problem.collective, ranks, self.profile)


Proposal = tuple[Changes, ...]
"""Changes in order of preference, of which the first that fits the runtime is taken."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a pass that a search may vary.

    Parameters
    ----------
    option : str
        Field of the pass.
    values : tuple
        What makes sense for it.
    ladder : bool
        Whether only values beside the present one are worth trying next.
    cuts : bool
        Whether chunks are cut into so many parts. Where these do not divide a message, the next
        smaller number that does is tried instead.
    propose : callable, optional
        Computes proposals instead: `Basis` -> proposals, which may change options of other
        passes too.
    anchor : mapping
        Changes with which the shape is wanted that `propose` sees.
    label : str
        Under which name a search tries it, where an option is declared more than once; that of
        the option otherwise.
    """

    option: str
    values: tuple[Any, ...] = ()
    ladder: bool = False
    cuts: bool = False
    propose: Callable[[Basis], Iterable[Proposal]] | None = None
    anchor: Changes = field(default_factory=dict)
    label: str = ""

    @property
    def known_as(self) -> str:
        """The name under which a search tries it."""
        return self.label or self.option

    def proposals(self, name: str, basis: Basis) -> Iterable[Proposal]:
        """Return what to try next, given the choice's name and a program."""
        if self.propose is not None:
            return self.propose(basis)
        value = basis.values[name]
        parts = basis.parts_of(basis.shape.chunks // value) if self.cuts else 0
        return [({name: other},) for other in self.beside(value, parts)]

    def beside(self, value: Any, parts: int = 0) -> tuple[Any, ...]:
        """Return the values to try next to `value`; `parts` are those of uncut chunks."""
        values = self.values
        if self.cuts and parts:
            values = tuple(dict.fromkeys(dividing(parts, number) for number in values))
        if not self.ladder or value not in values:
            return tuple(other for other in values if other != value)
        place = values.index(value)
        return values[max(place - 1, 0) : place] + values[place + 1 : place + 2]
