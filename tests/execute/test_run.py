"""Schedule files executed with real data by real processes: right ones are right, others not."""

import contextlib
import copy
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.execute import start
from colsynth.runtimes import profile, write
from colsynth.verify import verify_bytes
from tests.runtimes.test_multicast import BOX
from tests.verify.mutants import KINDS, plant
from tests.verify.plans import test_mutants as plans
from tests.verify.programs import ALL

pytest.importorskip("mpi4py")

RUNTIMES = ("msccl", "rccl", "mscclpp")
COLLECTIVES = ("allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "alltoall")
MACHINES = ("mesh:2x2", "ring:5", "clique:5")
SAMPLES = Path("/work/shared/samples")
XML = ("reduce_a100_ncv4_4",)
ROOT = 1


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return schedules of every collective and runtime, of 4 or 5 ranks."""
    folder, found = tmp_path_factory.mktemp("schedules"), []
    for shift, runtime in enumerate(RUNTIMES):
        for number, collective in enumerate(COLLECTIVES):
            machine = MACHINES[(number + shift) % len(MACHINES)]
            rooted = collective in ("broadcast", "reduce")
            problem = api.make_problem(
                api.load_topology(machine), collective, ROOT if rooted else None
            )
            algorithm = "ten" if collective == "alltoall" else "forest"
            done = api.compile(
                problem, runtime, algorithm=algorithm, level=0, mode="auto", several=True
            )
            for part, artefact in enumerate(done.artefacts):
                path = folder / f"{runtime}-{collective}-{part}{profile(runtime).suffix}"
                path.write_bytes(artefact.data)
                found.append((path, runtime, problem.topology.size))
    return found


def executed(capsys, paths, *options):
    code = run(["run", *map(str, paths), *options, "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == (0 if answer["ok"] else 1)
    return answer


@pytest.fixture
def once(monkeypatch):
    """Let a test print the outcomes of one execution several times."""
    kept, execute = [], start.execute

    def executed_once(job, backend, _told):
        kept[:] = kept or execute(job, backend)
        return kept

    monkeypatch.setattr(start, "execute", executed_once)


def require_right(answer):
    for file in answer["files"]:
        assert file["refused"] is None
        for point in file["points"]:
            assert (point["wrong"], point["library_wrong"], point["stuck"]) == (0, 0, [])
            assert point["root"] in (None, ROOT)
            assert point["seconds"] > 0
    assert answer["ok"]


def test_chunks_are_cut_in_bytes_where_the_runtime_counts_bytes(tmp_path, capsys):
    paths, size = [], 36 * 1001
    for collective in ("allgather", "broadcast"):
        problem = api.make_problem(api.load_topology("clique:3"), collective)
        done = api.compile(problem, "msccl", algorithm="forest", instances=6, level=0)
        paths.append(tmp_path / f"{collective}.xml")
        paths[-1].write_bytes(done.artefacts[0].data)
        assert size // done.artefacts[0].program.header.chunks % 4  # no whole number of floats
    options = ("-r", "msccl", "--size", str(size), "--repeat", "0")
    answer = executed(capsys, paths, *options)
    assert [file["points"][0]["wrong"] for file in answer["files"]] == [0, 0]


def test_plans_over_a_switch_are_right_and_their_races_show(tmp_path, capsys):
    """A rank finds in its own buffer what the switch stored there, if its threadblocks wait."""
    machine, runtime = tmp_path / "star.yaml", "mscclpp@0.10"
    machine.write_text(BOX.format(gpus=3, words="multicast, reduce"))
    right, races = [], []
    for collective in ("allgather", "reduce-scatter", "allreduce"):
        problem = api.make_problem(api.load_topology(str(machine)), collective)
        done = api.compile(problem, runtime, algorithm="multicast", level=0, mode="auto")
        data = done.artefacts[0].data
        right.append(tmp_path / f"{collective}.json")
        right[-1].write_bytes(data)
        plan = json.loads(data)
        for block in (block for gpu in plan["gpus"] for block in gpu["threadblocks"]):
            ops = block["ops"][0]["ops"]
            stores = [k for k, op in enumerate(ops) if op["name"] in ("glres", "gstore")]
            if stores:  # nothing stands between them and the release
                assert ops.pop(stores[-1] + 1)["name"] == "nop"
        races.append(tmp_path / f"{collective}-race.json")
        races[-1].write_text(json.dumps(plan))
    small = api.compile(problem, runtime, passes="build-multicast{unit=4096}", several=False)
    right.append(tmp_path / "small.json")
    right[-1].write_bytes(small.artefacts[0].data)
    files = executed(capsys, [*right, *races], "-r", runtime, "--repeat", "1")["files"]
    first, others = files[: len(right)], files[len(right) :]
    require_right({"files": first, "ok": all(p["ok"] for file in first for p in file["points"])})
    assert len(others) == len(races)
    assert not any(point["ok"] for file in others for point in file["points"])


@pytest.mark.parametrize("runtime", [None, "rccl"], ids=["nvidia", "amd"])
def test_every_collective_of_every_runtime_is_right_over_mpi(files, capsys, runtime):
    paths = [path for path, name, _ in files if (name == "rccl") == (runtime == "rccl")]
    named = ["-r", runtime] if runtime else []
    require_right(executed(capsys, paths, *named, "--calls", "2", "--repeat", "1"))


def test_files_of_four_ranks_are_right_over_gloo(files, capsys):
    pytest.importorskip("torch")
    paths = [path for path, _, ranks in files if ranks == 4]
    assert len(paths) >= 5
    answer = executed(
        capsys, paths, "-b", "gloo", "--size", "64KiB", "--calls", "2", "--repeat", "1"
    )
    require_right(answer)
    assert {file["ranks"] for file in answer["files"]} == {4}


@pytest.mark.usefixtures("once")
def test_what_was_not_compared_is_not_called_right(files, capsys):
    names = ("msccl-allreduce-1", "msccl-broadcast-0")
    paths = [path for path, _, _ in files if path.stem in names]
    options = ("--no-check", "--repeat", "1")
    answer = executed(capsys, paths, *options)
    for point in (file["points"][0] for file in answer["files"]):
        assert (point["ok"], point["wrong"], point["library_wrong"]) == (True, None, None)
        assert point["root"] is None
        assert point["seconds"] > 0
    assert run(["run", *map(str, paths), *options]) == 0
    allreduce, broadcast = capsys.readouterr().out.split("broadcast of ")
    assert (allreduce.count("N/A"), broadcast.count("N/A")) == (1, 2)


@pytest.mark.parametrize(
    ("change", "options", "named"),
    [
        (('s_chunks="0"', 's_chunks="2000000000"'), [], "GB of scratch on a rank"),
        (("", ""), ["--size", "1000TiB"], "a call of 1000 TiB does not fit"),
    ],
)
def test_what_no_memory_holds_is_refused_before_any_rank_starts(
    tmp_path, capsys, monkeypatch, change, options, named
):
    monkeypatch.setattr("colsynth.execute.start._started", None)
    path = tmp_path / "large.xml"
    path.write_bytes(write(ALL["doubling-allgather"], profile("msccl")))
    path.write_text(path.read_text().replace(*change))
    assert run(["run", str(path), "-r", "msccl", *options]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"{path}: error[CS308]: ")
    assert named in shown


def mutants(folder):
    """Return twenty faulty files that the verifier refuses too, ten of them plans."""
    rng = random.Random(13)
    xml = [write(program, profile("msccl-executor")) for program in ALL.values()]
    bases = [plan for base in plans.BASES[:4] for plan in plans.compiled(*base)]
    # These show only where other calls overlap them, or with messages that wrap their slots.
    rare = ("credit", "unit", "nop behind wait", "nop before signal")
    kinds = [kind for kind in sorted(plans.KINDS) if kind not in rare]
    found = []
    while len(found) < 10:
        mutant = plant(rng.choice(xml), KINDS[len(found) % len(KINDS)], rng)
        if mutant is not None and not accepted(mutant, "msccl-executor"):
            found.append((folder / f"{len(found)}.xml", mutant))
    turn = 0
    while len(found) < 20:
        turn += 1
        mutant = copy.deepcopy(rng.choice(bases))
        if plans.KINDS[kinds[turn % len(kinds)]](mutant, rng):
            data = json.dumps(mutant).encode()
            if not accepted(data, "mscclpp"):
                found.append((folder / f"{len(found)}.json", data))
    for path, data in found:
        path.write_bytes(data)
    return [path for path, _ in found]


def accepted(data, runtime):
    return verify_bytes(data, profile(runtime), subject="mutant").ok


def test_planted_faults_fail_in_execution_too(tmp_path, capsys):
    paths = mutants(tmp_path)
    size = 3 << 15  # 3 and 4 ranks share it
    options = ("--size", str(size), "--calls", "8", "--repeat", "0", "--timeout", "30")
    answer = executed(capsys, paths, *options)
    right = [
        Path(file["file"]).name
        for file in answer["files"]
        if file["refused"] is None and all(point["ok"] for point in file["points"])
    ]
    assert (len(answer["files"]), right) == (20, [])


@pytest.mark.usefixtures("once")
def test_a_deadlock_is_found_at_the_depth_of_the_fifo_and_names_who_waits(tmp_path, capsys):
    """Both send four chunks before they receive: FIFOs hold eight calls of LL, two of Simple."""
    steps = "".join(
        f'<step s="{n}" type="{op}" srcbuf="i" srcoff="{n % 4}" dstbuf="o" dstoff="{n % 4}" cnt="1"'
        f' depid="-1" deps="-1" hasdep="0"/>'
        for n, op in enumerate(["s"] * 4 + ["rrc"] * 4)
    )
    gpus = "".join(
        f'<gpu id="{r}" i_chunks="4" o_chunks="4" s_chunks="0">'
        f'<tb id="0" send="{1 - r}" recv="{1 - r}" chan="0">{steps}</tb></gpu>'
        for r in (0, 1)
    )
    paths = []
    for protocol in ("LL", "Simple"):
        paths.append(tmp_path / f"{protocol}.xml")
        paths[-1].write_text(
            f'<algo name="exchange" proto="{protocol}" nchannels="1" nchunksperloop="4" ngpus="2"'
            f' coll="allreduce" inplace="0" outofplace="1" minBytes="0" maxBytes="0">{gpus}</algo>'
        )
    options = ("-r", "msccl-executor", "--size", "16KiB", "--tile", "2KiB", "--repeat", "0")
    answer = executed(capsys, paths, *options)
    free, stuck = (file["points"][0] for file in answer["files"])
    assert (free["ok"], free["wrong"], stuck["late"]) == (True, 0, False)
    waits = "room: 2 messages to rank {} on channel 0 were not received yet"
    assert [(w["rank"], w["threadblock"], w["step"], w["waits"]) for w in stuck["stuck"]] == [
        (rank, 0, "step 2 (s), tile 0", waits.format(1 - rank)) for rank in (0, 1)
    ]
    assert run(["run", *map(str, paths), *options]) == 1
    text = capsys.readouterr().out
    assert "no rank can go on; these threadblocks wait:" in text
    assert "stuck" in text


def test_ranks_of_a_launcher_are_joined_and_one_of_them_answers(files):
    path = next(path for path, name, ranks in files if (name, ranks) == ("mscclpp", 4))
    words = [sys.executable, "-m", "colsynth", "run", str(path), "--repeat", "0", "--json"]
    mpiexec = Path(sys.prefix) / "bin" / "mpiexec"
    done = subprocess.run(
        [str(mpiexec), "-n", "4", *words], capture_output=True, timeout=100, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)


def test_no_process_stays_after_an_interrupt(tmp_path, files):
    path = next(path for path, name, ranks in files if (name, ranks) == ("mscclpp", 4))
    words = [sys.executable, "-m", "colsynth", "run", str(path), "--repeat", "10000"]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as started:
        try:
            wait_for(lambda: has_memory_without_a_name(ranks_in(tmp_path)))
            started.send_signal(signal.SIGINT)
            said = started.communicate(timeout=30)[1].decode()
        finally:
            started.kill()  # else it computes beside other tests, and its pipe stays open
    assert f"interrupted: run {path.name}, 0 of " in said
    assert started.returncode == 130
    wait_for(lambda: not ranks_in(tmp_path))


def ranks_in(folder):
    """Return the processes that execute a job in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes()
            if b"colsynth.execute.rank" in words and str(folder).encode() in words:
                found.append(entry)
    return found


def has_memory_without_a_name(ranks):
    """Whether four processes share memory of MPICH, all of which ends with them."""
    shared = []
    for entry in ranks:
        with contextlib.suppress(OSError):
            maps = (entry.parent / "maps").read_text().splitlines()
            shared.append([line for line in maps if "mpich_shm" in line])
    found = [lines for lines in shared if lines]  # launchers have none
    return len(found) == 4 and all(x.endswith("(deleted)") for lines in found for x in lines)


def wait_for(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to pass within 30 s")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not here")
def test_files_of_others_run_and_their_known_faults_show(capsys):
    good = sorted((SAMPLES / "mscclpp").glob("*.json"))
    # These need no message that is larger than all slots.
    names = ("LL_without_double_scratch", "nops_dropped", "pws_on_memory_hangs", "65_ops")
    bad = [SAMPLES / "mscclpp" / "bad" / f"{name}.json" for name in names]
    xml = [SAMPLES / "xml" / "msccl-tools" / f"all{name}_1.xml" for name in XML]
    assert len(good) >= 8
    answer = executed(
        capsys, [*good, *bad, *xml], "--size", "64KiB", "--repeat", "0", "--calls", "8"
    )
    faulty = {Path(f["file"]) for f in answer["files"] if not all(p["ok"] for p in f["points"])}
    refused = {Path(f["file"]) for f in answer["files"] if f["refused"]}
    assert (faulty | refused, refused) == (set(bad), {bad[-1]})


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-b", "tcp"], "CS660"),
        (["--type", "bfloat16"], "CS663"),
        (["--ranks", "16"], "CS664"),
        (["--size", "1000001"], "CS665"),
        (["--size", "1KB"], "do not divide 1 KB"),
        (["-r", "msccl", "--in-place"], "CS666"),
        (["--timeout", "0"], "CS210"),
        (["--no-check", "--repeat", "0"], "CS217"),
        (["--tile", "0"], "CS212"),
        (["--tile", "3"], "a tile holds an element or more, and one of float32 has 4 bytes"),
        (["--tile", "1", "--type", "float16"], "one of float16 has 2 bytes"),
        (["--tile", "4KiB,8KiB"], "CS212"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(files, capsys, options, code):
    path = next(p for p, name, _ in files if p.stem == "msccl-allreduce-1")
    assert run(["run", str(path), *options]) == 2
    assert code in capsys.readouterr().err


@pytest.mark.parametrize(
    "data", [b"garbage", b"", b"<html></html>", b'{"format": "colsynth bundle"}']
)
def test_what_is_no_schedule_file_is_wrong_input_as_for_verify(files, tmp_path, capsys, data):
    path = tmp_path / "other.xml"
    path.write_bytes(data)
    for command in ("run", "verify"):
        assert run([command, str(files[0][0]), str(path), "-r", "msccl"]) == 2
        told = capsys.readouterr().err
        assert f"{path}: error[CS605]" in told


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 9", "exit 137"])
def test_a_rank_that_the_system_kills_is_told_from_one_that_fails(
    files, tmp_path, monkeypatch, capsys, end
):
    """The launcher stands for those of MPICH and Open MPI, which end like their ranks."""
    launcher = tmp_path / "mpiexec"
    launcher.write_text(f"#!/bin/sh\necho noise >&2\n{end}\n")
    launcher.chmod(0o755)
    monkeypatch.setattr("colsynth.execute.start._mpiexec", lambda: str(launcher))
    assert run(["run", str(files[0][0])]) == 1
    told = capsys.readouterr().err
    assert "CS662" in told
    assert "a rank was killed" in told
    assert "noise" not in told
