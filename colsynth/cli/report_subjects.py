"""What ``colsynth report`` is to show: what its subject is, and the values of the page."""

from __future__ import annotations

import json as json_text
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colsynth.cli.compile_options import SearchOptions
from colsynth.cli.constants import read_constants
from colsynth.cli.machine import MachineOptions
from colsynth.cli.members import grouped
from colsynth.cli.streams import STDIN
from colsynth.cli.verify import read_schedule
from colsynth.errors import Diagnostic, InputError, Span
from colsynth.pipeline.options import spelt

if TYPE_CHECKING:
    from colsynth.cli.report_values import Asked, Values
    from colsynth.cost import Model
    from colsynth.model import Problem, Topology
    from colsynth.simulate import Source


@dataclass(frozen=True)
class Wish:
    """The options that say what is shown."""

    topology: str | None
    collective: str | None
    runtime: str | None
    root: int | None
    machine: MachineOptions
    group: str | None
    search: SearchOptions
    model: Path | None
    file: str | None
    asked: Asked

    def place(self, name: str) -> Topology:
        """Return the topology of a name, or of a process group on it."""
        return grouped(self.machine.read(name).topology, self.group)[0]

    def only(self, kind: str, *taken: str) -> None:
        """Refuse options that do not go with a kind of subject (CS217).

        Parameters
        ----------
        kind : str
            Such as ``"a schedule file"``.
        taken : str
            Fields that go with it.
        """
        given = [
            name
            for name in ("topology", "collective", "runtime", "root", "group", "model", "file")
            if getattr(self, name) is not None
        ]
        for name in ("machine", "search"):
            bundle = getattr(self, name)
            own = (one.name for one in fields(bundle) if getattr(bundle, one.name) != one.default)
            given += [] if name in taken else own
        wrong = next((name for name in given if name not in taken), None)
        if wrong is not None:
            phrase = f"{_SPELT.get(wrong, f'--{spelt(wrong)}')} does not go with {kind}"
            raise InputError(Diagnostic("CS217", phrase, help="leave it out"))


_REMAKE = "make the folder again, or name a schedule file in it"

_SPELT = {"level": "-O", "settings": "--set"}


Found = tuple["Values", dict[str, bytes]]


def values_of(subject: str, wish: Wish) -> Found:
    """Return the values of what a subject is, and the bytes they were made of."""
    from colsynth import reading
    from colsynth.cli.report_values import of_comparison

    path, suffix = Path(subject), Path(subject).suffix.lower()
    if path.is_dir():
        return _folder(path, wish)
    named = suffix in {".xml", ".json"}
    if path.is_file() and (named or (wish.topology is not None and suffix != ".npz")):
        _, data = read_schedule(path)
        if suffix == ".json" and (found := _comparison(data)):
            wish.only("what compare --json printed, which says it all")
            return of_comparison(found), {path.name: data}
        return _of_file(path, data, wish)
    if named or subject.endswith("/"):
        reading.read_whole(path, reading.SCHEDULE, "CS502")
    if suffix == ".npz":
        phrase = f"{subject} is a timed schedule, not a program of a runtime"
        advice = "compile one: colsynth report TOPOLOGY -c allgather -r msccl -a ten -o report.html"
        raise InputError(Diagnostic("CS641", phrase, help=advice))
    if wish.topology is not None:
        phrase = f"there is no file or folder {subject}"
        advice = "leave out -t to compile for a topology of this name"
        raise InputError(Diagnostic("CS641", phrase, help=advice))
    return _compiled(subject, wish)


def _comparison(data: bytes) -> Values | None:
    """Return what ``compare --json`` printed; None for another document."""
    try:
        found = json_text.loads(data)
    except ValueError:
        return None
    keys = {"algbw_gb_per_s", "bound_gb_per_s", "sizes_bytes", "best"}
    return found if isinstance(found, dict) and keys <= set(found) else None


