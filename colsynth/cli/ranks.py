"""``colsynth ranks``: the numbering of ranks that a schedule needs, for a launcher."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import ForceOption, JsonOption, answer_console, emit_json
from colsynth.cli._options import RuntimeOption, SeedOption, read_size
from colsynth.cli.breakdown import micro_or_milli
from colsynth.cli.bundles import bundled
from colsynth.cli.machine import MachineOptions
from colsynth.cli.members import GroupOption, grouped
from colsynth.cli.output import refuse_to_overwrite
from colsynth.cli.places import refuse_stdout
from colsynth.cli.streams import STDIN, is_stdin, read_stdin, require_one_stdin
from colsynth.errors import Diagnostic, InputError
from colsynth.reading import MACHINE, read_whole
from colsynth.units import format_size
from colsynth.writing import write_files

if TYPE_CHECKING:
    from colsynth.model import Program
    from colsynth.ranks import Launch, Network, Place, Reordered

_ORDER = "Order of the hosts"
_USUAL = "256MiB"

TopologyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[TOPOLOGY]",
        autocompletion=complete.topologies,
        help="Preset (dgx-a100), YAML file (lab.yaml), - for stdin, or generator (torus:4x4); "
        "none for hosts of which only a matrix is known.",
        show_default=False,
    ),
]
HostsOption = Annotated[
    Path,
    typer.Option(
        "--hosts",
        metavar="FILE",
        help="File with a host in each line, in the order of the topology's boxes, e.g. "
        "hosts.txt; - for stdin. node7:8 says how many ranks the host takes at most.",
        show_default=False,
    ),
]
ForOption = Annotated[
    str,
    typer.Option(
        "--for",
        metavar="LAUNCHER",
        autocompletion=complete.words("openmpi", "slurm", "torchrun", "mpich"),
        help="Launcher: openmpi, slurm, torchrun or mpich.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="File for the launcher, e.g. ranks.txt. torchrun takes none, and openmpi only for "
        "ranks that go from host to host.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class OrderOptions:
    """Options for putting hosts into another order."""

    reorder: Annotated[
        str | None,
        typer.Option(
            "--reorder",
            metavar="PATTERN",
            help="Find the order of hosts in which this is fastest: ring, tree, halving-doubling, "
            "or a schedule file (allreduce.xml).",
            rich_help_panel=_ORDER,
            show_default=False,
        ),
    ] = None
    matrix: Annotated[
        list[Path] | None,
        typer.Option(
            "--matrix",
            metavar="FILE",
            help="Latency or bandwidth between hosts as measured: CSV that begins with us or GB/s "
            "and the hosts, or JSON, e.g. latency.csv. Repeatable.",
            rich_help_panel=_ORDER,
            show_default=False,
        ),
    ] = None
    logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Log of a sendrecv between two hosts, e.g. a_b_sendrecv.txt; one for each pair. "
            "Repeatable.",
            rich_help_panel=_ORDER,
            show_default=False,
        ),
    ] = None
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="SIZE",
            help="Message size to be fast at, e.g. 1MiB.",
            rich_help_panel=_ORDER,
            show_default=_USUAL,
        ),
    ] = None
    gpus_per_host: Annotated[
        int | None,
        typer.Option(
            "--gpus-per-host",
            metavar="N",
            help="GPUs of each host, where no topology is given.",
            rich_help_panel=_ORDER,
            min=1,
            show_default="1",
        ),
    ] = None

    def size_bytes(self) -> int:
        """Return the size of the message; raise InputError CS212 or CS604 if it is none."""
        size = read_size("--size", _USUAL if self.size is None else self.size) or 0
        if size < 1:
            raise InputError(Diagnostic("CS604", f"--size {self.size} is no message"))
        return size

    def pattern(self, runtime: str) -> str | Program:
        """Return what is to be fast; reads the file of a schedule."""
        from colsynth.cli.verify import read_schedule
        from colsynth.runtimes import profile
        from colsynth.simulate import read_source

        name = str(self.reorder)
        if not name.endswith((".xml", ".json")):
            return name
        subject, data = read_schedule(Path(name))
        return read_source(data, profile(runtime), subject).program

    def network(self, hosts: tuple[str, ...]) -> Network | None:
        """Return what was measured between the hosts; None where nothing was."""
        from colsynth.logs import read_log
        from colsynth.ranks import network_of_logs, read_matrices

        if self.matrix:
            return read_matrices(self.matrix, hosts)
        return network_of_logs([read_log(path) for path in self.logs], hosts) if self.logs else None


@bundled
def ranks(
    *,
    topology: TopologyArgument = None,
    hosts: HostsOption,
    launcher: ForOption,
    output: OutputOption = None,
    machine: MachineOptions,
    group: GroupOption = None,
    order: OrderOptions,
    runtime: RuntimeOption = "msccl",
    seed: SeedOption = 0,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Print how a launcher numbers ranks as a schedule does; find a faster order of hosts."""
    from colsynth.ranks import launch, require_slots
    from colsynth.topology.importers.hostlist import read_hosts
    from colsynth.topology.importers.run import decoded

    _refuse_idle(topology, order)
    refuse_stdout("--output", output)
    require_one_stdin(topology, hosts)
    _refuse_early(launcher, output, order)
    if output is not None:
        refuse_to_overwrite((output,), force)
    data = read_stdin(MACHINE) if is_stdin(hosts) else read_whole(hosts, MACHINE, "CS152")
    listed = read_hosts(decoded(data, STDIN if is_stdin(hosts) else str(hosts)))
    names = tuple(host.name for host in listed)
    places, found = _placed(topology, names, machine, group, order, runtime, seed)
    require_slots(places, listed, has_topology=topology is not None)
    started = launch(launcher, places)
    if output is not None and not started.file:
        raise _no_file(launcher)
    if output is not None:
        write_files({output: started.file.encode()}, replace=force)
    if json:
        emit_json(_as_object(launcher, places, started, output, found, names, order))
        return
    _show(started, output, found, names, order)


