"""What the simulator predicts for all files of a compilation."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.bounds.runtime import RuntimeBound, runtime_bounds
from colsynth.compile.result import Prediction
from colsynth.model import Program, RoundProgram
from colsynth.runtimes.selection import nearest_size, taken_sizes
from colsynth.search.case import Case
from colsynth.search.found import Found
from colsynth.search.measured import Measured


def predictions(
    measured: Measured, found: Found, programs: Sequence[Program]
) -> tuple[tuple[Prediction, ...], Program]:
    """Return the times that hold for all files, and the program with the last of them.

    They are those of the slowest file at each size that was simulated and that all files serve.
    The search timed the first program given; others differ from it in copies of the call mode.
    Where no such size is served, they are those at the nearest ones that are.
    """
    case = found.workshop.case
    laws = [taken_sizes(program.header, case.profile) for program in programs]
    known: dict[int, tuple[float, RuntimeBound]] = {
        size: (seconds, floor)
        for size, seconds, floor in zip(case.sizes, measured.seconds, found.floors, strict=True)
        if seconds is not None and all(law.takes(size) for law in laws)
    }
    near = () if known else {nearest_size(laws, size) for size in case.sizes}
    if sizes := tuple(sorted(size for size in near if size is not None)):
        times, floors = _times(programs[0], sizes, found), _floors(case, sizes)
        known = dict(zip(sizes, zip(times, floors, strict=True), strict=True))
    times, slowest = [seconds for seconds, _ in known.values()], programs[0]
    for program in programs[1:] if known else ():
        others = _times(program, tuple(known), found)
        slowest = program if others[-1] > times[-1] else slowest
        times = [max(pair) for pair in zip(times, others, strict=True)]
    least = (floor for _, floor in known.values())
    return tuple(map(Prediction, known, times, least)), slowest


def _floors(case: Case, sizes: tuple[int, ...]) -> tuple[RuntimeBound, ...]:
    """Return the least times of the runtime at sizes that the search did not have."""
    from colsynth.bounds.optimum import best_optimum

    optimum = best_optimum(case.problem)
    return runtime_bounds(case.problem, case.profile, optimum, sizes, case.model)


def _times(program: Program, sizes: tuple[int, ...], found: Found) -> list[float]:
    """Return the seconds of a program that the search did not time."""
    from colsynth.simulate import simulate

    case = found.workshop.case
    with found.workshop.clock.measure("simulate"):
        points = simulate(program, case.problem.topology, case.profile, sizes, case.model)
    return [float(point.seconds) for point in points]


def limited_by(program: Program, case: Case, predicted: tuple[Prediction, ...]) -> dict[str, float]:
    """Return the share of each limit in the predicted time of the largest message."""
    from colsynth.cost import model_of
    from colsynth.simulate import rounds
    from colsynth.simulate.breakdown import break_down
    from colsynth.simulate.trace import trace

    if not predicted:
        return {}
    topology, size = case.problem.topology, predicted[-1].size_bytes
    if isinstance(program, RoundProgram):
        return rounds.shares(program, topology, size, model_of(case))
    if program.multicasts:
        from colsynth.simulate import multicast

        return multicast.shares(program, topology, size, model_of(case))
    return break_down(trace(program, topology, case.profile, size, case.model)).shares
