"""From the words on a command line to a Topology."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from colsynth.errors import Diagnostic, InputError, is_whole, require_whole
from colsynth.model import Topology
from colsynth.topology.compact import expand
from colsynth.topology.decode import decode
from colsynth.topology.document import Document, Watch, decode_document, read_document, silent
from colsynth.topology.doubts import doubted
from colsynth.topology.flat import read_flat
from colsynth.topology.generators import generate
from colsynth.topology.presets import preset_path
from colsynth.topology.schema import Flat


def load(
    spec: str | Path,
    *,
    nodes: int | None = None,
    settings: Mapping[str, str | float] | None = None,
    bandwidth: str | None = None,
    latency: str | None = None,
    data: bytes | None = None,
    watch: Watch = silent,
) -> Topology:
    """Return a topology.

    Parameters
    ----------
    spec : str or Path
        A preset or its alias (``"dgx-a100"``), a YAML file, or a generator
        (``"ring:8"``, ``"mesh:4x4"``, ``"torus:4x4x4"``, ``"hypercube:6"``, ``"clique:8"``).
    nodes : int, optional
        Number of boxes, for presets and files in the compact form.
    settings : mapping, optional
        Values of declared parameters, by name; texts, or numbers where they have no unit.
    bandwidth, latency : str, optional
        Of every link of a generator, or of those of each axis: ``"100,200,400 GB/s"``.
    data : bytes, optional
        Of a YAML file that is not to be opened; `spec` is what diagnostics call it.
    watch : callable, optional
        Told (what, done, total) while a large file is read.

    Raises
    ------
    InputError
        Whatever is wrong with the input, at its place.
    """
    spec = str(spec)
    if nodes is not None:
        require_whole("--nodes", nodes)
        if nodes < 1:
            raise _misused("CS126", f"--nodes {nodes}: expected one box or more")
        nodes = int(nodes)  # numpy's would overflow
    if data is None and is_generator(spec):
        _refuse(spec, nodes=nodes, settings=settings)
        return doubted(generate(spec, bandwidth, latency))
    given = {"bandwidth": bandwidth, "latency": latency}
    for option, value in given.items():
        if value is not None:
            hint = "a preset's own figures are changed with --set"
            raise _misused("CS124", f"--{option} is for generators, not for {spec!r}", hint)
    if data is None:
        document = read_document(find_file(spec), watch=watch)
    else:
        document = decode_document(data, spec, watch=watch)
    return doubted(read_topology(document, nodes, _texts(settings), watch))


def is_generator(spec: str) -> bool:
    """Whether a text asks for a generator rather than for a preset or a file."""
    return ":" in spec and not _looks_like_file(spec)


def find_file(spec: str) -> Path:
    """Return the file that a text means: a path, or the file of a preset."""
    return Path(spec) if _looks_like_file(spec) else preset_path(spec)


def read_topology(
    document: Document, nodes: int | None, settings: Mapping[str, str], watch: Watch = silent
) -> Topology:
    """Return the topology that a file describes."""
    form = decode(document)
    if isinstance(form, Flat):
        _refuse(document.file, nodes=nodes, settings=settings)
        return read_flat(document, form, watch)
    return expand(document, form, nodes, settings)


def _texts(settings: Mapping[str, str | float] | None) -> dict[str, str]:
    """Return settings as the command line gives them; refuse what is no text and no number."""
    given: Mapping[str, object] = settings or {}
    if not isinstance(given, Mapping):
        raise _misused("CS123", f"settings cannot be {given!r}", "write settings={'nics': 4}")
    for name, value in given.items():
        if not (isinstance(value, str | float) or is_whole(value)):
            hint = "give a text such as '12.5 GB/s', or a number"
            raise _misused("CS123", f"parameter {name!r} cannot be {value!r}", hint)
    return {name: str(value) for name, value in given.items()}


def _looks_like_file(spec: str) -> bool:
    return "/" in spec or Path(spec).suffix in (".yaml", ".yml", ".json")


def _refuse(spec: str, nodes: int | None, settings: Mapping[str, str | float] | None) -> None:
    given = ["--nodes"] * (nodes is not None) + ["--set"] * bool(settings)
    if given:
        raise _misused("CS124", f"{given[0]} cannot change {spec!r}: it has no boxes or parameters")


def _misused(code: str, phrase: str, hint: str | None = None) -> InputError:
    return InputError(Diagnostic(code, phrase, help=hint))
