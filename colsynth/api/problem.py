"""What is asked: a topology, a collective on it, and the best that any schedule can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.api.given import (
    require_path,
    require_problem,
    require_several,
    require_topology,
)
from colsynth.errors import Diagnostic, InputError, did_you_mean, require_whole, same_name
from colsynth.model import (
    AllreduceBound,
    Bound,
    Collective,
    FlowBound,
    Problem,
    Sketch,
    Topology,
)
from colsynth.sketches.given import sketched

if TYPE_CHECKING:
    from colsynth.sketches.read import Found
    from colsynth.topology.communicator import Communicator

_WITH_SHARDS = (
    *(Collective.ALLGATHER, Collective.REDUCE_SCATTER),
    *(Collective.BROADCAST, Collective.REDUCE),
)
"""Collectives whose message may be divided unevenly, or have several roots."""


def load_topology(
    spec: str | Path,
    *,
    nodes: int | None = None,
    settings: Mapping[str, str | float] | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
) -> Topology:
    """Return the topology that a preset, a YAML file or a generator describes.

    Parameters
    ----------
    spec : str or Path
        ``"dgx-a100"``, ``"cluster.yaml"``, ``"torus:4x4x4"``, ...
    nodes : int, optional
        Number of boxes.
    settings : mapping, optional
        Values of the parameters that a preset or a file declares, as text or numbers:
        ``{"nics": 4, "nic": "12.5 GB/s"}``.
    bandwidth, latency : str, optional
        Of the links of a generator, such as ``"50 GB/s"`` and ``"0.7 us"``; one for each axis
        with commas: ``"100,200,400 GB/s"``.

    Raises
    ------
    InputError
        Whatever is wrong, at its place.
    """
    from colsynth.topology.load import load

    return load(spec, nodes=nodes, settings=settings, bandwidth=bandwidth, latency=latency)


def make_problem(
    topology: Topology,
    collective: str | None,
    root: int | Sequence[int] | None = None,
    *,
    groups: Sequence[Sequence[int]] | None = None,
    transit: bool = False,
    custom: str | Path | None = None,
    shards: str | Path | Sequence[int] | None = None,
    sketch: str | Path | Sketch | None = None,
) -> Problem:
    """Return a collective on a topology.

    Parameters
    ----------
    topology : Topology
    collective : str or None
        A name such as ``"reduce-scatter"``, in any case and also with underscores or in one
        word; None or ``"custom"`` beside `custom`.
    root : int or sequence of int, optional
        Rank, or place in every group; 0 unless given. For broadcast, reduce, scatter and
        gather alone. Several are roots of equal parts of a broadcast or reduce.
    groups : sequence of sequences of int, optional
        Process groups of equal size that run the collective at the same time, each by its
        ranks in order.
    transit : bool
        Whether GPUs outside all groups may pass chunks on.
    custom : path, optional
        A YAML file with a collective of one's own.
    shards : path or sequence of int, optional
        A YAML file that says how much each GPU contributes to an allgather or gets of a
        reduce-scatter, or which part of a broadcast or reduce it is the root of; or that by
        rank. All the same unless given.
    sketch : path or Sketch, optional
        A sketch of TACCL or in YAML that timed schedules keep to.

    Raises
    ------
    InputError
        CS200 for another object than a topology, CS213 for an unknown collective, CS211 for a
        root that does not fit, CS216 for groups that do not, CS137 for shards that cannot be,
        CS217 for options that do not go together, and whatever is wrong with a file, at its place.
    """
    require_topology(topology, "make_problem")
    if sketch is not None:
        given = sketch if isinstance(sketch, Sketch) else read_sketch(sketch, topology).sketch
        whole = make_problem(
            topology,
            collective,
            root,
            groups=groups,
            transit=transit,
            custom=custom,
            shards=shards,
        )
        return sketched(whole, given)
    asked = None if collective is None else find_collective(collective)
    if custom is not None or asked is None or asked is Collective.CUSTOM:
        beside = {"root": root, "groups": groups, "transit": transit, "shards": shards}
        _check_custom(asked, custom, beside)
        from colsynth.topology.custom import read_custom

        demands = read_custom(Path(str(custom)), topology)
        return Problem(topology, Collective.CUSTOM, demands=demands)
    if transit and groups is None:
        phrase = "--transit is about GPUs outside a group, and there is none"
        raise InputError(Diagnostic("CS217", phrase, help="give --group or --groups"))
    members: tuple[tuple[int, ...], ...] = ()
    if groups is not None:
        from colsynth.topology.groups import check_groups
        from colsynth.topology.wires import choose_for_groups

        several = require_several("groups", groups, "[[0, 1], [2, 3]]")
        members = check_groups(several, topology)
        if not transit:
            topology = choose_for_groups(topology, members)
    problem = Problem(topology, asked, None, members, transit and members != ())
    if shards is None:
        return _rooted(problem, root)
    return _sharded(problem, root, shards)


def read_sketch(path: str | Path, topology: Topology) -> Found:
    """Return the sketch of a file for a topology, with notes on what of it is not used.

    Raises
    ------
    InputError
        CS101 to CS109 for a file that cannot be read, CS142 to CS144 for a sketch that
        contradicts itself or does not fit the topology; at their place.
    """
    from colsynth.sketches.read import read_sketch as read

    require_topology(topology, "read_sketch")
    return read(require_path(path, "read_sketch"), topology)


def find_collective(name: str) -> Collective:
    """Return the collective of a name such as ``"all_reduce"``; CS213 where there is none."""
    names = [item.value for item in Collective]
    found = same_name(name, names)
    if found is None:
        phrase = f"there is no collective {name!r}"
        raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(name, names)))
    return Collective(found)


def _sharded(
    problem: Problem, root: int | Sequence[int] | None, given: str | Path | Sequence[int]
) -> Problem:
    """Return a problem with shards; CS217 where it can have none."""
    from colsynth.topology.shards import check_shards, read_shards

    if problem.collective not in _WITH_SHARDS or len(problem.groups) > 1:
        what = "several groups" if len(problem.groups) > 1 else problem.collective
        phrase = f"--shards does not go with {what}"
        advice = f"it is for {', '.join(_WITH_SHARDS)} of one group or all GPUs"
        raise InputError(Diagnostic("CS217", phrase, help=advice))
    if root is not None and problem.collective.rooted:
        phrase = "--root and --shards both say where parts of the message have their root"
        raise InputError(Diagnostic("CS217", phrase, help="leave one of them out"))
    problem = _rooted(problem, root) if not problem.collective.rooted else problem
    (members,) = problem.members
    if isinstance(given, str | Path):
        shards = read_shards(Path(given), problem.topology, members)
    else:
        sizes = require_several("shards", given, "[2, 1, 1]")
        shards = check_shards(sizes, problem.topology, members)
    roots = [place for place, rank in enumerate(members) if shards and shards[rank]]
    if problem.collective.rooted and len(roots) == 1:
        return replace(problem, root=roots[0])
    return replace(problem, shards=shards)


def _check_custom(
    collective: str | None, custom: str | Path | None, beside: Mapping[str, object]
) -> None:
    """Refuse options that make no sense beside a collective of one's own (CS217)."""
    if custom is None:
        given = collective is not None
        phrase = "a custom collective is described by a file" if given else "which collective?"
        advice = (
            "bound and synthesize take it, with --custom FILE.yaml"
            if given
            else "give -c NAME; bound and synthesize also take --custom FILE"
        )
        raise InputError(Diagnostic("CS217", phrase, help=advice))
    if collective not in (None, Collective.CUSTOM):
        phrase = f"--custom and --collective {collective} both name the collective"
        raise InputError(Diagnostic("CS217", phrase, help="leave one of them out"))
    for name, value in beside.items():
        if value is not None and value is not False:
            raise beside_custom(name)


