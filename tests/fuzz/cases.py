"""One case: hostile files in the working folder, and the command line that meets them."""

import json
import random
import shutil
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import yaml

from colsynth import api
from colsynth.cli.main import run
from colsynth.errors import ColsynthError
from colsynth.verify.timed import check_timed
from tests.fuzz import samples
from tests.fuzz.lines import GOOD, mutated_line
from tests.fuzz.mutations import mutated_bytes, mutated_document, mutated_text, mutated_value, pick

MOST = {"--chunks-per-gpu": 4096, "--tries": 64}
"""Values of options beyond which work takes long, as it should: matching takes the square of the
chunks, two seconds for so many on three GPUs."""

MOST_RANKS = 32
"""Of a topology that is more than checked: larger ones take seconds, as they should."""

RUNTIMES = ("msccl", "msccl-executor", "rccl")


def prepare(folder):
    """Fill a folder, the working one, with everything that command lines name or go on with."""
    (folder / GOOD).write_text(samples.schedules()[0])
    texts = {"pair": samples.PAIR, "lab": samples.CLUSTER, "custom": samples.CUSTOM}
    for name, text in {**texts, "shards": samples.SHARDS, "model": samples.MODEL}.items():
        (folder / f"{name}.yaml").write_text(text)
    samples.quietly(samples.SURVEY)
    shutil.copytree("kept", "kept.good")
    topology = api.load_topology("ring:2")
    api.tune(topology, ["allgather"], "msccl", [2**10, 2**20], budget=3, journal=Path("good.jsonl"))
    samples.arrays()


def _written(name, text):
    Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))
    return name


def _document(rng, text):
    """Write a damaged YAML file: its values are damaged, or its text."""
    if rng.random() < 0.6:
        return _written("case.yaml", mutated_document(rng, yaml.safe_load(text)))
    return _written("case.yaml", mutated_text(rng, text))


def _schedule(rng):
    text = pick(rng, samples.schedules())
    return _reader(rng, _written("case.xml", mutated_text(rng, text)), pick(rng, RUNTIMES))


def _program(rng):
    """Damage a value, or the text, of a plan of MSCCL++ or of rounds."""
    runtime, text = pick(rng, sorted(samples.documents().items()))
    if rng.random() < 0.3:
        return _reader(rng, _written("case.json", mutated_text(rng, text)), runtime)
    value = mutated_value(rng, json.loads(text), samples.CHUNKS)
    return _reader(rng, _written("case.json", json.dumps(value)), runtime)


def _reader(rng, path, runtime):
    """Return a command that reads a schedule file."""
    place = ["-t", pick(rng, ("clique:2", "clique:2", "ring:4"))]
    simulate = ["simulate", path, *place, "--sizes", "1KiB", "--anyway"]
    words = pick(
        rng,
        (
            ["verify", path, "-r", runtime],
            ["verify", path, "-r", runtime, "--json"],
            ["simulate", path, *place, "--sizes", "1KiB", "--breakdown"],
            [*simulate, "--breakdown"],
            [*simulate, "-r", runtime, "--json"],
            ["show", path, "--anyway"],
            ["show", path, "-r", runtime, "--anyway", "--json"],
            ["export", path, "--to", "chakra", "-o", "traces", "--size", "4MiB", "--force"],
            ["report", path, "--json", "--sizes", "1MiB", "--against", "none"],
            ["env", path, "-r", runtime],
        ),
    )
    return [*words, *place] if words[0] == "report" else words


def _topology(rng):
    path = _document(rng, pick(rng, (samples.PAIR, samples.CLUSTER)))
    words = pick(
        rng,
        (
            ["topology", "check", path],
            ["topology", "show", path, "--json"],
            ["topology", "export", path],
            ["bound", path, "-c", "allgather"],
            ["compile", path, "-c", "allgather", "-r", "rccl", "-a", "ring", "-o", "-"],
        ),
    )
    return words if _is_quick(words) else ["topology", "check", path]


def _custom(rng):
    path = _document(rng, samples.CUSTOM)
    return [pick(rng, ("bound", "synthesize")), "ring:3", "--custom", path]


def _shards(rng):
    path = _document(rng, samples.SHARDS)
    return ["bound", "ring:3", "-c", pick(rng, ("allgather", "broadcast")), "--shards", path]


