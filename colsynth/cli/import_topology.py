"""``colsynth topology import``: from what a machine prints to a topology file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.cli.output import write_stdout
from colsynth.cli.places import TOPOLOGY, check_file
from colsynth.cli.streams import STDIN, is_stdin, read_stdin, require_one_stdin, tell
from colsynth.errors import Diagnostic, InputError, did_you_mean, require_least
from colsynth.reading import MACHINE, read_whole

if TYPE_CHECKING:
    from colsynth.topology.importers import Imported, Wishes

_BASES = ("spec", "library", "measured")

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
            autocompletion=complete.words(*_BASES),
            help="Bandwidth of NVLink, xGMI and PCIe: of data sheets, as NCCL and RCCL count, or "
            "as measured.",
        ),
    ] = "spec"

    def wishes(self) -> Wishes:
        """Return what is asked of the layout of a box."""
        from colsynth.topology.importers import Wishes
        from colsynth.topology.importers.rates import read_gpu
        from colsynth.topology.quantities import read_bandwidth

        if self.link_bandwidth not in _BASES:
            phrase = f"--link-bandwidth cannot be {self.link_bandwidth!r}"
            help_ = did_you_mean(self.link_bandwidth, _BASES)
            raise InputError(Diagnostic("CS151", phrase, help=help_))
        if self.boxes is not None:
            require_least("--boxes", self.boxes, 1)
        rate = None
        if self.nic_bandwidth is not None:
            rate = read_bandwidth(self.nic_bandwidth, None)
        return Wishes(self.link_bandwidth, read_gpu(self.gpu) if self.gpu else "", rate)


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
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    json: JsonOption = False,
) -> None:
    """Make a topology file from what a machine prints: dumps, matrices, fabrics."""
    from colsynth.topology.importers import Request, import_topology
    from colsynth.topology.summary import headline
    from colsynth.writing import write_files

    wishes = options.wishes()
    require_one_stdin(*files)
    if output is not None and not is_stdin(output):
        check_file("--output", output, TOPOLOGY, force)
    contents = [_read(path) for path in files]
    found = import_topology(contents, Request(options.boxes, wishes, strict))
    data = found.text.encode()
    if output is not None and not is_stdin(output):
        write_files({output: data}, replace=force)
    if json:
        emit_json(_as_object(found, output))
        return
    for warning in found.warnings:
        tell(_shown(warning), keep="\n")
    if output is None or is_stdin(output):
        write_stdout(data)
    else:
        answer_console().print(f"{output}: {headline(found.topology)}", soft_wrap=True)


def _read(path: Path) -> tuple[str, bytes]:
    if is_stdin(path):
        return STDIN, read_stdin(MACHINE)
    return str(path), read_whole(path, MACHINE, "CS101")


def _shown(warning: Diagnostic) -> str:
    return str(warning).replace(f"error[{warning.code}]", f"warning[{warning.code}]", 1)


def _as_object(found: Imported, output: Path | None) -> dict[str, Any]:
    topology = found.topology
    return {
        "topology": topology.name,
        "formats": list(found.formats),
        "gpus": topology.size,
        "boxes": len(topology.boxes),
        "links": len(topology.links),
        "warnings": [
            {
                "code": warning.code,
                "phrase": warning.phrase,
                "place": None if warning.span is None else str(warning.span),
                "notes": list(warning.notes),
                "help": warning.help,
            }
            for warning in found.warnings
        ],
        "file": None if output is None else str(output),
        "yaml": found.text,
    }
