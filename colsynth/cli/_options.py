"""Options that say what is asked of a synthesizer, and how hard it tries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._help import MEMBERS, SEARCH
from colsynth.cli.streams import tell
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective
from colsynth.units import parse_size, plural

if TYPE_CHECKING:
    from colsynth.model import Problem, Topology
    from colsynth.topology.communicator import Communicator

CollectiveOption = Annotated[
    str,
    typer.Option(
        "-c",
        "--collective",
        metavar="COLLECTIVE",
        autocompletion=complete.collectives,
        help="Collective: allgather, reduce-scatter, allreduce, broadcast, reduce, alltoall, "
        "scatter or gather.",
        show_default=False,
    ),
]
AnyCollectiveOption = Annotated[
    str | None,
    typer.Option(
        "-c",
        "--collective",
        metavar="COLLECTIVE",
        autocompletion=complete.collectives,
        help="Collective: allgather, reduce-scatter, allreduce, broadcast, reduce, alltoall, "
        "scatter or gather.",
        show_default=False,
    ),
]
RuntimeOption = Annotated[
    str,
    typer.Option(
        "-r",
        "--runtime",
        metavar="RUNTIME",
        autocompletion=complete.runtimes,
        help="Runtime that loads the schedule: msccl, msccl-executor or rccl.",
    ),
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="PROTOCOL",
        autocompletion=complete.words("Simple", "LL", "LL128"),
        help="Protocol: Simple, LL or LL128.",
        show_default="Simple",
    ),
]
TreesOption = Annotated[
    str | None,
    typer.Option(
        "--trees",
        metavar="auto|optimal|K",
        autocompletion=complete.words("auto", "optimal"),
        help="Trees per GPU: a number; optimal, the fewest that reach the optimum; or auto, the "
        "fewest within 2 % of it, or within 10 % where they are predicted to be faster.",
        rich_help_panel=SEARCH,
        show_default="auto",
    ),
]
RootOption = Annotated[
    int | None,
    typer.Option(
        "--root",
        metavar="R",
        help="Root rank of a broadcast, reduce, scatter or gather, e.g. 3; with --group, its "
        "place in the group.",
        rich_help_panel=MEMBERS,
        show_default="0",
    ),
]
RootsOption = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="R[,R...]",
        help="Root rank of a broadcast, reduce, scatter or gather, e.g. 3; with groups, its "
        "place in the group. Several, e.g. 0,4, are roots of equal parts of a broadcast or "
        "reduce.",
        rich_help_panel=MEMBERS,
        show_default="0",
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="RANKS",
        help="Ranks that take part, in the order of the process group, e.g. 0-7,16-23.",
        rich_help_panel=MEMBERS,
        show_default=False,
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="LISTS",
        help="Process groups of equal size that run at the same time, e.g. '0-7;8-15'.",
        rich_help_panel=MEMBERS,
        show_default=False,
    ),
]
TransitOption = Annotated[
    bool,
    typer.Option(
        "--transit",
        help="Let GPUs outside a group forward its chunks.",
        rich_help_panel=MEMBERS,
    ),
]
CustomOption = Annotated[
    Path | None,
    typer.Option(
        "--custom",
        metavar="FILE",
        help="Custom collective: YAML file that lists who holds and who wants which chunks, "
        "e.g. mine.yaml.",
        rich_help_panel=MEMBERS,
        show_default=False,
    ),
]
ShardsOption = Annotated[
    Path | None,
    typer.Option(
        "--shards",
        metavar="FILE",
        help="Unequal parts: YAML file with the size of every GPU's part of an allgather or "
        "reduce-scatter, or every root's part of a broadcast or reduce, e.g. parts.yaml.",
        rich_help_panel=MEMBERS,
        show_default="all equal",
    ),
]
SizeOption = Annotated[
    str | None,
    typer.Option("--size", metavar="SIZE", help="Message size, e.g. 64MB.", show_default="1GB"),
]
ChunksOption = Annotated[
    int | None,
    typer.Option(
        "--chunks-per-gpu",
        metavar="N",
        help="Number of chunks that the data of every GPU is split into, e.g. 4.",
        rich_help_panel=SEARCH,
        show_default="1",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="auto|oldest|rarest|earliest",
        autocompletion=complete.words("auto", "oldest", "rarest", "earliest"),
        help="Chunk that a link sends first; with auto, the tries alternate between the others.",
        rich_help_panel=SEARCH,
        show_default="auto",
    ),
]
TriesOption = Annotated[
    int | None,
    typer.Option(
        "--tries",
        metavar="N",
        help="Number of schedules to make, e.g. 8; the best is kept. Stops at the first that "
        "meets the bound.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="N",
        help="Number of placed transfers after which no new try starts; 0 for no limit.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
_SHOWN = 4
"""Groups whose ranks are told before the rest is counted."""

_INWARDS = (Collective.REDUCE, Collective.GATHER)

SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of random choices; equal seeds give equal answers.",
        rich_help_panel=SEARCH,
    ),
]


def make_problem(
    topology: Topology,
    collective: str | None,
    root: str | None,
    group: str | None,
    groups: str | None,
    transit: bool,
    custom: Path | None,
    shards: Path | None = None,
) -> Problem:
    """Return the problem that the options of a command ask for.

    Raises
    ------
    InputError
        Whatever is wrong with them.
    """
    from colsynth import api
    from colsynth.topology.groups import read_groups, read_roots

    if group is not None and groups is not None:
        phrase = "--group and --groups both say who takes part"
        raise InputError(Diagnostic("CS217", phrase, help="put all groups into --groups"))
    named = {"--group": group, "--groups": groups}
    given = [
        read_groups(text, option, topology) for option, text in named.items() if text is not None
    ]
    return api.make_problem(
        topology,
        collective,
        None if root is None else read_roots(root),
        groups=given[0] if given else None,
        transit=transit,
        custom=custom,
        shards=shards,
    )


def told_groups(problem: Problem, runtime: str) -> dict[str, Any]:
    """Say on stderr who has which rank in process groups; return it as JSON fields.

    Raises
    ------
    ColsynthError
        As `colsynth.api.communicators`.
    """
    from colsynth import api

    if not problem.groups:
        return {}
    found = api.communicators(problem, runtime)
    for group in found[:_SHOWN]:
        _tell(group)
    if len(found) > _SHOWN:
        tell(f"note: and {plural(len(found) - _SHOWN, 'group')} more")
    fields = [_field(group) for group in found]
    return {"group": fields[0]} if len(fields) == 1 else {"groups": fields}


def grouped(topology: Topology, group: str | None) -> tuple[Topology, dict[str, Any]]:
    """Return what a topology is to a process group, and its JSON field; say it on stderr.

    Raises
    ------
    InputError
        CS216: the group cannot be.
    """
    from colsynth.model import Problem
    from colsynth.topology.communicator import communicators
    from colsynth.topology.groups import check_groups, read_groups

    read = None if group is None else read_groups(group, "--group", topology)
    groups = () if read is None else check_groups(read, topology)
    if not groups:
        return topology, {}
    (found,) = communicators(Problem(topology, Collective.ALLGATHER, groups=groups))
    _tell(found)
    return found.problem.topology, {"group": _field(found)}


def _tell(found: Communicator) -> None:
    """Say on stderr who has which rank in a group."""
    from colsynth.topology.damage import renumbered

    topology = found.problem.topology
    count = f"{plural(topology.size, 'GPU')} of a communicator"
    tell(f"note: {topology.name}: {count}, ranks {renumbered(found.old_ranks)}")


def _field(found: Communicator) -> dict[str, Any]:
    topology = found.problem.topology
    names = [topology.nodes[node].name for node in topology.ranks]
    return {"old_ranks": list(found.old_ranks), "gpus": names}


def asked_ranks(problem: Problem) -> str:
    """Return the roots of a problem and its groups in words, to follow the collective."""
    from colsynth.topology.communicator import spell_ranks

    way = "to" if problem.collective in _INWARDS else "from"
    words = ""
    if problem.has_several_roots:
        pairs = zip(problem.roots, problem.weights, strict=True)
        words = f" {way} ranks {spell_ranks([rank for rank, part in pairs if part])}"
    elif problem.root is not None and len(problem.groups) > 1:
        words = f" {way} member {problem.root}"
    elif problem.root is not None:
        words = f" {way} rank {problem.roots[0]}"
    if len(problem.groups) == 1:
        words += f" in group {spell_ranks(problem.groups[0])}"
    elif problem.groups:
        size = len(problem.groups[0])
        words += f" in {plural(len(problem.groups), 'group')} of {size} at the same time"
    return words + (" with transit" if problem.transit else "")


def read_size(option: str, text: str | None) -> int | None:
    """Return a size in bytes; raise InputError CS212 where the text is none."""
    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as fault:
        phrase = f"{option} cannot be {text!r}"
        raise InputError(Diagnostic("CS212", phrase, notes=(str(fault),))) from None
