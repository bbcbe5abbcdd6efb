"""Options that say what is broken, for every command that takes a topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._help import FAILURES
from colsynth.cli.streams import tell
from colsynth.units import plural

if TYPE_CHECKING:
    from colsynth.model import Topology
    from colsynth.topology.damage import Damage

DropLinkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop-link",
        metavar="A-B",
        help="Remove a link, e.g. gpu0.3-nic0.3; 'A->B' is one direction. Repeatable.",
        rich_help_panel=FAILURES,
        show_default=False,
    ),
]
DropGpuOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop-gpu",
        metavar="G",
        help="Remove a GPU, by name or rank, e.g. gpu0.3 or 3. The GPUs left are renumbered. "
        "Repeatable.",
        rich_help_panel=FAILURES,
        show_default=False,
    ),
]
DropNicOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop-nic",
        metavar="N",
        help="Remove a NIC, e.g. nic0.3. Repeatable.",
        rich_help_panel=FAILURES,
        show_default=False,
    ),
]
DegradeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--degrade",
        metavar="A-B=50%",
        help="Reduce a link to a share of its bandwidth, e.g. gpu0.3-nic0.3=50%. Repeatable.",
        rich_help_panel=FAILURES,
        show_default=False,
    ),
]


def damaged(
    topology: Topology,
    links: list[str] | None,
    gpus: list[str] | None,
    nics: list[str] | None,
    degraded: list[str] | None,
) -> Damage:
    """Return what the failures that a command was given leave; say it on stderr.

    Raises
    ------
    ColsynthError
        Whatever is wrong with them; see `colsynth.api.damage`.
    """
    from colsynth import api

    found = api.damage(
        topology, links=links or (), gpus=gpus or (), nics=nics or (), degraded=degraded or ()
    )
    if found.failures:
        for line in _told(found):
            tell(f"note: {line}")
        for line in found.topology.notes:
            if line not in topology.notes:
                tell(f"note: {line}")
    return found


def _told(found: Damage) -> tuple[str, ...]:
    from colsynth.text import listed
    from colsynth.topology.damage import NAMED, renumbered

    size, lost = found.topology.size, found.healthy.size - found.topology.size
    left = f"{plural(size, 'GPU')} left, " if lost else ""
    head = f"{found.topology.name}: {left}ranks {renumbered(found.old_ranks)}"
    pruned = [found.healthy.nodes[node].name for node in found.pruned]
    if not pruned:
        return (head,)
    return (head, f"leading nowhere any more, and so left out too: {listed(pruned, NAMED)}")


def failures_field(found: Damage) -> dict[str, Any]:
    """Return ``{"failures": ...}`` for ``--json``, nothing where nothing is broken."""
    from colsynth.topology.damage import describe_damage

    return {"failures": describe_damage(found)} if found.failures else {}
