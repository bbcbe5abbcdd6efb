"""``colsynth topology import``: from what a machine prints to a topology file."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import ForceOption, JsonOption, answer_console, emit_json
from colsynth.cli.places import YAML, check_file
from colsynth.cli.streams import (
    STDIN,
    is_stdin,
    read_stdin,
    require_one_stdin,
    tell_warnings,
    warnings_field,
)
from colsynth.errors import Diagnostic, InputError, Span, did_you_mean, require_least
from colsynth.reading import MACHINE, read_whole
from colsynth.units import parse_percent

if TYPE_CHECKING:
    from colsynth.topology.importers import Imported, Request, Wishes

_MOST_SHARE = 1000
"""Of oversubscription; no fabric is as tapered."""

FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="What the machine, its fabric or another tool printed; - reads one from stdin.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ImportOptions:
    """What the files do not say."""

    boxes: Annotated[
        int | None,
        typer.Option("--boxes", metavar="N", help="Number of equal boxes, e.g. 4."),
    ] = None
    box: Annotated[
        str | None,
        typer.Option(
            "--box",
            metavar="BOX",
            autocompletion=complete.topologies,
            help="What every host of a fabric is: a preset such as dgx-h100, a topology file, or "
            "a dump of a node.",
            show_default=False,
        ),
    ] = None
    fabric: Annotated[
        Path | None,
        typer.Option(
            "--fabric",
            metavar="FILE",
            help="Output of ibnetdiscover, or topology.conf or topology.yaml of Slurm.",
            show_default=False,
        ),
    ] = None
    hosts: Annotated[
        Path | None,
        typer.Option(
            "--hosts",
            metavar="FILE",
            help="Hosts of the job in the order of the boxes, one per line.",
            show_default=False,
        ),
    ] = None
    oversubscription: Annotated[
        str,
        typer.Option(
            "--oversubscription",
            metavar="X",
            help="Bandwidth below a switch over that of its uplinks, for Slurm's files, e.g. 2.",
        ),
    ] = "1"
    nic_bandwidth: Annotated[
        str | None,
        typer.Option(
            "--nic-bandwidth",
            metavar="RATE",
            help="Wire rate of every NIC in one direction, e.g. '400 Gb/s'.",
            show_default=False,
        ),
    ] = None
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="NAME",
            help="GPU, where the file does not name it, e.g. h100 or mi250.",
            show_default=False,
        ),
    ] = None
    link_bandwidth: Annotated[
        str,
        typer.Option(
            "--link-bandwidth",
            metavar="spec|library|measured",
            autocompletion=complete.words("spec", "library", "measured"),
            help="Bandwidth of NVLink, xGMI and PCIe: of data sheets, as NCCL and RCCL count, or "
            "as measured.",
        ),
    ] = "spec"

    def request(self, strict: bool) -> Request:
        """Return what is asked beside the files, and read what options name."""
        from colsynth.topology.importers import Request

        if self.boxes is not None:
            require_least("--boxes", self.boxes, 1)
        box: Any = self.box
        if self.box is not None and _is_other_file(self.box):
            box = _read(Path(self.box))
        fabric, hosts = (None if x is None else _read(x) for x in (self.fabric, self.hosts))
        share = self._share()
        return Request(self.boxes, self._wishes(), fabric, hosts, box, share, strict)

    def _wishes(self) -> Wishes:
        from colsynth.topology.importers import Wishes
        from colsynth.topology.importers.rates import BASES, read_gpu
        from colsynth.topology.quantities import read_bandwidth

        if self.link_bandwidth not in BASES:
            phrase = f"--link-bandwidth cannot be {self.link_bandwidth!r}"
            help_ = did_you_mean(self.link_bandwidth, BASES)
            raise InputError(Diagnostic("CS151", phrase, help=help_))
        gpu = "" if self.gpu is None else read_gpu(self.gpu)
        if self.nic_bandwidth is None:
            return Wishes(self.link_bandwidth, gpu)
        rate = read_bandwidth(self.nic_bandwidth, Span("--nic-bandwidth"))
        return Wishes(self.link_bandwidth, gpu, rate)

    def _share(self) -> Fraction:
        try:
            share = parse_percent(f"{self.oversubscription}%") * 100
        except ValueError:
            share = Fraction(0)
        if not 1 <= share <= _MOST_SHARE:
            phrase = f"--oversubscription {self.oversubscription!r} is no number from 1 on"
            raise InputError(Diagnostic("CS151", phrase, help="write 1, 2, 1.5 or 8/3"))
        return share


def import_(
    *,
    files: FilesArgument,
    options: ImportOptions,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what would be a warning.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Topology file, e.g. cluster.yaml."),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Make a topology file from what a machine prints: dumps, matrices, fabrics."""
    from colsynth.topology.importers import import_topology
    from colsynth.topology.summary import headline
    from colsynth.writing import write_files

    require_one_stdin(*files, options.box, options.fabric, options.hosts)
    if output is not None and not is_stdin(output):
        check_file("--output", output, YAML, force)
    request = options.request(strict)
    found = import_topology([_read(path) for path in files], request)
    if output is not None and not is_stdin(output):
        write_files({output: found.text.encode()}, replace=force)
    if json:
        emit_json(_as_object(found, output))
        return
    tell_warnings(found.warnings)
    if output is None or is_stdin(output):
        print(found.text, end="")
    else:
        answer_console().print(f"{output}: {headline(found.topology)}", soft_wrap=True)


def _is_other_file(box: str) -> bool:
    """Whether ``--box`` names a file, rather than a preset."""
    return is_stdin(box) or "/" in box or Path(box).is_file()


def _read(path: Path) -> tuple[str, bytes]:
    if is_stdin(path):
        return STDIN, read_stdin(MACHINE)
    return str(path), read_whole(path, MACHINE, "CS101")


def _as_object(found: Imported, output: Path | None) -> dict[str, Any]:
    topology = found.topology
    return {
        "topology": topology.name,
        "formats": list(found.formats),
        "gpus": topology.size,
        "boxes": len(topology.boxes),
        "links": len(topology.links),
        "warnings": warnings_field(found.warnings),
        "file": None if output is None else str(output),
        "yaml": found.text,
    }