def _compiled(subject: str, wish: Wish) -> Found:
    """Compile for a topology, and show the file."""
    from colsynth import api
    from colsynth.runtimes import profile
    from colsynth.simulate import read_source

    machine = ("machine", "group", "model")
    wish.only("a topology to compile for", "collective", "runtime", "root", "search", *machine)
    place = wish.place(subject)
    if wish.runtime is None:
        asked = wish.collective or "allreduce"
        advice = f"colsynth report {subject} -c {asked} -r msccl -o report.html"
        raise InputError(Diagnostic("CS641", "for which runtime?", help=advice))
    constants = read_constants(profile(wish.runtime), wish.model)
    problem = api.make_problem(place, wish.collective, wish.root)
    done = api.compile(
        problem,
        wish.runtime,
        **asdict(wish.search),
        jobs=wish.asked.engine["jobs"],
        several=False,
        model=constants,
        progress=wish.asked.show,
    )
    artefact, summary = done.artefacts[0], done.summary()
    source = read_source(artefact.data, profile(wish.runtime), artefact.name)
    values, inputs = _shown(source, problem, constants, wish, artefact.data, place)
    told = {key: summary[key] for key in ("algorithm", "settings", "algbw_gb_per_s", "gap")}
    notes = [*values.get("notes", []), *(f"compile: {note}" for note in done.notes)]
    return {**values, "compiled": told, "notes": notes}, inputs


def _of_file(path: Path, data: bytes, wish: Wish) -> Found:
    """Show a schedule file, of colsynth or of others."""
    from colsynth.runtimes import profile
    from colsynth.simulate import find_runtime, read_source

    taken = ("topology", "collective", "runtime", "root", "machine", "group", "model")
    wish.only("a schedule file", *taken)
    name = str(path)
    place = _placed(name, wish)
    if wish.runtime is None:
        source = find_runtime(data, name)
    else:
        source = read_source(data, profile(wish.runtime), name)
    collective = source.program.header.collective.value
    if wish.collective not in (None, collective):
        phrase = f"-c {wish.collective}: the file is for {collective}"
        raise InputError(Diagnostic("CS217", phrase, Span(name), help="leave out -c"))
    constants = read_constants(source.profile, wish.model)
    return _shown(source, _problem_of(source, place, wish), constants, wish, data, place)


def _problem_of(source: Source, place: Topology, wish: Wish) -> Any:
    """Return what a file is for; None for a collective of its own."""
    from colsynth import api
    from colsynth.model import Collective

    collective = source.program.header.collective
    if collective is Collective.CUSTOM:
        return None
    return api.make_problem(place, collective.value, wish.root)


def _placed(name: str, wish: Wish) -> Topology:
    """Return the topology that was given for a file or folder."""
    if wish.topology is None:
        advice = f"colsynth report {name} -t dgx-a100 --nodes 2 -o report.html"
        raise InputError(Diagnostic("CS641", "on which topology?", Span(name), help=advice))
    return wish.place(wish.topology)


def _shown(
    source: Source,
    problem: Problem | None,
    constants: Model,
    wish: Wish,
    data: bytes,
    place: Topology,
) -> Found:
    """Return everything about one program."""
    from colsynth.cli.report_values import of_problem, of_program

    program = of_program(source, place, constants, wish.asked)
    values = {
        "kind": "schedule",
        "title": f"{program['collective']} on {place.name}, for {source.profile.name}",
        **({} if problem is None else of_problem(problem, source, constants, wish.asked)),
    }
    notes = [*values.get("notes", []), *program.get("notes", [])]
    if not program["verify"]["ok"]:
        notes.insert(0, _failed(source))
    inputs = {f"topology {place.name}": repr(place).encode(), source.subject: data}
    return {**values, **program, "notes": notes}, inputs


def _failed(source: Source) -> str:
    """Return the note on a file that is wrong, with what to type."""
    name = "-" if source.subject == STDIN else shlex.quote(source.subject)
    command = f"colsynth verify {name} -r {source.profile.name}"
    return f"{source.subject} fails verification; {command!r} says why"