def _model(rng):
    path = _document(rng, samples.MODEL)
    return ["simulate", GOOD, "-t", "clique:2", "--model", path]


def _line(rng):
    words = mutated_line(rng)
    return words if _is_quick(words) else ["topology", "check", *words[1:2]]


def _is_quick(words):
    """Whether a command line asks for nothing that honest work takes long for."""
    if len(words) < 2 or words[0] in ("verify", "env") or words[1] == "check":
        return True
    given = ((value, most) for option, value in pairwise(words) for most in [MOST.get(option)])
    if any(most and value.isdecimal() and int(value[:20]) > most for value, most in given):
        return False
    place = {"simulate": "-t", "topology": words[1]}.get(words[0], words[0])
    specs = [value for option, value in pairwise(words) if option == place]
    try:
        nodes = [int(value) for option, value in pairwise(words) if option == "--nodes"]
        sizes = [api.load_topology(specs[-1], nodes=n).size for n in (*nodes, None)]
    except Exception:  # noqa: BLE001 - the command will tell
        return True
    return max(sizes) <= MOST_RANKS


def _survey(rng):
    """Damage a line of a survey that is done, or its bytes, and go on with it."""
    shutil.rmtree("kept")
    shutil.copytree("kept.good", "kept")
    _damage(rng, Path("kept") / "journal.jsonl")
    return [*samples.SURVEY, *(["--force"] if rng.random() < 0.3 else [])]


def _tune(rng):
    """Damage the journal of a bundle in the making, or the manifest of one that is done."""
    partial, bundle = Path(".bundle.partial"), Path("bundle")
    for folder in (partial, bundle):
        shutil.rmtree(folder, ignore_errors=True)
    if rng.random() < 0.3:
        bundle.mkdir()
        (bundle / "manifest.json").write_text(mutated_text(rng, '{"format": "colsynth bundle"}'))
        return [*samples.TUNE, "--force"]
    partial.mkdir()
    shutil.copy("good.jsonl", partial / "journal.jsonl")
    _damage(rng, partial / "journal.jsonl")
    return list(samples.TUNE)


def _damage(rng, journal):
    if rng.random() < 0.3:
        journal.write_bytes(mutated_bytes(rng, journal.read_bytes()))
        return
    entries = samples.kept_lines(journal)
    place = rng.randrange(len(entries))
    entries[place] = mutated_value(rng, entries[place])
    journal.write_text("\n".join(map(json.dumps, entries)))


def _archive(rng):
    """Damage the metadata, an array, its header or the bytes of a timed schedule."""
    arrays = dict(pick(rng, samples.arrays()))
    path = Path("case.npz")
    way = rng.randrange(4)
    if way == 0:
        data = mutated_value(rng, json.loads(arrays["metadata"].tobytes()))
        arrays["metadata"] = np.frombuffer(json.dumps(data).encode(), np.uint8)
    elif way == 1:
        name = pick(rng, sorted(arrays))
        column = arrays[name].copy()
        column[rng.randrange(len(column))] = pick(rng, (0, 1, 5, 100, np.iinfo(column.dtype).max))
        arrays[name] = column
    np.savez(path, **arrays)
    if way == 2:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = pick(rng, sorted(members))
        text = mutated_text(rng, members[name][:128].decode("latin-1"))
        members[name] = text.encode("latin-1", "replace") + members[name][128:]
        with zipfile.ZipFile(path, "w", pick(rng, (0, 8, 12, 14))) as archive:
            for key, data in members.items():
                archive.writestr(key, data)
    elif way == 3:
        path.write_bytes(mutated_bytes(rng, path.read_bytes()))
    return path


KINDS = (
    *(
        _schedule,
        _schedule,
        _program,
        _program,
        _schedule,
        _topology,
        _topology,
        _topology,
        _line,
        _line,
        _line,
    ),
    *(_line, _custom, _shards, _model, _survey, _tune, _archive, _archive),
)


def make(seed, number):
    """Return the name of a case and what meets it: a command line, or the path of an archive."""
    kind = KINDS[number % len(KINDS)]
    return kind.__name__.strip("_"), kind(random.Random(f"{seed} {number}"))


def meet(made):
    """Return the exit code of a case; that of an archive is the one that a command would have."""
    if isinstance(made, list):
        return run(made)
    try:
        check_timed(api.read_schedule(made))
    except ColsynthError as fault:
        return fault.exit_code
    return 0