def _refuse_early(launcher: str, output: Path | None, order: OrderOptions) -> None:
    """Refuse, before any work, a launcher that is none, and a file that it never takes.

    A found order of hosts keeps the ranks of a host together.
    """
    from colsynth.ranks import require_launcher, takes_file

    require_launcher(launcher)
    if output is not None and not takes_file(launcher, by_host=order.reorder is not None):
        raise _no_file(launcher)


def _no_file(launcher: str) -> InputError:
    phrase = f"--output: {launcher} takes no file for these ranks"
    advice = "leave it out: commands are printed, where the launcher can place the ranks so"
    return InputError(Diagnostic("CS636", phrase, help=advice))


def _refuse_idle(topology: str | None, order: OrderOptions) -> None:
    """Refuse options that nothing would obey."""
    given = {"--matrix": order.matrix, "--log": order.logs, "--size": order.size}
    for option, value in given.items():
        if value is not None and order.reorder is None:
            advice = "name what is to be fast, e.g. --reorder ring"
            raise InputError(Diagnostic("CS636", f"{option} without --reorder", help=advice))
    if order.gpus_per_host is not None and topology is not None:
        phrase = "--gpus-per-host and a topology"
        advice = "leave it out: the topology says how many GPUs a host has"
        raise InputError(Diagnostic("CS636", phrase, help=advice))
    if order.matrix and order.logs:
        raise InputError(Diagnostic("CS636", "--matrix and --log", help="give one of them"))


def _placed(
    topology: str | None,
    hosts: tuple[str, ...],
    machine: MachineOptions,
    group: str | None,
    order: OrderOptions,
    runtime: str,
    seed: int,
) -> tuple[tuple[Place, ...], Reordered | None]:
    """Return where each rank runs, in the order that was asked for or found."""
    from colsynth.ranks import Place, placement_of, reorder, reorder_topology

    network, size = order.network(hosts), order.size_bytes()
    if topology is None:
        if network is None or order.reorder is None:
            phrase = "which topology?"
            advice = "colsynth ranks dgx-a100 --hosts hosts.txt --for slurm, or no topology, but "
            advice += "--matrix latency.csv --reorder ring"
            raise InputError(Diagnostic("CS636", phrase, help=advice))
        each = order.gpus_per_host or 1
        found = reorder(network, order.pattern(runtime), size, each, seed)
        return tuple(Place(hosts[old], gpu) for old in found.order for gpu in range(each)), found
    damage = machine.read(topology)
    place, _ = grouped(damage.topology, group)
    places = placement_of(place, hosts, damage.healthy)
    if order.reorder is None:
        return places, None
    if network is None:
        found = reorder_topology(place, order.pattern(runtime), size, seed, runtime)
    else:
        found = reorder(network, order.pattern(runtime), size, len(places) // len(hosts), seed)
    by_host = {host: [item for item in places if item.host == host] for host in hosts}
    used = [host for host in hosts if by_host[host]]
    return tuple(item for old in found.order for item in by_host[used[old]]), found


def _as_object(
    launcher: str,
    places: tuple[Place, ...],
    started: Launch,
    output: Path | None,
    found: Reordered | None,
    hosts: tuple[str, ...],
    order: OrderOptions,
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "launcher": launcher,
        "ranks": [place._asdict() for place in places],
        "file": started.file or None,
        "path": None if output is None else str(output),
        "commands": _commands(started, output),
    }
    if found is not None:
        answer["reordered"] = {
            "hosts": [hosts[old] for old in found.order],
            "size_bytes": order.size_bytes() if found.bandwidth else None,
            "before_us": found.before * 1e6,
            "after_us": found.after * 1e6,
            "gap": found.gap,
        }
    return answer


def _show(
    started: Launch,
    output: Path | None,
    found: Reordered | None,
    hosts: tuple[str, ...],
    order: OrderOptions,
) -> None:
    console = answer_console()
    if found is not None:
        size = f", {format_size(order.size_bytes())}" if found.bandwidth else ""
        gain = found.before / found.after
        console.print(
            f"{order.reorder}{size}: {micro_or_milli(found.before)} as listed, "
            f"{micro_or_milli(found.after)} reordered ({gain:.2f} times as fast), as predicted",
            soft_wrap=True,
        )
        known = found.gap is not None and found.gap < 10
        gap = f"at most {found.gap:.1%} from the best order" if known else "gap unknown"
        console.print(f"{gap}, {_counted(found)}", soft_wrap=True)
        console.print(f"order: {' '.join(hosts[old] for old in found.order)}", soft_wrap=True)
    if output is None and started.file:
        console.print(started.file.rstrip("\n"), soft_wrap=True)
    for text in _commands(started, output):
        console.print(text, soft_wrap=True)


def _counted(found: Reordered) -> str:
    """Return what the times of an order count."""
    if not found.bandwidth:
        return "by latencies alone: no bandwidth is known, so the size does not count"
    if not found.latency:
        return "by full links alone: no latency is known"
    return "by latencies and full links alone"


def _commands(started: Launch, output: Path | None) -> list[str]:
    """Return what to type, with the name of the file as a shell takes it."""
    name = shlex.quote(str(output or "FILE"))
    return [text.replace("{file}", name) for text in started.commands]
