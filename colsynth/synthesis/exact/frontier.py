"""SCCL's frontier: fewest rounds for every number of steps, with what is impossible between.

A schedule (C, S, R) cuts every GPU's data into C chunks and has S steps of R rounds in all; a link
of b lanes passes b chunks in a round. It takes S latencies and R / C transfers (SCCL,
arXiv 2008.08708). From the fewest steps on, rates R / C are asked for from the least that links
allow, until some S meets that least itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from colsynth.bounds.network import common_divisor
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Problem, Topology
from colsynth.synthesis.exact.instance import Instance, Limits, instance_of
from colsynth.synthesis.exact.steps import Question, fewest_steps
from colsynth.synthesis.exact.worker import require_solver, solve
from colsynth.synthesis.timed.attempt import Setting


@dataclass(frozen=True, slots=True)
class Point:
    """The answer for one (chunks, steps, rounds).

    Parameters
    ----------
    chunks, steps, rounds : int
    status : str
        ``"feasible"``, ``"infeasible"``, proven, or ``"unknown"`` within the work.
    """

    chunks: int
    steps: int
    rounds: int
    status: str

    @property
    def rate(self) -> Fraction:
        """Rounds per chunk: transfers of a GPU's whole data over a lane."""
        return Fraction(self.rounds, self.chunks)


def lanes_of(topology: Topology) -> tuple[int, ...]:
    """Return the lanes of every link: its bandwidth in units of the slowest common one.

    Raises
    ------
    InputError
        CS328: switches, whose ports share lanes, or links without a common unit.
    """
    if not topology.is_direct:
        phrase = "--pareto counts rounds of links between GPUs; this topology has switches"
        raise InputError(Diagnostic("CS328", phrase, help="leave --pareto out"))
    unit = common_divisor(link.bandwidth for link in topology.links)
    lanes = [link.bandwidth / unit for link in topology.links]
    if max(lanes) > 64:
        phrase = "the bandwidths of links have no unit that goes into them up to 64 times"
        raise InputError(Diagnostic("CS328", phrase, help="round the bandwidths of the topology"))
    return tuple(int(lane) for lane in lanes)


class Frontier:
    """The walk over steps and rounds.

    Parameters
    ----------
    problem : Problem
        One phase; of an allreduce, walk its reduce-scatter.
    most_chunks : int
        Largest C.
    work : int
        Limit of every question, in units of about a second.
    """

    def __init__(self, problem: Problem, most_chunks: int, work: int, seed: int = 0) -> None:
        require_solver()
        self._problem, self._most, self._work, self._seed = problem, most_chunks, work, seed
        self._lanes = lanes_of(problem.topology)
        self._instances: dict[int, Instance] = {}

    def instance(self, chunks: int) -> Instance:
        """Return the question's instance with C chunks, outwards."""
        if chunks not in self._instances:
            setting = Setting(self._problem, chunks * 840, chunks, spaced=False)
            if len(setting.wants) != 1:
                phrase = f"--pareto walks one phase; {self._problem.collective} has two"
                advice = "walk its reduce-scatter: the allgather mirrors it"
                raise InputError(Diagnostic("CS328", phrase, help=advice))
            (item,) = setting.wants
            hops, _ = setting.outwards(item)
            self._instances[chunks] = instance_of(
                setting.gpus, setting.links, hops, item, self._problem.members, Limits()
            )
        return self._instances[chunks]

    def least_rate(self) -> Fraction:
        """Return the rounds per chunk that the lanes into some GPU need at least."""
        asked = self.instance(1)
        into = np.bincount(
            asked.hops.target, np.array(self._lanes)[asked.hops.links], minlength=asked.gpus
        )
        ends = zip(asked.holders, asked.wanted, strict=True)
        coming = np.zeros(asked.gpus, np.int64)
        for holders, wanted in ends:
            coming[list(wanted - holders)] += 1
        return max(Fraction(int(n), int(lanes)) for n, lanes in zip(coming, into, strict=True) if n)

    def ask(self, chunks: int, steps: int, rounds: int) -> Point:
        """Return whether there is a schedule with so many chunks, steps and rounds."""
        question = Question(steps, self._work, self._seed, rounds=self._lanes, total=rounds)
        status = solve(self.instance(chunks), question).status
        return Point(chunks, steps, rounds, "feasible" if status == "optimal" else status)

    def walk(self) -> Iterator[Point]:
        """Yield every question asked, in order, with its answer.

        First come the fewest rounds of one chunk in the fewest steps. Then, for more and more
        steps, smaller rates than were reached are asked for, the smallest first.
        """
        least, gpus = self.least_rate(), self._problem.topology.size
        fewest = fewest_steps(self.instance(1))
        reached: Fraction | None = None
        for rounds in range(max(fewest, ceil(least)), fewest * gpus**2):
            point = self.ask(1, fewest, rounds)
            yield point
            if point.status == "feasible":
                reached = point.rate
                break
        if reached is None:
            return
        for steps in range(fewest, 2 * gpus):
            for rate in self._rates(least, reached):
                times = ceil(Fraction(steps, rate.numerator))
                if rate.denominator * times > self._most:
                    continue
                point = self.ask(rate.denominator * times, steps, rate.numerator * times)
                yield point
                if point.status == "feasible":
                    reached = rate
                    break
            if reached == least:
                return

    def _rates(self, least: Fraction, reached: Fraction) -> list[Fraction]:
        """Return the rates from the least to below what was reached, of at most so many chunks."""
        return sorted(
            {
                Fraction(rounds, chunks)
                for chunks in range(1, self._most + 1)
                for rounds in range(ceil(least * chunks), ceil(reached * chunks))
            }
        )