def _folder(path: Path, wish: Wish) -> Found:
    """Show a bundle or a survey."""
    from colsynth import reading

    for name, show in (("manifest.json", _bundle), ("survey.json", _survey)):
        if (path / name).is_file():
            data = reading.read_whole(path / name, reading.MANIFEST, "CS215")
            try:
                found = json_text.loads(data)
                return show(path, found, {name: data}, wish)
            except (ValueError, LookupError, TypeError, AttributeError) as fault:
                phrase = f"{name} is not as colsynth writes it"
                note = "a value is of another type"
                if isinstance(fault, ValueError | KeyError):
                    note = str(fault) if isinstance(fault, ValueError) else f"it lacks {fault}"
                known = Diagnostic("CS215", phrase, Span(str(path / name)), (note,), _REMAKE)
                raise InputError(known) from fault
    phrase = f"{path} is neither a bundle of tune nor a folder of survey"
    advice = "name a folder with manifest.json or survey.json, or a schedule file"
    raise InputError(Diagnostic("CS641", phrase, help=advice))


def _bundle(path: Path, manifest: Values, inputs: dict[str, bytes], wish: Wish) -> Found:
    """Show the files of a bundle, and the schedule of one."""
    from colsynth.cli.report_values import files_of
    from colsynth.runtimes import profile
    from colsynth.simulate import read_source

    wish.only("a bundle", "topology", "root", "machine", "group", "model", "file")
    place, files = _placed(str(path), wish), manifest["files"]
    _require_same("bundle", manifest["inputs"]["topology"], place, path)
    named = {Path(entry["path"]).name: entry for entry in files}
    entry = max(files, key=lambda one: one["max_bytes"], default=None)
    notes = list(_altered(path, manifest, place))
    if wish.file is not None:
        if wish.file not in named:
            advice = f"there are {', '.join(named) or 'none'}"
            raise InputError(Diagnostic("CS641", f"there is no file {wish.file}", help=advice))
        entry = named[wish.file]
    values: Values = {}
    if entry is not None:
        name, data = read_schedule(path / entry["path"])
        source = read_source(data, profile(manifest["inputs"]["runtime"]), name)
        constants = read_constants(source.profile, wish.model)
        problem = _problem_of(source, place, wish)
        values, more = _shown(source, problem, constants, wish, data, place)
        inputs |= more
        notes += values["notes"]
    of = manifest["inputs"]
    title = f"Bundle for {', '.join(of['collectives'])} on {place.name}, {of['runtime']}"
    bundle = {key: manifest[key] for key in ("files", "left_to_library", "left_out")}
    shown = {"kind": "bundle", "title": title, "bundle": bundle, "notes": notes}
    if entry is not None:
        shown["predicted"] = files_of(manifest, entry)
    return {**values, **shown, "shown_file": None if entry is None else entry["path"]}, inputs


def _altered(path: Path, manifest: Values, place: Topology) -> Iterator[str]:
    """Yield notes on what is not as it was when a bundle was made."""
    from colsynth.runtimes import read_file
    from colsynth.tuning.describe import sha256

    for entry in manifest["files"]:
        if sha256(read_file(path / entry["path"])) != entry["sha256"]:
            yield f"{entry['path']} is not as its bundle was made; see its sha256 in manifest.json"
    if sha256(repr(place).encode()) != manifest["inputs"]["topology_sha256"]:
        version = manifest["made_by"]["colsynth"]
        yield f"{place.name} is not as colsynth {version} read it when the bundle was made"


def _require_same(what: str, made_for: str, place: Topology, path: Path) -> None:
    """Refuse another topology than a folder was made for (CS217)."""
    if made_for != place.name:
        phrase = f"the {what} is of {made_for}, and -t names {place.name}"
        advice = f"repeat what the {what} was made with: the topology, --nodes, --group, --drop-gpu"
        raise InputError(Diagnostic("CS217", phrase, Span(str(path)), help=advice))


def _survey(path: Path, table: Values, inputs: dict[str, bytes], wish: Wish) -> Found:
    """Show what every failure of a survey costs."""
    from colsynth.cli.report_values import losses_of
    from colsynth.report import describe_machine

    wish.only("a survey", "topology", "machine", "group")
    place = _placed(str(path), wish)
    _require_same("survey", table["topology"], place, path)
    title = f"Failures of {place.name}: {table['collective']}"
    inputs |= {f"topology {place.name}": repr(place).encode()}
    values = {"survey": table, "machine": describe_machine(place)}
    return {"kind": "survey", "title": title, **values, "losses": losses_of(table, place)}, inputs
