"""The values of a report: what other commands print with ``--json``, and what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.cli._groups import reached
from colsynth.cli.bound import bound_object, solved
from colsynth.cli.breakdown import breakdown_object
from colsynth.cli.codes import explanations
from colsynth.cli.compare import comparison_object
from colsynth.cli.runtime_bound import runtime_fields
from colsynth.cli.simulate import simulation_object
from colsynth.cli.verify import report_object
from colsynth.errors import ColsynthError, InputError
from colsynth.model import Collective

if TYPE_CHECKING:
    from colsynth.cli.evaluations import Engine
    from colsynth.cost import Model
    from colsynth.model import Problem, ThreadblockProgram, Topology
    from colsynth.pipeline.target import Progress
    from colsynth.runtimes.profile import Profile
    from colsynth.simulate import Source

Values = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a report shows beside the schedule itself.

    Parameters
    ----------
    sizes : tuple of int
        Message sizes in bytes, ascending.
    against : tuple of str or None
        Algorithms of libraries to show beside it; may be empty; None: all baselines.
    budget : int
        Most programs that are made for them.
    engine : Engine
        What makes them.
    root : int or None
        Of a broadcast or reduce.
    show : callable
        Told of the work.
    """

    sizes: tuple[int, ...]
    against: tuple[str, ...] | None
    budget: int
    engine: Engine
    root: int | None
    show: Progress


def of_problem(problem: Problem, source: Source, constants: Model, asked: Asked) -> Values:
    """Return the bound, its cuts, and the library's algorithms."""
    from colsynth import api
    from colsynth.bounds.runtime import runtime_bounds
    from colsynth.report import link_losses

    topology = problem.topology
    asked.show("bound", 0, 0)
    found = solved(problem)
    bound = bound_object(problem, found, reached(problem, found))
    link_of = {topology.link_name(index): index for index in range(len(topology.links))}
    crossed = [link_of[name] for cut in bound["phases"] for name in cut["links"]]
    asked.show("failures of the cut", 0, 0)
    least = runtime_bounds(problem, source.profile, found, asked.sizes, constants)
    values: Values = {
        "bound": bound,
        "cuts": [_equation(cut, topology) for cut in bound["phases"]],
        "losses": link_losses(problem, crossed),
        "least": runtime_fields(least)["by_size"],
    }
    rivals_of = _baselines(problem) if asked.against is None else asked.against
    if not rivals_of:
        return values
    try:
        rivals = api.compare(
            problem,
            asked.sizes,
            runtime=source.profile.name,
            algorithms=rivals_of,
            budget=asked.budget,
            model=constants,
            **asked.engine,
        )
    except ColsynthError as fault:
        return {**values, "notes": [f"the library's algorithms: {fault.diagnostic.phrase}"]}
    return {**values, "compare": comparison_object(rivals)}


def _baselines(problem: Problem) -> tuple[str, ...]:
    from colsynth.search.wish import algorithm_names, is_baseline

    return tuple(filter(is_baseline, algorithm_names(problem)))


def _equation(cut: Values, topology: Topology) -> Values:
    """Return a cut with the equation that it proves, and the GPUs of its smaller side."""
    names = topology.gpu_names
    inside = set(cut["gpus"])
    apart = [name for name in names if (name in inside) == (2 * len(inside) <= len(names))]
    equation = _spell(cut["bandwidth_gb_per_s"], cut["algbw"])
    return {**cut, "ranks": len(names), "apart": apart, "equation": equation}


def _spell(bandwidth: float, rate: str) -> str:
    """Return the rate of a cut as its bandwidth over the share of the message that crosses it."""
    from fractions import Fraction

    share = Fraction(str(bandwidth)).limit_denominator(10**6) / Fraction(rate)
    share = share.limit_denominator(10**4)
    exact = "" if "/" not in rate else f" = {float(Fraction(rate)):.6g}"
    part = f"({share})" if share.denominator > 1 else str(share)
    return f"algbw ≤ {bandwidth:g} GB/s ÷ {part} = {rate}{exact} GB/s"


