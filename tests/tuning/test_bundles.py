"""Bundles: complete ranges, loadable by each runtime, every file verified, equal bytes."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from math import lcm
from random import Random

import pytest

from colsynth import api, topology
from colsynth.errors import InputError
from colsynth.runtimes import profile
from colsynth.runtimes.selection import taken_sizes
from colsynth.search.least_times import TOLERANCE
from colsynth.search.levels import PROTOCOLS
from colsynth.search.library import Library
from colsynth.search.workshop import Workshop
from colsynth.tuning import describe
from colsynth.verify import verify_bytes
from tests.tuning.loading import Call, Directory, Msccl, job

RUNTIMES = ["msccl", "msccl-executor", "rccl"]
CLUSTERS = [("dgx-a100", 2), ("mi300x", 1)]
NAMES = ["allreduce", "allgather"]
SIZES = (1024, 65536, 2**22, 2**26)


def tuned(name, boxes, runtime, **options):
    settings = {"algorithms": ("forest", "allpairs2"), "budget": 12, **options}
    value = topology.load(name, nodes=boxes)
    return api.tune(value, settings.pop("names", NAMES), runtime, SIZES, **settings)


@pytest.fixture(scope="module", params=[(*c, r) for c in CLUSTERS for r in RUNTIMES], ids=str)
def published(request, tmp_path_factory):
    """(bundle, its folder, runtime, ranks)"""
    name, boxes, runtime = request.param
    bundle = tuned(name, boxes, runtime)
    place = tmp_path_factory.mktemp("bundles") / "bundle"
    api.write_bundle(bundle, place)
    return bundle, place, runtime, 8 * boxes


def manifest(place):
    return json.loads((place / "manifest.json").read_text())


def spans(told, collective, mode):
    """Return (least, most, path or None) of a collective and mode, in order."""
    found = [
        (entry["min_bytes"], entry["max_bytes"], entry.get("path"))
        for entry in (*told["files"], *told["left_to_library"])
        if entry["collective"] == collective and entry.get(mode, True)
    ]
    return sorted(found, key=lambda span: span[0])


@pytest.mark.parametrize("collective", NAMES)
@pytest.mark.parametrize("mode", ["inplace", "outofplace"])
def test_ranges_have_no_hole_and_no_overlap(published, collective, mode):
    _, place, runtime, _ = published
    found = spans(manifest(place), collective, mode)
    limits = profile(runtime)
    assert found[0][0] == limits.least_min_bytes
    *files, last = found
    assert last[1:] == (None, None)
    assert all(most is not None for _, most, _ in files)
    for (_, most, _), (least, _, _) in itertools.pairwise(found):
        assert least == most + 1


def calls(told, random, ranks, collective):
    """Yield calls near every edge of the ranges, and anywhere between."""
    edges = [edge for s in told["files"] for edge in (s["min_bytes"], s["max_bytes"]) if edge]
    grain = lcm(ranks, 4096) * 4
    for _ in range(40):
        nbytes = random.choice([*edges, random.randrange(1, 2**31)])
        nbytes = max(nbytes + random.choice([-grain, 0, grain]), grain) // grain * grain
        if nbytes < 2**31:
            yield Call(collective, nbytes // 4, 4, random.random() < 0.5)


@pytest.mark.parametrize("collective", NAMES)
def test_the_runtime_picks_the_file_that_the_manifest_names(published, collective):
    """Sizes are multiples of all chunks; others are the library's, whatever the file."""
    _, place, runtime, ranks = published
    told, loaded = manifest(place), job(runtime, place, ranks)
    picked = set()
    for call in calls(told, Random(1), ranks, collective):
        mode = "inplace" if call.in_place else "outofplace"
        (named,) = (
            path
            for least, most, path in spans(told, collective, mode)
            if least <= call.bytes and (most is None or call.bytes <= most)
        )
        found = loaded.pick(call)
        assert (found and found.relative_to(place).as_posix()) == named
        picked.add(named)
    assert picked - {None}


def test_the_config_says_the_same_as_the_list(published):
    _, place, runtime, ranks = published
    if profile(runtime).config is None:
        assert not list(place.glob("*.xml"))
        return
    plain, registered = Msccl(place, ranks), Msccl(place, ranks, config=True)
    assert plain.entries == registered.entries


