"""A report says what other commands say, and its replay is what the program does."""

import json
import re
import shlex
from pathlib import Path

import pytest

from colsynth.cli.main import run
from colsynth.cli.report_values import files_of
from colsynth.report import page

FILE = "ring.xml"
SIZES = ["--sizes", "64KiB,16MiB"]
ON = ["-t", "ring:4", "-r", "msccl"]


def printed(capsys, *words):
    code = run(list(words))
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


@pytest.fixture(name="place", autouse=True)
def _place(tmp_path, monkeypatch, capsys):
    """A folder with a schedule for a ring of four GPUs."""
    monkeypatch.chdir(tmp_path)
    words = ["compile", "ring:4", "-c", "allreduce", "-r", "msccl", "-O", "0", "-o", FILE]
    assert run(words) == 0
    capsys.readouterr()
    return tmp_path


def test_figures_are_those_of_bound_simulate_and_verify(capsys):
    found = printed(capsys, "report", FILE, *ON, *SIZES, "--against", "none", "--json")
    bound = printed(capsys, "bound", "ring:4", "-c", "allreduce", "-r", "msccl", *SIZES, "--json")
    words = ("simulate", FILE, *ON, *SIZES, "--breakdown", "--json")
    simulated = printed(capsys, *words)
    verified = printed(capsys, "verify", FILE, "-r", "msccl", "--json")["files"][0]
    assert {**found["bound"], "by_size": found["least"]} == bound
    assert {**found["simulation"], "breakdown": found["breakdown"]} == simulated
    assert found["verify"] == verified
    dropped = found["losses"][0]
    words = ("bound", "ring:4", "-c", "allreduce", "--drop-link", dropped["wire"], "--json")
    left = printed(capsys, *words)
    assert dropped["loss_percent"] == left["loss_percent"]


@pytest.mark.parametrize(("machine", "runtime"), [("ring:4", "torch"), ("dgx-h100", "mscclpp")])
def test_a_schedule_without_steps_between_gpus_has_times_and_no_replay(capsys, machine, runtime):
    """Rounds, and plans whose switch multicasts."""
    words = ["compile", machine, "-c", "allreduce", "-r", runtime, "-o", "made.json"]
    assert run([*words, "--size", "16MiB"]) == 0
    capsys.readouterr()
    words = ("made.json", "-t", machine, "-r", runtime, "--sizes", "16MiB")
    found = printed(capsys, "report", *words, "--against", "none", "--json")
    assert found["simulation"] == printed(capsys, "simulate", *words, "--json")
    assert "schedule" not in found
    assert found["notes"][-1].startswith("no replay: ")


def test_a_replay_moves_every_message_and_completes_every_output(place, capsys):
    found = printed(capsys, "report", FILE, *ON, *SIZES, "--against", "none", "--json")
    played = found["schedule"]
    steps = re.findall(r'type="(\w+)"', (place / FILE).read_text())
    assert len(played["sends"]) == sum(step in {"s", "rcs", "rrs", "rrcs"} for step in steps)
    assert len(played["units"]) == sum(step != "nop" for step in steps)
    assert played["complete"]
    held = {}
    for _, rank, first, levels in played["writes"]:
        held |= {(rank, first + i): level for i, level in enumerate(levels)}
    assert set(held.values()) == {played["needed"]} == {4}
    assert len(held) == sum(played["output_chunks"])
    assert all(set(send[4]) <= set(range(len(played["roots"]))) for send in played["sends"])


def test_a_wrong_file_is_shown_with_its_findings_and_does_not_complete(place, capsys):
    text = (place / FILE).read_text()
    (place / "bad.xml").write_text(re.sub(r'type="rrc"', 'type="r"', text, count=1))
    found = printed(capsys, "report", "bad.xml", *ON, *SIZES, "--against", "none", "--json")
    assert not found["verify"]["ok"]
    assert set(found["explain"]) == {finding["rule"] for finding in found["verify"]["findings"]}
    assert not found["schedule"]["complete"]


def test_the_page_carries_what_json_prints_and_its_command_makes_it_again(place, capsys):
    pytest.importorskip("vl_convert")
    words = ["report", FILE, *ON, *SIZES, "--against", "ring", "-o", "one.html", "--json"]
    found = printed(capsys, *words)
    first = (place / "one.html").read_text()
    again = shlex.split(found["command"])
    assert run(again[1:]) == 0
    assert (place / again[-1]).read_text() == first
    inside = first.split('id="data">', 1)[1].split("</script>", 1)[0]
    assert json.loads(inside) == found
    assert found["compare"]["algbw_gb_per_s"].keys() == {"ring"}
    links = re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', first.split("<script", 1)[0])
    assert not links, "the page must load nothing"


