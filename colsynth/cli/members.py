"""Options for roots and process groups: which GPUs take part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._help import MEMBERS
from colsynth.cli.streams import tell
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Collective
from colsynth.units import plural

if TYPE_CHECKING:
    from colsynth.model import Problem, Topology
    from colsynth.topology.communicator import Communicator

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
_SHOWN = 4
"""Groups whose ranks are told before the rest is counted."""

_INWARDS = (Collective.REDUCE, Collective.GATHER)


@dataclass(frozen=True)
class MembersOptions:
    """Roots, groups and custom collectives."""

    root: Annotated[
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
    ] = None
    group: GroupOption = None
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="LISTS",
            help="Process groups of equal size that run at the same time, e.g. '0-7;8-15'.",
            rich_help_panel=MEMBERS,
            show_default=False,
        ),
    ] = None
    transit: Annotated[
        bool,
        typer.Option(
            "--transit",
            help="Let GPUs outside a group forward its chunks; for bound and synthesize.",
            rich_help_panel=MEMBERS,
        ),
    ] = False
    custom: Annotated[
        Path | None,
        typer.Option(
            "--custom",
            metavar="FILE",
            help="Custom collective, for bound and synthesize: YAML file that lists who holds "
            "and who wants which chunks, e.g. mine.yaml.",
            rich_help_panel=MEMBERS,
            show_default=False,
        ),
    ] = None

    def problem(
        self,
        topology: Topology,
        collective: str | None,
        shards: Path | None = None,
        sketch: Path | None = None,
        algorithm: str | None = None,
    ) -> Problem:
        """Return the problem of a command, and note on stderr what of a sketch is not used.

        Raises
        ------
        InputError
            The options are wrong.
        """
        from colsynth import api
        from colsynth.api.problem import beside_custom
        from colsynth.sketches.given import unused
        from colsynth.topology.groups import read_groups, read_roots

        if self.group is not None and self.groups is not None:
            phrase = "--group and --groups both say who takes part"
            raise InputError(Diagnostic("CS217", phrase, help="put all groups into --groups"))
        if self.group is not None and self.custom is not None:
            raise beside_custom("group")
        named = {"--group": self.group, "--groups": self.groups}
        given = [
            read_groups(text, option, topology)
            for option, text in named.items()
            if text is not None
        ]
        found = None if sketch is None else api.read_sketch(sketch, topology)
        if found is not None:
            left = unused(found.sketch, algorithm)
            for note in (*found.notes, *filter(None, [left])):
                tell(f"note: {note}")
        problem = api.make_problem(
            topology,
            collective,
            None if self.root is None else read_roots(self.root),
            groups=given[0] if given else None,
            transit=self.transit,
            custom=self.custom,
            shards=shards,
            sketch=None if found is None else found.sketch,
        )
        _tell_wires(topology, problem.topology)
        return problem


@dataclass(frozen=True)
class OneGroupOptions:
    """A root and one process group, for commands that take no more."""

    root: Annotated[
        int | None,
        typer.Option(
            "--root",
            metavar="R",
            help="Root rank of a broadcast, reduce, scatter or gather, e.g. 3; with --group, its "
            "place in the group.",
            rich_help_panel=MEMBERS,
            show_default="0",
        ),
    ] = None
    group: GroupOption = None


def grouped(topology: Topology, group: str | None) -> tuple[Topology, dict[str, Any]]:
    """Return the topology of a process group, and its JSON field; note the ranks on stderr.

    Raises
    ------
    InputError
        CS216: the group is invalid.
    """
    from colsynth.model import Problem
    from colsynth.topology.communicator import communicators
    from colsynth.topology.groups import check_groups, read_groups
    from colsynth.topology.wires import choose_for_groups

    read = None if group is None else read_groups(group, "--group", topology)
    groups = () if read is None else check_groups(read, topology)
    if not groups:
        return topology, {}
    chosen = choose_for_groups(topology, groups)
    _tell_wires(topology, chosen)
    (found,) = communicators(Problem(chosen, Collective.ALLGATHER, groups=groups))
    _tell(found)
    return found.problem.topology, {"group": _field(found)}


def _tell_wires(before: Topology, after: Topology) -> None:
    """Note on stderr that a group has slower wires than the machine."""
    if after is not before:
        tell(f"note: {after.name}: the group takes slower wires, as no faster ones join its GPUs")


def told_groups(problem: Problem, runtime: str) -> dict[str, Any]:
    """Note the ranks of process groups on stderr; return them as JSON fields.

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


def _tell(found: Communicator) -> None:
    """Note the ranks of a group on stderr."""
    from colsynth.topology.damage import renumbered

    topology = found.problem.topology
    count = f"{plural(topology.size, 'GPU')} of a communicator"
    tell(f"note: {topology.name}: {count}, ranks {renumbered(found.old_ranks)}")


def _field(found: Communicator) -> dict[str, Any]:
    names = list(found.problem.topology.gpu_names)
    return {"old_ranks": list(found.old_ranks), "gpus": names}


def asked_ranks(problem: Problem) -> str:
    """Return text for the roots and groups of a problem, to follow the collective."""
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