def test_every_file_is_verified_and_told_with_its_checksum(published):
    bundle, place, runtime, ranks = published
    told = manifest(place)
    assert told["files"]
    names = {path.name for path in (place / "schedules").iterdir()}
    assert names == {entry["path"].rpartition("/")[2] for entry in told["files"]}
    for entry, file in zip(told["files"], bundle.files, strict=True):
        data = (place / entry["path"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        assert data == file.artefact.data
        assert verify_bytes(data, profile(runtime), subject="x", single_node=ranks == 8).ok
        assert entry["predicted"]
        assert all(point["time_us"] > 0 for point in entry["predicted"])
    for name, checksum in told["beside"].items():
        assert hashlib.sha256((place / name).read_bytes()).hexdigest() == checksum
    assert told["inputs"]["sizes_bytes"] == list(SIZES)
    assert told["inputs"]["algorithms"] == ["forest", "allpairs2"]


def test_the_manifest_tells_the_root_whichever_collective_has_it():
    bundle = tuned("mi300x", 1, "msccl", names=["allgather", "broadcast"], root=3, budget=2)
    told = describe.manifest_of(bundle)
    assert told["inputs"]["root"] == 3
    assert {entry["settings"] for entry in told["files"]} == {str(f.plan) for f in bundle.files}


def contents(place):
    return {p.relative_to(place): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}


def test_two_runs_give_the_same_bytes(tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        bundle = tuned("mi300x", 1, "rccl", names=["allgather"], budget=6, jobs=jobs)
        api.write_bundle(bundle, tmp_path / name)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_work_that_was_interrupted_goes_on(tmp_path, monkeypatch):
    """What the journal knows is not evaluated again, and the bundle is the same."""
    journal = tmp_path / "journal.jsonl"
    whole = tuned("mi300x", 1, "rccl", names=["allgather"], budget=6, journal=journal)
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[:4]) + '\n{"key": "cut o')
    done = []
    monkeypatch.setattr(Workshop, "measure", counted(done))
    again = tuned("mi300x", 1, "rccl", names=["allgather"], budget=6, journal=journal)
    assert describe.manifest_of(again) == describe.manifest_of(whole)
    assert 0 < len(done) < 6


def counted(done):
    measure = Workshop.measure

    def counting(workshop, asked):
        done.append(asked)
        return measure(workshop, asked)

    return counting


def test_a_protocol_for_small_messages_hands_over_to_the_next_file(monkeypatch):
    """It serves the largest message it is for; the next file begins right behind."""
    monkeypatch.delitem(PROTOCOLS, "LL")
    monkeypatch.setitem(PROTOCOLS, "LL128", 3 * 2**17)
    monkeypatch.setattr(Library, "fastest", lambda *_, **__: None)
    value = topology.load("mi300x")
    options = {"algorithms": ("forest",), "budget": 2}
    bundle = api.tune(value, ["allgather"], "rccl", (2**10, 2**18, 2**30), **options)
    told = [(f.plan.protocol, f.min_bytes, f.max_bytes) for f in bundle.files]
    (left,) = bundle.left_to_library
    end = left.min_bytes - 1
    assert told == [("LL128", 0, 3 * 2**17), ("Simple", 3 * 2**17 + 1, end)]
    header = bundle.files[-1].artefact.program.header
    assert end == header.max_bytes == header.chunks * 65536 * 2**21
    assert (left.max_bytes, left.reason) == (None, "rccl counts no more")


def test_a_measured_size_uses_its_own_file_where_ranks_cannot_share_it():
    """nccl-tests makes 1048560 bytes of 1 MiB on five ranks; the file's range begins there."""
    machine, sizes = topology.load("ring:5"), (1 << 10, 1 << 20, 1 << 26)
    made = api.tune(machine, ["allgather"], "msccl", sizes, algorithms=("forest",), budget=4)
    files = [file for file in made.files if file.predicted]
    assert any(file.min_bytes == 1048560 for file in files)
    for file in files:
        law = taken_sizes(file.artefact.program.header, profile("msccl"))
        assert all(law.takes(point.size_bytes) for point in file.predicted)


@pytest.mark.parametrize(
    ("machine", "collective", "sizes", "algorithm"),
    [
        ("ring:6", "allgather", (2**26,), "forest"),
        ("clique:5", "allgather", (2**16, 2**20), "allpairs"),
        ("ring:6", "alltoall", (2**25, 2**26), "allpairs"),
    ],
)
def test_files_serve_the_calls_of_sizes_that_ranks_cannot_share_evenly(
    machine, collective, sizes, algorithm
):
    """Files for round sizes are faster here, but none of these calls would use them."""
    found = api.tune(
        topology.load(machine), [collective], "rccl", sizes, algorithms=(algorithm,), budget=40
    )
    laws = [taken_sizes(f.artefact.program.header, profile("rccl")) for f in found.files]
    assert all(any(law.takes(size) for law in laws) for size in sizes)
    assert found.unserved == ()


@pytest.mark.parametrize(("name", "sizes"), [("mi300x", (2**20, 2**26)), ("clique:3", (2**26,))])
def test_files_are_as_fast_as_what_compile_finds_for_a_size(name, sizes):
    """Rails send their shards in calls that suit one size; fewer files may cost 2 %."""
    machine = topology.load(name)
    files = api.tune(machine, ["allgather"], "rccl", sizes).files
    found = {point.size_bytes: point.seconds for file in files for point in file.predicted}
    for size in sizes:
        problem = api.make_problem(machine, "allgather")
        done = api.compile(problem, "rccl", size=size, several=False)
        assert found[size] <= done.predicted[-1].seconds * float(1 + TOLERANCE)


def test_sizes_whose_calls_are_the_same_have_ranges_of_their_own():
    machine, sizes = topology.load("ring:5"), (16, 32, 1 << 20, (1 << 20) + 1)
    options = {"algorithms": ("forest",), "budget": 4}
    made = api.tune(machine, ["allgather"], "msccl-executor", sizes, **options)
    spans = sorted(
        (x.min_bytes, x.max_bytes) for x in (*made.files, *made.left_to_library) if x.max_bytes
    )
    assert all(least <= most for least, most in spans)
    assert all(most + 1 == least for (_, most), (least, _) in itertools.pairwise(spans))


def test_only_a_bundle_gives_way_and_only_when_told_to(tmp_path):
    bundle = tuned("mi300x", 1, "rccl", names=["allgather"], budget=1)
    place = tmp_path / "bundle"
    api.write_bundle(bundle, place)
    before = contents(place)
    with pytest.raises(InputError) as caught:
        api.write_bundle(bundle, place)
    assert caught.value.diagnostic.code == "CS207"
    api.write_bundle(bundle, place, force=True)
    assert contents(place) == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(InputError):
        api.write_bundle(bundle, other, force=True)
    assert contents(other) == {(other / "notes.txt").relative_to(other): b"mine"}


def test_a_write_that_fails_leaves_the_old_bundle(tmp_path, monkeypatch):
    bundle = tuned("mi300x", 1, "rccl", names=["allgather"], budget=1)
    place = tmp_path / "bundle"
    api.write_bundle(bundle, place)
    before = contents(place)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules["colsynth.tuning.publish"], "_env", full)
    with pytest.raises(InputError) as caught:
        api.write_bundle(bundle, place, force=True)
    assert caught.value.diagnostic.code == "CS208"
    assert contents(place) == before


def test_the_checker_itself_refuses_what_a_runtime_would_choke_on(tmp_path):
    bundle = tuned("mi300x", 1, "rccl", names=["allgather"], budget=1)
    place = tmp_path / "bundle"
    api.write_bundle(bundle, place)
    (file,) = (place / "schedules").iterdir()
    twin = file.with_name("twin.xml")
    twin.write_bytes(file.read_bytes())
    call = Call("allgather", 2**18, 4, True)
    with pytest.raises(AssertionError, match="overlap"):
        Directory(place, 8).pick(call)
    twin.write_text("<algo/>")
    with pytest.raises(AssertionError, match="lacks"):
        Directory(place, 8)


def test_progress_goes_on_from_one_collective_to_the_next():
    told = []
    api.tune(
        topology.load("ring:4"),
        ["allgather", "allreduce"],
        "torch",
        SIZES[:2],
        algorithms=("ring",),
        budget=4,
        progress=lambda *row: told.append(row),
    )
    assert {what.split()[1].rstrip(",") for what, _, _ in told} == {"allgather", "allreduce"}
    assert len({most for _, _, most in told}) == 1
    counts = [done for _, done, _ in told]
    assert counts == sorted(counts)
    assert counts[-1] <= told[-1][2]
