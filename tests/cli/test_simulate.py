"""Command simulate."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from colsynth import api
from colsynth.cli.codes import explanations
from colsynth.cli.main import run
from colsynth.cost import NAMES, ideal_model
from colsynth.errors import VerificationError
from colsynth.runtimes import profile
from tests.each import each

XML = Path(__file__).parents[1] / "corpus" / "xml"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "allgather.xml"
    problem = api.make_problem(api.load_topology("dgx-a100", nodes=2), "allgather")
    done = api.compile(problem, "rccl", mode="both", min_bytes=0)
    path.write_bytes(done.artefacts[0].data)
    return str(path)


ON = ("-t", "dgx-a100", "--nodes", "2")


def test_a_file_that_was_made_for_another_topology_is_noted(file, capsys):
    asked = ("-r", "rccl", "--sizes", "1MB", "--json")
    assert run(["simulate", file, *ON, *asked]) == 0
    assert capsys.readouterr().err == ""
    for machine in (
        ("mi250",),
        (*ON[1:], "--set", "nic=50 GB/s"),
        (*ON[1:], "--drop-nic", "nic0.0"),
    ):
        assert run(["simulate", file, "-t", *machine, *asked]) == 0
        shown = capsys.readouterr().err.splitlines()
        assert "note: the file was made for dgx-a100 x2; the times are for" in shown[-1]
    foreign = Path(file).read_text().replace("colsynth allgather dgx-a100 x2", "mine")
    other = Path(file).with_name("foreign.xml")
    other.write_text(foreign)
    assert run(["simulate", str(other), "-t", "mi250", *asked]) == 0
    assert capsys.readouterr().err == ""


def test_json_has_the_shape_that_was_agreed(file, capsys):
    asked = ("-r", "rccl", "--sizes", "1KB,1MB,1GiB", "--json")
    assert run(["simulate", file, *ON, *asked]) == 0
    answer = json.loads(capsys.readouterr().out)
    names = {"file", "runtime", "topology", "ranks", "collective", "points"}
    assert set(answer) == names
    assert (answer["runtime"], answer["topology"]) == ("rccl", "dgx-a100 x2")
    assert answer["file"] == file
    assert answer["ranks"] == 16
    assert answer["collective"] == "allgather"
    sizes = [point["size_bytes"] for point in answer["points"]]
    assert sizes == [768, 10**6, 2**30]  # 16 ranks share 768 bytes of 1 KB, 16 by 16
    figures = {"time_us", "algbw_gb_per_s", "busbw_gb_per_s"}
    assert [point["selected"] for point in answer["points"]] == [True, False, True]
    for point in answer["points"]:
        assert set(point) == {"size_bytes", "selected"} | figures
        if not point["selected"]:
            assert all(point[name] is None for name in figures)
            continue
        algbw = point["size_bytes"] / point["time_us"] / 1e3
        assert point["algbw_gb_per_s"] == pytest.approx(algbw, rel=1e-3)
        assert point["busbw_gb_per_s"] == pytest.approx(algbw * 15 / 16, rel=1e-3)


def test_python_gives_the_same(file, capsys):
    assert run(["simulate", file, *ON, "-r", "rccl", "--sizes", "1MiB", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["points"]
    topology = api.load_topology("dgx-a100", nodes=2)
    found = api.simulate(Path(file).read_bytes(), "rccl", topology, [2**20], subject=file)
    assert (found.file, found.runtime, found.topology) == (file, "rccl", "dgx-a100 x2")
    assert found.selected == (point["selected"],) == (True,)
    assert found.points[0].seconds * 1e6 == pytest.approx(point["time_us"], abs=1e-6)
    data = Path(file).read_bytes()
    quick = api.simulate(data, "rccl", topology, [2**20], model=ideal_model())
    assert quick.points[0].seconds < found.points[0].seconds


def test_people_read_a_table(file, capsys):
    assert run(["simulate", file, *ON, "-r", "rccl", "--sizes", "1KiB..4KiB,1GiB"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines() if line.strip()]
    assert lines[0][-6:] == ["dgx-a100", "x2,", "as", "rccl", "runs", "it"]
    assert lines[1] == ["size", "time", "algbw", "busbw"]
    assert [line[:2] for line in lines[3:]] == [
        ["1", "KiB"],
        ["2", "KiB"],
        ["4", "KiB"],
        ["1", "GiB"],
    ]
    assert shown.err == ""


def test_a_file_that_several_runtimes_can_run_needs_a_name(file, capsys):
    assert run(["simulate", file, *ON, "--sizes", "1MB"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error[CS608]" in shown.err
    assert "give -r msccl-executor or -r rccl" in shown.err


@pytest.mark.parametrize(
    ("runtime", "collective"), [("msccl", "allgather"), ("msccl-executor", "allreduce")]
)
def test_a_runtime_that_alone_can_run_a_file_is_taken_and_named(
    runtime, collective, tmp_path, capsys
):
    """The header tells msccl; fused steps are run by RCCL no more."""
    problem = api.make_problem(api.load_topology("ring:4"), collective)
    path = tmp_path / "file.xml"
    path.write_bytes(api.compile(problem, runtime, algorithm="ring").artefacts[0].data)
    assert run(["simulate", str(path), "-t", "ring:4", "--sizes", "1MB", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["runtime"], answer["topology"]) == (runtime, "ring:4")
    assert run(["simulate", str(path), "-t", "ring:4", "--sizes", "1MB"]) == 0
    assert f"on ring:4, as {runtime} runs it" in capsys.readouterr().out


def test_sizes_that_do_not_use_the_file_have_no_time(tmp_path, capsys):
    """Of 48 chunks; the library's own algorithm would run, which is not simulated."""
    path = str(tmp_path / "a.xml")
    asked = ["compile", "dgx-1v", "-c", "allgather", "--trees", "optimal", "-r", "rccl", "-O0"]
    assert run([*asked, "-o", path]) == 0
    shown = capsys.readouterr()
    assert "multiples of 192 bytes (48 elements of 4 bytes)" in shown.out
    assert "no message of a power of two bytes uses the file" in shown.err
    sizes = ["--sizes", "1MiB,192MiB,1GiB"]
    assert run(["simulate", path, "-t", "dgx-1v", "-r", "rccl", *sizes]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.lstrip()[:1].isdigit()]
    assert ["not selected" in row for row in rows] == [True, False, True]
    assert run(["simulate", path, "-t", "dgx-1v", "-r", "rccl", *sizes, "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [point["selected"] for point in points] == [False, True, False]
    assert points[0]["time_us"] is None
    assert run(["verify", path, "-r", "rccl"]) == 0
    assert "note K05: no message of a power of two bytes uses the file" in capsys.readouterr().out


def test_a_breakdown_names_links_threadblocks_and_dependencies(file, capsys):
    asked = ("-r", "rccl", "--sizes", "1KB,1GB", "--breakdown")
    assert run(["simulate", file, *ON, *asked]) == 0
    text = capsys.readouterr().out
    assert "critical path of 1 GB" in text
    assert "launch" in text
    assert "by rank " in text
    assert "time of all threadblocks: " in text
    assert run(["simulate", file, *ON, *asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = answer["breakdown"]
    assert found["size_bytes"] == 10**9
    parts = found["launch_us"] + found["not_simulated_us"] + sum(found["path_us"].values())
    assert parts == pytest.approx(answer["points"][-1]["time_us"], rel=1e-6)
    assert sum(found["threadblock_time"].values()) == pytest.approx(1, abs=1e-4)
    assert all(" -> " in link for link in found["links_us"])
    assert sum(found["legs_by_cause"].values()) > 0


def test_the_largest_size_that_uses_the_file_is_broken_down(tmp_path, capsys):
    path = tmp_path / "small.xml"
    made = ("ring:2", "-c", "allgather", "-r", "msccl", "--max-bytes", "1MiB", "-O0")
    assert run(["compile", *made, "-o", str(path)]) == 0
    capsys.readouterr()
    asked = ["simulate", str(path), "-t", "ring:2", "-r", "msccl", "--breakdown", "--sizes"]
    assert run([*asked, "1MiB,1GiB"]) == 0
    assert "critical path of 1 MiB" in capsys.readouterr().out
    assert run([*asked, "1GiB"]) == 2
    assert "CS212" in capsys.readouterr().err


def test_sizes_are_those_of_calls(tmp_path, capsys):
    """No call has a part of an element, and ranks share multiples of 16 bytes."""
    problem = api.make_problem(api.load_topology("ring:3"), "allgather")
    data = api.compile(problem, "msccl", level=0).artefacts[0].data
    path = tmp_path / "file.xml"
    path.write_bytes(data)
    sizes = "1000,1001,1005,1MB"
    assert run(["simulate", str(path), "-t", "ring:3", "-r", "msccl", "--sizes", sizes]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:7]]
    assert [row[0] for row in rows] == ["960", "1001", "1005", "999984"]
    assert ["selected" in row for row in rows] == [False, True, True, False]
    found = api.simulate(data, "msccl", api.load_topology("ring:3"), [1001, 1000])
    assert [point.size_bytes for point in found.points] == [1001, 960]
    assert found.selected == (False, True)


def test_a_timeline_is_written_once(file, tmp_path, capsys):
    path = tmp_path / "out.json"
    sizes = ["--sizes", "1KiB,100KB"]
    command = ["simulate", file, *ON, "-r", "rccl", *sizes, "--timeline", str(path)]
    assert run(command) == 0
    head = json.loads(path.read_text())
    assert head["otherData"]["size_bytes"] == 390 * 256
    assert head["traceEvents"]
    assert run(command) == 2
    assert "CS207" in capsys.readouterr().err
    assert run([*command, "--force"]) == 0


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
def test_the_model_is_shown_with_its_sources(runtime, capsys):
    assert run(["simulate", "--show-model", "-r", runtime]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"model of {runtime}")
    assert all(name in text for name in NAMES)
    assert run(["simulate", "--show-model", "-r", runtime, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["runtime"] == runtime
    assert list(answer["model"]) == list(NAMES)
    assert all(item["source"] for item in answer["model"].values())
    assert answer["model"]["step"]["unit"] == "us"


def test_without_a_runtime_the_models_of_all_are_shown(capsys):
    names = ["msccl", "msccl-executor", "mscclpp", "rccl", "torch"]
    assert run(["simulate", "--show-model"]) == 0
    heads = [x for x in capsys.readouterr().out.splitlines() if x.startswith("model of ")]
    assert sorted(heads) == [f"model of {name}" for name in names]
    assert run(["simulate", "--show-model", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sorted(item["runtime"] for item in answer) == names
    assert all(list(item["model"]) == list(NAMES) for item in answer)


def test_a_model_file_changes_the_prediction(file, tmp_path, capsys):
    path = tmp_path / "slow.yaml"
    path.write_text("launch: 1000\n")
    times = []
    for extra in ((), ("--model", str(path))):
        assert run(["simulate", file, *ON, "-r", "rccl", "--sizes", "1KB", "--json", *extra]) == 0
        times.append(json.loads(capsys.readouterr().out)["points"][0]["time_us"])
    assert times[1] - times[0] == pytest.approx(1000 - 17)
    assert run(["simulate", "--show-model", "-r", "rccl", "--model", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["model"]["launch"]
    assert shown["value"] == {"Simple": 1000, "LL": 1000, "LL128": 1000}
    assert shown["source"] == str(path)


def test_topologies_of_generators_take_their_options(tmp_path, capsys):
    path = tmp_path / "ring.xml"
    problem = api.make_problem(api.load_topology("ring:4"), "allgather")
    path.write_bytes(api.compile(problem, "rccl", mode="both", level=0).artefacts[0].data)
    times = []
    for bandwidth in ("4 GB/s", "8 GB/s"):
        asked = ("--bandwidth", bandwidth, "--latency", "0 us", "--sizes", "1GB", "--json")
        assert run(["simulate", str(path), "-t", "ring:4", "-r", "rccl", *asked]) == 0
        times.append(json.loads(capsys.readouterr().out)["points"][0]["time_us"])
    assert times[0] == pytest.approx(2 * times[1], rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["FILE"], "CS607", 2),
        (["-t", "dgx-a100"], "CS607", 2),
        ([], "CS607", 2),
        (["FILE", "-t", "dgx-a100", "-r", "rccl"], "CS600", 2),
        (["FILE", "-t", "dgx-a10", "-r", "rccl"], "CS120", 2),
        (["none.xml", *ON], "CS502", 2),
        (["FILE", *ON, "--sizes", "0"], "CS212", 2),
        (["FILE", *ON, "--sizes", "many"], "CS212", 2),
        (["FILE", *ON, "-r", "nccl"], "CS501", 2),
        (["TEXT", *ON, "-r", "rccl"], "CS605", 2),
        (["TEXT", *ON], "CS605", 2),
        (["FILE", *ON, "-r", "rccl", "--model", "TEXT"], None, 2),
        (["FILE", *ON, "-r", "rccl", "--model", "none.yaml"], None, 2),
        (["FILE", *ON, "--timeline", "TEXT/x.json"], "CS208", 2),
    ],
)
def test_a_mistake_is_one_message(arguments, code, status, file, tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("- no schedule\n")
    words = [word.replace("FILE", file).replace("TEXT", str(text)) for word in arguments]
    assert run(["simulate", *words]) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("error[") == 1
    assert code is None or f"error[{code}]" in shown.err


def test_a_file_that_hangs_is_a_negative_answer(tmp_path, capsys):
    """Both ranks send three calls before they receive, two fit (contract 4.6)."""
    path = tmp_path / "hangs.xml"
    step = (
        '<step s="{s}" type="{t}" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="3"'
        ' depid="-1" deps="-1" hasdep="0"/>'
    )
    gpus = "".join(
        f'<gpu id="{r}" i_chunks="3" o_chunks="3" s_chunks="0">'
        f'<tb id="0" send="{1 - r}" recv="{1 - r}" chan="0">'
        f"{step.format(s=0, t='s')}{step.format(s=1, t='r')}</tb></gpu>"
        for r in (0, 1)
    )
    path.write_text(
        '<algo name="x" proto="Simple" nchannels="1" nchunksperloop="3" ngpus="2" coll="allreduce"'
        f' inplace="1" outofplace="0" minBytes="0" maxBytes="0">{gpus}</algo>'
    )
    asked = ["simulate", str(path), "-t", "ring:2", "-r", "rccl", "--anyway", "--sizes"]
    assert run([*asked, "1MB"]) == 0
    assert run([*asked, "1GB"]) == 1
    assert "CS603" in capsys.readouterr().err


def _without(plan, rank, block, name):
    """Return the text of a plan without the last operation of a name of a threadblock."""
    plan = json.loads(plan)
    ops = plan["gpus"][rank]["threadblocks"][block]["ops"]
    inner = next(op["ops"] for op in ops if op["name"] == "pipeline")
    del inner[max(n for n, op in enumerate(inner) if op["name"] == name)]
    return json.dumps(plan)


def test_a_plan_whose_signals_do_not_meet_its_waits_has_no_time(tmp_path, capsys):
    ring = api.load_topology("ring:2")
    made = api.compile(api.make_problem(ring, "allgather"), "mscclpp", level=0)
    plan = made.artefacts[0].data.decode()
    path = tmp_path / "plan.json"
    asked = ["simulate", str(path), "-t", "ring:2", "--sizes", "1MB", "--anyway"]
    path.write_text(plan)
    assert (run(asked), capsys.readouterr().err) == (0, "")
    for name, told in (("signal", "rank 0, threadblock 0"), ("wait", "rank 1, threadblock 1")):
        path.write_text(_without(plan, 1, 1, name))
        assert run(asked) == 1
        shown = capsys.readouterr()
        assert (shown.out, shown.err.count("error[")) == ("", 1)
        assert shown.err.startswith(f"{path}: error[CS603]")
        assert re.search(f"note: P08: {told}: .* signals .*in one launch", shown.err)
        with pytest.raises(VerificationError, match="CS603"):
            api.simulate(path.read_bytes(), "mscclpp", ring, [1], anyway=True)


@pytest.mark.parametrize("runtime", [(), ("-r", "mscclpp")])
def test_a_plan_of_others_is_right_but_has_no_time(runtime, tmp_path, capsys):
    made = ("compile", "ring:4", "-c", "allgather", "-r", "mscclpp", "-O0", "-o")
    path = tmp_path / "plan.json"
    assert run([*made, str(path)]) == 0
    plan = json.loads(path.read_text())
    for gpu in plan["gpus"]:
        for block in gpu["threadblocks"]:
            del block["channel"]  # a key of ours
    path.write_text(json.dumps(plan))
    assert run(["verify", str(path)]) == 0
    capsys.readouterr()
    assert run(["simulate", str(path), "-t", "ring:4", *runtime]) == 2
    shown = capsys.readouterr().err
    assert "error[CS605]" in shown
    assert "the plan is not one that colsynth wrote" in shown
    assert "would read no schedule" not in shown


def test_a_time_of_a_bad_plan_that_finishes_has_a_note(tmp_path, capsys):
    problem = api.make_problem(api.load_topology("ring:2"), "allgather")
    plan = api.compile(problem, "mscclpp", level=0).artefacts[0].data.decode()
    path = tmp_path / "plan.json"
    target = '{{"index":{},"size":1,"type":"o"}}]}}'
    path.write_text(plan.replace(target.format(1), target.format(0), 1))
    assert run(["simulate", str(path), "-t", "ring:2", "--sizes", "1MB", "--anyway"]) == 0
    shown = capsys.readouterr()
    assert "1 MB" in shown.out
    assert shown.err.startswith("note: the file is bad on mscclpp (")


@each("path", sorted(XML.glob("*.xml")))
def test_damaged_files_get_a_diagnostic_or_a_time(path, capsys):
    """Whatever the verifier would say: never a crash, never two messages.

    Sizes for which the runtime selects the file get a time, others get none.
    """
    for runtime in ("msccl", "rccl"):
        asked = ("-t", "ring:2", "-r", runtime, "--sizes", "1KB,96MiB", "--json")
        status = run(["simulate", str(path), *asked, "--anyway"])
        shown = capsys.readouterr()
        assert status in (0, 1, 2)
        assert shown.err.count("error[") == (status != 0)
        if status == 0:
            points = json.loads(shown.out)["points"]
            assert all((point["time_us"] or 0) > 0 for point in points if point["selected"])
            assert all(point["time_us"] is None for point in points if not point["selected"])


@each("path", sorted(XML.glob("*.xml")))
def test_damaged_files_are_drawn_or_refused_and_exported_only_when_right(path, tmp_path, capsys):
    for runtime in ("msccl", "rccl"):
        good = run(["verify", str(path), "-r", runtime]) == 0
        capsys.readouterr()
        drawn = run(["show", str(path), "-r", runtime, "--anyway"])
        assert capsys.readouterr().err.count("error[") == (drawn != 0)
        assert drawn in (0, 2)
        folder = tmp_path / path.stem / runtime
        to = ("--to", "chakra", "--size", "96MiB", "-o", str(folder))
        status = run(["export", str(path), "-r", runtime, *to])
        assert capsys.readouterr().err.count("error[") == (status != 0)
        assert (status == 0) == folder.exists() <= good


@each("path", sorted(XML.glob("*.xml")))
def test_no_time_is_predicted_for_what_verify_calls_bad(path, capsys):
    for runtime in ("msccl", "rccl"):
        good = run(["verify", str(path), "-r", runtime]) == 0
        capsys.readouterr()
        status = run(["simulate", str(path), "-t", "clique:2", "-r", runtime, "--sizes", "1MB"])
        shown = capsys.readouterr()
        if good:
            assert status == 0 or "[CS600]" in shown.err
            continue
        assert status == (2 if "[CS605]" in shown.err else 1)
        assert shown.out == ""
        assert shown.err.startswith(f"{path}:")
        assert len(shown.err.splitlines()) < 8


def test_a_refusal_of_a_bad_file_names_errors_and_what_to_do(file, tmp_path, capsys):
    path = tmp_path / "bad.xml"
    path.write_text(Path(file).read_text().replace('recv="1"', 'recv="2"'))
    asked = ["simulate", str(path), *ON, "-r", "rccl", "--sizes", "1MB"]
    assert run(asked) == 1
    text = capsys.readouterr().err
    assert "error[CS609]: the file is bad on rccl" in text
    assert run(["verify", str(path), "-r", "rccl", "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)["files"]
    first = next(item for item in report["findings"] if item["severity"] == "error")
    assert f"note: {first['rule']}: " in text
    assert first["message"] in text
    assert "help: `colsynth verify FILE -r rccl` lists them; --anyway" in text
    with pytest.raises(VerificationError, match="CS609"):
        api.simulate(path.read_bytes(), "rccl", api.load_topology("dgx-a100", nodes=2), [1])


@pytest.mark.parametrize(
    ("old", "new", "line", "note"),
    [
        ('s_chunks="2"', 's_chunks="2147483647"', 2, "2147483647 chunks of scratch buffer"),
        ('recv="1"', 'recv="7"', 3, "rank 7 as its peer; ranks are 0 to 1"),
        ('cnt="2"', 'cnt="40000"', 4, "moves 40000 chunks; a step moves 0 to 32768"),
        ('<tb id="0"', '<tb id="5"', 6, "no threadblock 0"),
        ('<gpu id="0"', '<gpu id="3"', 11, "no rank 0"),
    ],
)
def test_what_cannot_be_executed_is_named_with_its_line(old, new, line, note, tmp_path, capsys):
    text = (XML / "good-allreduce.xml").read_text()
    assert old in text
    path = tmp_path / "odd.xml"
    path.write_text(text.replace(old, new, 1))
    asked = ["simulate", str(path), "-t", "clique:2", "-r", "rccl", "--sizes", "1MB"]
    assert run(asked) in (1, 2)
    assert capsys.readouterr().out == ""
    assert run([*asked, "--anyway"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(f"{path}:{line}: error[CS602]")
    assert note in shown.err
    assert run(["show", str(path), "-r", "rccl", "--anyway"]) == 2
    assert capsys.readouterr().err == shown.err


@pytest.mark.parametrize(("old", "new"), [('[0,1,"i"', '[0,99,"i"'), ('"ranks": 4', '"ranks": -1')])
def test_rounds_of_ranks_that_do_not_exist_are_refused(old, new, tmp_path, capsys):
    problem = api.make_problem(api.load_topology("ring:4"), "allgather")
    text = api.compile(problem, "torch", level=0).artefacts[0].data.decode()
    assert old in text
    path = tmp_path / "odd.json"
    path.write_text(text.replace(old, new, 1))
    asked = ["simulate", str(path), "-t", "ring:4", "-r", "torch", "--sizes", "1MB", "--anyway"]
    assert run(asked) == 2
    assert "error[CS6" in capsys.readouterr().err


def test_another_number_of_ranks_is_a_mistake_at_the_header(capsys):
    path = XML / "good-allreduce.xml"
    assert run(["simulate", str(path), "-t", "clique:3", "-r", "rccl"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"{path}:1: error[CS600]: the program is for 2 ranks, clique:3 has 3")
    assert "choose a topology of 2 GPUs" in shown


def test_codes_have_pages():
    pages = explanations()
    for number in range(600, 610):
        page = pages[f"CS{number}"]
        assert all(page[part] for part in ("title", "meaning", "why", "fix", "example"))


def test_profiles_and_models_go_together():
    assert profile("msccl").fifo_calls.keys() == ideal_model().slices.keys()