def of_program(source: Source, topology: Topology, constants: Model, asked: Asked) -> Values:
    """Return the schedule, its times, its limits and what the verifier says."""
    from colsynth.report import describe_machine

    header, profile = source.program.header, source.profile
    source.require_ranks(topology)
    asked.show("verify", 0, 0)
    report = source.report
    pages = explanations()
    rules = sorted({finding.rule for finding in report.findings} & set(pages))
    keys = ("title", "meaning", "why", "fix")
    values: Values = {
        "runtime": profile.name,
        "collective": header.collective.value,
        "program": {
            "name": header.name,
            "protocol": header.protocol,
            "ranks": header.ranks,
            "chunks": header.chunks,
            "channels": header.channels,
        },
        "machine": describe_machine(topology),
        "limits": [],
        "verify": report_object(report),
        "explain": {rule: {key: pages[rule][key] for key in keys} for rule in rules},
    }
    try:
        source.require_executable()
        values["limits"] = [
            {"title": u.title, "used": u.used, "limit": u.limit, "advisory": u.advisory}
            for u in source.limits()
        ]
        return {**values, **_times(source, topology, constants, asked)}
    except ColsynthError as fault:
        return {**values, "notes": [f"no times: {fault.diagnostic.phrase}"]}


def _times(source: Source, topology: Topology, constants: Model, asked: Asked) -> Values:
    """Return what only a program that finishes has: times, and what moves when."""
    from colsynth.runtimes.selection import taken_sizes
    from colsynth.simulate import Simulation
    from colsynth.simulate import simulate as execute

    program, profile = source.program, source.profile
    header, law = program.header, taken_sizes(program.header, profile)
    asked.show("simulating", 0, 0)
    points = execute(program, topology, profile, asked.sizes, constants)
    selected = tuple(law.takes(size) for size in asked.sizes)
    names = (source.subject, profile.name, topology.name)
    answer = Simulation(*names, header.ranks, header.collective, points, selected)
    told = simulation_object(answer)
    values = {"simulation": told, "predicted": {source.subject: told["points"]}}
    largest = law.largest(asked.sizes)
    if largest is None:
        return {**values, "notes": [f"no times: none of the sizes uses the file; it is for {law}"]}
    try:
        replayed = source.threadblocks
    except InputError as fault:
        return {**values, "notes": [f"no replay: {fault.diagnostic.phrase}"]}
    return {**values, **_replay(replayed, profile, topology, largest, constants, asked)}


def _replay(
    program: ThreadblockProgram,
    profile: Profile,
    topology: Topology,
    size: int,
    constants: Model,
    asked: Asked,
) -> Values:
    """Return where the time of one size goes, and what moves when."""
    from colsynth.report import describe_load, describe_schedule
    from colsynth.simulate.breakdown import break_down
    from colsynth.simulate.trace import trace

    traced = trace(program, topology, profile, size, constants)
    found = break_down(traced)
    known = program.header.collective is not Collective.CUSTOM
    return {
        "breakdown": breakdown_object(found, traced),
        "load": describe_load(traced),
        "slow_links": sorted(found.links),
        **(
            {"schedule": describe_schedule(program, topology, profile, constants, asked.root)}
            if known
            else {}
        ),
    }


def of_comparison(values: Values) -> Values:
    """Return the values of what ``compare --json`` printed."""
    where = f"{values['collective']} on {values['topology']}"
    return {"kind": "compare", "title": f"Algorithms for {where}", "compare": values}


def losses_of(table: Values, topology: Topology) -> list[Values]:
    """Return the rows of a survey that are about links, with the links' numbers."""
    links: dict[str, list[int]] = {}
    for index, link in enumerate(topology.links):
        ends = [topology.nodes[node].name for node in link.ends]
        links.setdefault("-".join(ends), []).append(index)
        links.setdefault("-".join(reversed(ends)), []).append(index)
    return [
        {
            "wire": row["failure"],
            "links": sorted(links[row["failure"]]),
            "algbw_gb_per_s": row["bound_gb_per_s"],
            "loss_percent": row["loss_percent"],
        }
        for row in table["rows"]
        if row["failure"] in links
    ]


def files_of(manifest: Values, shown: Values) -> dict[str, Sequence[Values]]:
    """Return the predictions of files for the collective that is shown, by name."""
    return {
        Path(file["path"]).name: file["predicted"]
        for file in manifest["files"]
        if file["collective"] == shown["collective"]
    }