def beside_custom(option: str) -> InputError:
    """Return the refusal of an option beside a collective of one's own (CS217)."""
    phrase = f"--{option} does not go with --custom"
    return InputError(Diagnostic("CS217", phrase, help="the file names every GPU that takes part"))


def _rooted(problem: Problem, root: int | Sequence[int] | None) -> Problem:
    """Return a problem with its roots; refuse those that do not fit (CS211, CS217)."""
    if not problem.collective.rooted:
        if root is not None:
            phrase = f"{problem.collective} has no root"
            raise InputError(Diagnostic("CS211", phrase, help="leave --root out"))
        return problem
    asked: Any = root  # from Python it may be anything
    several = isinstance(asked, Iterable) and not isinstance(asked, str | Mapping)
    places = list(asked) if several else [0 if asked is None else asked]
    _check_places(problem, places)
    places = list(map(int, places))
    if len(places) == 1:
        return replace(problem, root=places[0])
    if problem.collective not in _WITH_SHARDS:
        phrase = f"{problem.collective} has one root"
        advice = "--custom says who has and who wants which chunks; synthesize takes it"
        raise InputError(Diagnostic("CS217", phrase, help=advice))
    if len(problem.groups) > 1:
        phrase = "several roots do not go with several groups"
        raise InputError(Diagnostic("CS217", phrase, help="give one --group at a time"))
    (members,) = problem.members
    chosen = {members[place] for place in places}
    whole = len(chosen) == len(members)
    shards = tuple(int(rank in chosen) for rank in range(problem.topology.size))
    return problem if whole else replace(problem, shards=shards)