def test_a_bundle_plots_the_files_of_the_collective_that_is_shown():
    files = [
        {"path": f"schedules/{name}.xml", "collective": name, "predicted": [name]}
        for name in ("allreduce", "allgather")
    ]
    assert files_of({"files": files}, files[1]) == {"allgather.xml": ["allgather"]}


def test_a_folder_is_shown_on_the_topology_it_was_made_for(capsys):
    few = ["--sizes", "64KiB", "--budget", "2", "--jobs", "1"]
    words = ["tune", "ring:4", "-c", "allreduce", "-r", "msccl", "-o", "bundle", *few]
    assert run(words) == 0
    capsys.readouterr()
    assert run(["report", "bundle", "-t", "clique:4", "--json"]) == 2
    assert "the bundle is of ring:4, and -t names clique:4" in capsys.readouterr().err


def test_a_bundle_that_was_altered_is_told(capsys):
    few = ["--sizes", "1MiB", "--algorithms", "forest", "--budget", "1", "--jobs", "1"]
    assert run(["tune", "clique:8", "-c", "allgather", "-r", "rccl", "-o", "altered", *few]) == 0
    (file,) = Path("altered/schedules").iterdir()
    asked = ["report", "altered", "-t", "clique:8", "--against", "none", "--sizes", "64KiB"]

    def notes(*more):
        capsys.readouterr()
        assert run([*asked, *more, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["notes"]

    assert notes() == []
    assert any("clique:8 is not as colsynth" in note for note in notes("--bandwidth", "9 GB/s"))
    file.write_bytes(file.read_bytes().replace(b'srcoff="0"', b'srcoff="1"', 1))
    assert [note.split(" is ")[0] for note in notes()][:1] == [f"schedules/{file.name}"]
    path = f"altered/schedules/{file.name}"
    assert f"{path} fails verification; 'colsynth verify {path} -r rccl' says why" in notes()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([FILE, "-r", "msccl", "--json"], "CS641"),
        (["ring:4", "-c", "allreduce", "--json"], "CS641"),
        ([FILE, *ON], "CS641"),
        ([".", *ON, "--json"], "CS641"),
        (["timed.npz", *ON, "--json"], "CS641"),
        (["absent.json", *ON, "--json"], "CS502"),
        (["absent", *ON, "--json"], "CS641"),
        (["absent/", "--json"], "CS502"),
        (["ring:4", *ON, "-c", "allreduce", "--json"], "CS641"),
        (["ring:4", "-r", "msccl", "-c", "allreduce", "--file", "a.xml", "--json"], "CS217"),
        ([FILE, *ON, "-c", "allgather", "--json"], "CS217"),
        ([FILE, *ON, "-a", "ring", "--json"], "CS217"),
        ([FILE, *ON, "--group", "0-1", "--json"], "CS600"),
        ([FILE, *ON, "-o", "page.svg"], "CS219"),
    ],
)
def test_what_is_missing_is_said(capsys, words, code):
    assert run(["report", *words]) == 2
    assert code in capsys.readouterr().err


def test_a_schedule_may_have_any_name_where_a_topology_is_given(place, capsys):
    """As in `simulate`; it was said that there is no such file."""
    (place / "copy.txt").write_bytes((place / FILE).read_bytes())
    (place / "other.txt").write_text("no schedule")
    words = (*ON, "--sizes", "1MiB", "--json")
    found, copy = (printed(capsys, "report", name, *words) for name in (FILE, "copy.txt"))
    assert copy["simulation"]["points"] == found["simulation"]["points"]
    assert run(["report", "other.txt", *words]) == 2
    assert "CS605" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("manifest.json", "{}", "it lacks 'files'"),
        ("manifest.json", "[]", "a value is of another type"),
        ("manifest.json", "garbage", "line 1 column 1"),
        ("survey.json", '{"topology": "ring:4"}', "it lacks 'collective'"),
        ("survey.json", "5", "a value is of another type"),
    ],
)
def test_a_folder_that_was_damaged_says_what_is_wrong_with_it(place, capsys, name, text, said):
    folder = place / "damaged"
    folder.mkdir()
    (folder / name).write_text(text)
    assert run(["report", "damaged", "-t", "ring:4", "--json"]) == 2
    told = capsys.readouterr().err
    assert f"error[CS215]: {name} is not as colsynth writes it" in told
    assert said in told.partition("note: ")[2]


def test_without_the_extra_the_command_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(page, "find_spec", {}.get)
    assert run(["report", FILE, *ON, "-o", "page.html"]) == 2
    told = capsys.readouterr().err
    assert "CS640" in told
    assert "colsynth[report]" in told
    words = ["compare", "ring:4", "-c", "allreduce", "--plot", "a.svg"]
    assert run(words) == 2
    assert "CS640" in capsys.readouterr().err
