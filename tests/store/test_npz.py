"""A schedule read back is the schedule written; no damage to a file goes unnoticed or crashes."""

import dataclasses
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from colsynth import api, store
from colsynth.errors import InputError
from colsynth.model import TimedPhase
from colsynth.store import reader, writer
from colsynth.store.columns import columns_of
from colsynth.verify.timed import check_timed
from tests.watchdog import at_most


def mine(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "version: 1\nchunks:\n  - {held-by: [0], wanted-by: [1-3], count: 2}\n"
        "  - {held-by: [1-3], wanted-by: [0], reduces: true}\n"
    )
    return path


GROUPS = [range(4), [9, 8, 12, 13]]
CASES = {
    "mesh": ("mesh:3x3", {}, {}, {"chunks_per_gpu": 3}),
    "switches": ("dgx-a100", {"nodes": 2}, {"collective": "allreduce"}, {"size": 10**6}),
    "groups": (
        "torus:4x4",
        {},
        {"collective": "broadcast", "root": 1, "groups": GROUPS, "transit": True},
        {},
    ),
    "exchange": ("ndv2", {}, {"collective": "alltoall"}, {"seed": 5, "policy": "rarest"}),
}


def made(name):
    spec, shape, problem, options = CASES[name]
    topology = api.load_topology(spec, **shape)
    asked = api.make_problem(topology, **{"collective": "allgather", **problem})
    return api.synthesize(asked, **options).schedule


def assert_equal(one, other):
    for field in dataclasses.fields(one):
        if field.name != "phases":
            assert getattr(one, field.name) == getattr(other, field.name)
    assert len(one.phases) == len(other.phases)
    for first, second in zip(one.phases, other.phases, strict=True):
        assert first.direction is second.direction
        columns = columns_of(second)
        for name, array in columns_of(first).items():
            assert array.dtype == columns[name].dtype
            assert np.array_equal(array, columns[name])


@pytest.mark.parametrize("name", CASES)
def test_what_was_written_is_read_back(name, tmp_path):
    schedule = made(name)
    store.write_npz(schedule, tmp_path / "a.npz")
    found = store.read_npz(tmp_path / "a.npz")
    assert_equal(found, schedule)
    check_timed(found)


def test_a_custom_collective_keeps_its_demands(tmp_path):
    problem = api.make_problem(api.load_topology("clique:4"), None, custom=mine(tmp_path))
    schedule = api.synthesize(problem).schedule
    store.write_npz(schedule, tmp_path / "a.npz")
    assert_equal(store.read_npz(tmp_path / "a.npz"), schedule)


def test_numpy_alone_opens_a_file_without_pickle(tmp_path):
    schedule = made("mesh")
    store.write_npz(schedule, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert np.array_equal(found["phase0_chunk"], schedule.phases[0].chunk)
        for name in found.files:
            words = name.replace("phase0", "phaseP").split("_", 1)
            documented = name if words[0] != "phaseP" else f"_{words[1]}"
            assert f"{documented}`" in store.__doc__ or f"{documented}[" in store.__doc__


def test_members_carry_no_time_and_are_compressed(tmp_path):
    store.write_npz(made("mesh"), tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_DEFLATED}


@pytest.mark.parametrize("name", CASES)
def test_link_rows_are_what_transfers_occupy(name):
    for phase in made(name).phases:
        moved, rows = store.transfer_rows(phase), store.link_rows(phase)
        assert np.array_equal(moved.start, phase.starts())
        assert np.array_equal(moved.hop, phase.hop_of())
        expected = []
        for row, (start, _, hop, _, _, chunk) in enumerate(zip(*moved, strict=True)):
            for place in range(phase.hops.first[hop], phase.hops.first[hop + 1]):
                begin, end = start + phase.hops.begin[place], start + phase.hops.end[place]
                expected.append((begin, end, phase.hops.links[place], chunk, row))
            assert end + phase.hops.lag[hop] == moved.end[row]
        assert list(zip(*rows, strict=True)) == expected


def test_rows_can_be_read_in_parts():
    (phase,) = made("mesh").phases
    whole = store.link_rows(phase)
    cut = len(phase.hops) // 3
    parts = [store.link_rows(phase, 0, cut), store.link_rows(phase, cut)]
    for name in ("start", "end", "link", "chunk"):
        assert np.array_equal(
            np.concatenate([getattr(x, name) for x in parts]), getattr(whole, name)
        )


def test_any_process_gives_the_same_bytes(tmp_path):
    store.write_npz(made("switches"), tmp_path / "here.npz")
    code = (
        "from tests.store.test_npz import made; from colsynth import store;"
        "from pathlib import Path; import sys; store.write_npz(made('switches'), Path(sys.argv[1]))"
    )
    for seed in ("0", "4242"):
        there = tmp_path / f"there{seed}.npz"
        subprocess.run(
            [sys.executable, "-c", code, str(there)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            check=True,
        )
        assert there.read_bytes() == (tmp_path / "here.npz").read_bytes()


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError("full")])
def test_a_file_is_written_whole_or_not_at_all(fault, tmp_path, monkeypatch):
    old = tmp_path / "a.npz"
    old.write_text("mine")

    def fails(_stream, array, **_options):
        if array.dtype == np.int64:
            raise fault

    monkeypatch.setattr(writer, "write_array", fails)
    with pytest.raises((KeyboardInterrupt, InputError)):
        store.write_npz(made("mesh"), old)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
    assert old.read_text() == "mine"


def refused(path):
    with pytest.raises(InputError) as caught:
        store.read_npz(path)
    assert caught.value.diagnostic.code == "CS240"
    return caught.value.diagnostic


