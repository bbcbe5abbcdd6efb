"""What eager broadcast along shortest paths takes, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.model.problem import Direction


@dataclass(frozen=True, slots=True)
class StepLoad:
    """The largest load of a step, and the links that prove it.

    Parameters
    ----------
    rank : int
        The receiver with the largest load; in an IN phase, the sender.
    links : tuple of int
        Link indices at that rank.
    parts : int
        Parts of the message that only these links can carry. A part is what a root of weight
        one holds, as in `Problem.weights`.
    bandwidth : Fraction
        Of these links together, bytes per second.
    """

    rank: int
    links: tuple[int, ...]
    parts: int
    bandwidth: Fraction

    @property
    def load(self) -> Fraction:
        """Seconds for each byte of a part."""
        return self.parts / self.bandwidth


@dataclass(frozen=True, slots=True)
class StepPhase:
    """Eager broadcast in one direction.

    Parameters
    ----------
    direction : Direction
    steps : tuple of StepLoad
        In the order of distances.
    together : StepLoad
        The largest load over all steps, for data that is not held up between them.
    """

    direction: Direction
    steps: tuple[StepLoad, ...]
    together: StepLoad

    @property
    def load(self) -> Fraction:
        """Seconds for each byte of a part, one step after the other."""
        return sum((step.load for step in self.steps), Fraction(0))


@dataclass(frozen=True, slots=True)
class StepBound:
    """Steps and times of eager broadcast for a problem.

    Parameters
    ----------
    parts : int
        Parts of the message.
    ports : int
        Most links of a GPU, counted in links of the narrowest bandwidth.
    injection : Fraction
        Largest bandwidth into or out of a GPU, bytes per second: the unit of `bandwidth_time`.
    moore : int
        Fewest steps of any graph with so many GPUs and ports; of one whose links all have a
        reverse, if this one is such.
    phases : tuple of StepPhase
        In the order of the problem's phases.
    """

    parts: int
    ports: int
    injection: Fraction
    moore: int
    phases: tuple[StepPhase, ...]

    @property
    def steps(self) -> int:
        """Steps of all phases, one after the other."""
        return sum(len(phase.steps) for phase in self.phases)

    @property
    def seconds_per_byte(self) -> Fraction:
        """Time of all steps for each byte of the message."""
        return sum((phase.load for phase in self.phases), Fraction(0)) / self.parts

    @property
    def bandwidth_time(self) -> Fraction:
        """T_B: `seconds_per_byte` in units of the message size over `injection`."""
        return self.seconds_per_byte * self.injection

    @property
    def algbw(self) -> Fraction:
        """Bytes per second of shortest paths whose steps overlap."""
        return self.parts / sum((phase.together.load for phase in self.phases), Fraction(0))