def _check_places(problem: Problem, places: Sequence[int]) -> None:
    """Refuse roots that are not there, or named twice (CS211)."""
    size = len(problem.members[0])
    for number, place in enumerate(places):
        require_whole("--root", place)
        if place in places[:number]:
            raise InputError(Diagnostic("CS211", f"root {place} is named twice"))
        if 0 <= place < size:
            continue
        if problem.groups:
            phrase = f"no group has a member {place} to be the root"
            advice = f"members of a group are counted from 0 to {size - 1}"
        else:
            phrase = f"there is no rank {place} to be the root"
            advice = f"ranks of {problem.topology.name} are 0 to {size - 1}"
        raise InputError(Diagnostic("CS211", phrase, help=advice))
    if not places:
        raise InputError(Diagnostic("CS211", "no root is named", help="name a rank"))


def communicators(problem: Problem, runtime: str) -> tuple[Communicator, ...]:
    """Return every process group as a machine of its own, as a file of a runtime sees it.

    Rank i is the group's i-th member; a problem without groups is its own machine.

    Raises
    ------
    InputError
        There is no such runtime.
    LimitError
        CS404: other GPUs are to pass data on, or some groups are in one box and others not.
    """
    from colsynth.compile.groups import machines_of
    from colsynth.runtimes.catalog import profile

    require_problem(problem, "communicators")
    return machines_of(problem, profile(runtime))


def bound(problem: Problem) -> Bound | FlowBound:
    """Return the proven optimum of a problem in bytes per second, with the cuts that prove it.

    Of an allreduce it is that of equal roots; `allreduce_bound` lets them be anywhere. Of an
    alltoall, scatter or gather it is a `FlowBound`: a bandwidth that no schedule
    beats, which for alltoall need not be reached where it is not `exact`. Indices are those
    of the problem's topology, also of a process group; the message is that of one group.

    Raises
    ------
    InfeasibleError
        No data can pass between some two GPUs.
    InputError
        No bound is known for such a problem, or its numbers do not fit 64 bits.
    """
    from colsynth.bounds.optimum import optimum

    require_problem(problem, "bound")
    return optimum(problem)


def allreduce_bound(problem: Problem) -> AllreduceBound:
    """Return what an allreduce reaches with equal roots, with free ones, and what none beats.

    What none beats is checked; prices of free roots are where their trees are packed.

    Raises
    ------
    InfeasibleError
        No data can pass between some two GPUs.
    InputError
        CS321: another collective; CS303: several process groups; CS301: numbers do not fit
        64 bits.
    VerificationError
        CS524: the certificate proves nothing, which is a defect of colsynth.
    """
    from colsynth.bounds.optimum import allreduce_optimum
    from colsynth.verify.allreduce import check_limit

    require_problem(problem, "allreduce_bound")
    found = allreduce_optimum(problem)
    check_limit(problem, found.limit)
    return found
