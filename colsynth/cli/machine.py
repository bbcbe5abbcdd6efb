"""Options for the machine, and for its failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._help import FAILURES, TOPOLOGY
from colsynth.cli.streams import STDIN, is_stdin, read_stdin, tell
from colsynth.errors import Diagnostic, InputError
from colsynth.units import plural

if TYPE_CHECKING:
    from colsynth.model import Topology
    from colsynth.topology.damage import Damage

TopologyArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPOLOGY",
        autocompletion=complete.topologies,
        help="Preset (dgx-a100), YAML file (lab.yaml), - for stdin, or generator (torus:4x4).",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class MachineOptions:
    """Options that go with the name or file of a topology."""

    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            metavar="N",
            help="Number of boxes, e.g. 4.",
            rich_help_panel=TOPOLOGY,
            show_default=False,
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Override a declared parameter of the topology, e.g. nic='50 GB/s'; bandwidths "
            "are wire rates in one direction. Repeatable.",
            rich_help_panel=TOPOLOGY,
            show_default=False,
        ),
    ] = None
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth",
            metavar="RATE",
            help="Wire rate of a generator's links in one direction, e.g. '25 GB/s', or one for "
            "each axis: '100,200,400 GB/s'.",
            rich_help_panel=TOPOLOGY,
            show_default="50 GB/s",
        ),
    ] = None
    latency: Annotated[
        str | None,
        typer.Option(
            "--latency",
            metavar="TIME",
            help="Latency of a generator's links, e.g. '0.5 us', or one for each axis: "
            "'0.5,1,2 us'.",
            rich_help_panel=TOPOLOGY,
            show_default="0.7 us",
        ),
    ] = None
    drop_link: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-link",
            metavar="A-B",
            help="Remove a link, e.g. gpu0.3-nic0.3; 'A->B' is one direction. Repeatable.",
            rich_help_panel=FAILURES,
            show_default=False,
        ),
    ] = None
    drop_gpu: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-gpu",
            metavar="G",
            help="Remove a GPU, by name or rank, e.g. gpu0.3 or 3. The GPUs left are renumbered. "
            "Repeatable.",
            rich_help_panel=FAILURES,
            show_default=False,
        ),
    ] = None
    drop_nic: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-nic",
            metavar="N",
            help="Remove a NIC, e.g. nic0.3. Repeatable.",
            rich_help_panel=FAILURES,
            show_default=False,
        ),
    ] = None
    degrade: Annotated[
        list[str] | None,
        typer.Option(
            "--degrade",
            metavar="A-B=50%",
            help="Reduce a link to a share of its bandwidth, e.g. gpu0.3-nic0.3=50%. Repeatable.",
            rich_help_panel=FAILURES,
            show_default=False,
        ),
    ] = None

    def read(self, spec: str) -> Damage:
        """Return the machine with its failures applied, and note them on stderr.

        Raises
        ------
        ColsynthError
            The options or the file are wrong.
        """
        from colsynth import api

        topology = self._healthy(spec)
        found = api.damage(
            topology,
            links=self.drop_link or (),
            gpus=self.drop_gpu or (),
            nics=self.drop_nic or (),
            degraded=self.degrade or (),
        )
        damage = _told(found) if found.failures else ()
        for line in (*damage, *found.topology.notes):
            tell(f"note: {line}")
        return found

    def _healthy(self, spec: str) -> Topology:
        from colsynth.cli.progress import progress
        from colsynth.reading import DESCRIPTION
        from colsynth.topology import load

        data = read_stdin(DESCRIPTION) if is_stdin(spec) else None
        given = parse_settings(self.settings or [])
        with progress("nothing was done", late=True) as show:
            return load(
                spec if data is None else STDIN,
                nodes=self.nodes,
                settings=given,
                bandwidth=self.bandwidth,
                latency=self.latency,
                data=data,
                watch=show,
            )


def parse_settings(texts: list[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` texts as a mapping; the last of equal names wins."""
    settings: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise InputError(
                Diagnostic(
                    "CS128",
                    f"cannot read the setting {text!r}",
                    help="write --set NAME=VALUE, such as --set nic='12.5 GB/s'",
                )
            )
        settings[name.strip()] = value.strip()
    return settings


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
    """Return ``{"failures": ...}`` for ``--json``; empty without failures."""
    from colsynth.topology.damage import describe_damage

    return {"failures": describe_damage(found)} if found.failures else {}