def test_files_that_are_no_schedules(tmp_path):
    path = tmp_path / "a.npz"
    assert "No such file" in str(refused(path))
    path.write_text("<algo>")
    refused(path)
    np.savez(path, something=np.arange(3))
    refused(path)


def rewritten(path, **changes):
    """Write the mesh's file with some arrays changed; None leaves one out."""
    store.write_npz(made("mesh"), path)
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def edited(path, **changes):
    import json

    store.write_npz(made("mesh"), path)
    with np.load(path) as found:
        data = json.loads(found["metadata"].tobytes()) | changes
    rewritten(path, metadata=np.frombuffer(json.dumps(data).encode(), np.uint8))


@pytest.mark.parametrize(
    "changes",
    [
        {"phase0_chunk": None},
        {"phase0_chunk": np.zeros(3, np.uint16)},
        {"phase0_chunk": np.zeros((2, 108), np.uint16)},
        {"phase0_links": np.full(24, 99, np.int32)},
        {"phase0_links": np.full(24, -1, np.int32)},
        {"phase0_source": np.full(24, 9, np.int32)},
        {"phase0_target": np.zeros(23, np.int32)},
        {"phase0_source": np.array([None] * 24, object)},
        {"phase0_begin": np.zeros(3, np.int64)},
        {"phase0_lag": np.zeros(3, np.int64)},
        {"phase0_first_link": np.zeros(25, np.int64)},
        {"phase0_run_length": np.zeros(1, np.int64)},
        {"link_kind": np.full(24, 7, np.int32)},
        {"link_source": np.full(24, 9, np.int32)},
        {"metadata": np.frombuffer(b"{", np.uint8)},
        {"metadata": np.frombuffer(b"[" * 10**5, np.uint8)},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(changes, tmp_path):
    rewritten(tmp_path / "a.npz", **changes)
    refused(tmp_path / "a.npz")


def test_an_unchanged_copy_is_read(tmp_path):
    """So that the refusals above are about the changes."""
    rewritten(tmp_path / "a.npz")
    assert isinstance(store.read_npz(tmp_path / "a.npz").phases[0], TimedPhase)


def test_files_of_the_first_version_have_no_lag(tmp_path):
    edited(tmp_path / "a.npz", version=1)
    with np.load(tmp_path / "a.npz") as found:
        arrays = {name: found[name] for name in found.files if not name.endswith("lag")}
    np.savez(tmp_path / "b.npz", **arrays)
    assert_equal(store.read_npz(tmp_path / "b.npz"), made("mesh"))
    check_timed(store.read_npz(tmp_path / "b.npz"))


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"version": 3}, "version 3"),
        ({"format": "other"}, "not a schedule file"),
        ({"chunks": 1}, "damaged"),
        ({"tick": "1/0"}, "damaged"),
        ({"root": 9}, "damaged"),
        ({"phases": ["sideways"]}, "damaged"),
        ({"topology": {}}, "damaged"),
    ],
    ids=str,
)
def test_metadata_that_makes_no_sense_is_refused(changes, phrase, tmp_path):
    edited(tmp_path / "a.npz", **changes)
    assert phrase in str(refused(tmp_path / "a.npz"))


def test_damaged_bytes_are_refused_or_make_no_difference(tmp_path):
    path = tmp_path / "a.npz"
    schedule = made("mesh")
    store.write_npz(schedule, path)
    whole = path.read_bytes()
    rng = random.Random(1)
    refusals = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            found = store.read_npz(path)
        except InputError as fault:
            refusals += fault.diagnostic.code == "CS240"
        else:
            assert_equal(found, schedule)
    assert refusals > 200


@pytest.mark.parametrize(
    "changes",
    [
        {"tick": "1e9999999999"},
        {"tick": "9" * 5000},
        {"tick": "0"},
        {"tick": 1},
        {"chunk_bytes": "-1"},
        {"size": 2**70},
        {"size": "1"},
        {"chunks": 2**40},
        {"chunks_per_gpu": 0},
        {"ticks": -1},
        {"groups": [[0, None]]},
        {"bound": ["1/0", "reason"]},
        {"bound": ["1"]},
    ],
    ids=str,
)
def test_figures_that_no_schedule_has_are_refused_unreckoned(changes, tmp_path):
    edited(tmp_path / "a.npz", **changes)
    with at_most(20):
        refused(tmp_path / "a.npz")


HEADERS = [
    "{'descr': '<i4', 'fortran_order': False, 'shape': (",  # tokenizing it fails
    "  {'descr': '<i4'\n    }",  # so does its indentation
    "{'descr': '|O', 'fortran_order': False, 'shape': (24,), }\n",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (10**99,), }\n",
    "{'descr': '<i4', 'fortran_order': False, 'shape': (999999999999999,), }\n",
    "{'descr': __import__('os'), 'fortran_order': False, 'shape': (24,), }\n",
    "(" * 9000,
]


def repacked(path, method=zipfile.ZIP_DEFLATED, **members):
    """Write the mesh's file with members of other bytes, or compressed in another way."""
    store.write_npz(made("mesh"), path)
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    found |= {f"{name}.npy": data for name, data in members.items()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in found.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_are_not_evaluated(header, tmp_path):
    data = header.encode()
    start = b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data
    repacked(tmp_path / "a.npz", phase0_source=start + bytes(96))
    refused(tmp_path / "a.npz")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_compression_are_refused(method, tmp_path):
    repacked(tmp_path / "a.npz", method)
    assert "compressed in another way" in str(refused(tmp_path / "a.npz"))


def test_metadata_beyond_the_limit_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "METADATA", dataclasses.replace(reader.METADATA, most=100))
    store.write_npz(made("mesh"), tmp_path / "a.npz")
    assert "the limit is 100" in str(refused(tmp_path / "a.npz"))
