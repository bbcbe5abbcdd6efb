"""Where commands write: streams, names, folders in each other's way; and how they end early."""

import shutil
import signal
import subprocess
import sys
import time

import pytest

from colsynth.cli import interrupts
from colsynth.cli.main import run
from colsynth.search.workshop import Workshop
from colsynth.survey import run as survey

CASE = ["compile", "ring:4", "-c", "allgather", "-r", "rccl", "-O", "0"]
SURVEY = ["survey", "ring:4", "-c", "allgather", "--jobs", "1"]
TUNE = ["tune", "ring:4", "-c", "allgather", "-r", "rccl", "--algorithms", "ring"]
FAST = [*TUNE, "--sizes", "1KiB", "--budget", "1", "--jobs", "1"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def schedule(tmp_path_factory):
    place = tmp_path_factory.mktemp("plain") / "a.xml"
    assert run([*CASE, "-o", str(place)]) == 0
    return place.read_bytes()


@pytest.mark.parametrize(
    ("output", "redirected"),
    [
        (">(cat > got.xml)", ""),
        ("/dev/stdout", "> got.xml"),
        ("/dev/fd/3", "3> got.xml"),
    ],
)
def test_paths_of_open_streams_take_the_schedule(output, redirected, schedule, tmp_path):
    program = f"{sys.executable} -m colsynth"
    text = f"{program} {' '.join(CASE)} -o {output} {redirected}; wait"
    done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, check=False)
    assert b"error" not in done.stderr
    found = tmp_path / "got.xml"
    until = time.monotonic() + 10
    while found.stat().st_size < len(schedule) and time.monotonic() < until:
        time.sleep(0.01)  # the reader of >(...) may end after the command
    assert found.read_bytes() == schedule
    assert names(tmp_path) == ["got.xml"]


@pytest.mark.parametrize("path", ["/dev/fd/77", "/dev/fd/99999999"])
def test_streams_that_are_not_open_are_refused_before_the_work(path, capsys, monkeypatch):
    monkeypatch.setattr("colsynth.api.compile", None)
    assert run([*CASE, "-o", path]) == 2
    shown = capsys.readouterr().err
    assert "error[CS208]" in shown
    assert "help: " in shown


@pytest.mark.parametrize("place", ["{}", "{}/", "new/{}.xml", "{}/a.xml"])
def test_names_that_are_too_long_are_refused_before_the_work(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("colsynth.api.compile", None)
    assert run([*CASE, "-o", place.format("n" * 300)]) == 2
    shown = capsys.readouterr().err
    assert "error[CS208]" in shown
    assert "the file system takes 255" in shown
    assert "help: choose a shorter name" in shown
    assert names(tmp_path) == []


def test_paths_that_are_too_long_are_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("colsynth.api.compile", None)
    assert run([*CASE, "-o", "/".join(["n" * 200] * 25)]) == 2
    assert "error[CS208]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "dumps"), [("out", "out"), ("out/", "out"), ("out", "out/a"), ("x/../out", "out")]
)
def test_dumps_in_the_way_of_schedules_are_refused(output, dumps, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run([*CASE, "-o", output, "--dump-dir", dumps]) == 2
    assert "error[CS251]" in capsys.readouterr().err
    assert names(tmp_path) == []


@pytest.mark.parametrize("mode", ["", "in-place"])
def test_dumps_of_an_earlier_run_give_way_to_force_alone(mode, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    case = [*CASE, "-r", "msccl", "-o", "out/", "--dump-dir", "dumps"]
    old = tmp_path / "dumps" / mode / "19-build-tree.txt"
    notes = old.with_name("05-notes.txt")
    old.parent.mkdir(parents=True)
    for path in (old, notes):
        path.write_text("old")
    assert run(case) == 2
    assert f"error[CS207]: {old.relative_to(tmp_path)} exists" in capsys.readouterr().err
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {old, notes}
    assert run([*case[:2], *case[4:], "--force"]) == 2
    assert old.is_file()
    assert run([*case, "--force"]) == 0
    assert (tmp_path / "dumps" / "00-problem.txt").is_file()
    assert not old.exists()
    assert notes.read_text() == "old"
    assert len(names(tmp_path / "out")) == 2
    assert run([*case, "--force"]) == 0


def test_a_file_that_came_during_the_work_is_kept(tmp_path, monkeypatch, capsys):
    from colsynth import api

    place, make = tmp_path / "a.xml", api.compile

    def slow(*arguments, **options):
        place.write_bytes(b"another process was faster")
        return make(*arguments, **options)

    monkeypatch.setattr(api, "compile", slow)
    assert run([*CASE, "-o", str(place)]) == 2
    assert "error[CS207]" in capsys.readouterr().err
    assert place.read_bytes() == b"another process was faster"
    place.chmod(0o640)
    assert run([*CASE, "-o", str(place), "--force"]) == 0
    assert place.stat().st_mode & 0o777 == 0o640


def test_a_request_to_end_is_an_interrupt_that_cleans_up(tmp_path):
    """The signal comes while a draft is written, for which fsync waits here."""
    script = (
        "import os, sys, time\n"
        "os.fsync = lambda _: (print('writing', flush=True), time.sleep(60))\n"
        f"sys.argv = {['colsynth', *CASE, '-o', 'out/']!r}\n"
        "from colsynth.__main__ import main\n"
        "main()\n"
    )
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"writing\n"
    assert any(name.startswith(".colsynth-") for name in names(tmp_path))
    assert names(tmp_path / "out") == []
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 143
    assert said.startswith(b"interrupted")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == []


def test_a_command_that_does_not_heed_a_request_ends_all_the_same():
    """As in a kernel, where Python heeds no signal; here nobody takes the interrupt."""
    script = (
        "import time\n"
        "from colsynth.cli import interrupts\n"
        "interrupts._interrupt = lambda *_: None\n"
        "interrupts.watch()\n"
        "print('busy', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"busy\n"
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143


def test_signals_that_the_caller_ignores_stay_ignored(monkeypatch):
    changed = []
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    monkeypatch.setattr(signal, "signal", lambda *change: changed.append(change))
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_args, **_options: None)
    interrupts.watch()
    assert changed == []


@pytest.mark.parametrize("options", [["-a", "halving-doubling"], ["-a", "pairwise"]])
def test_wrong_options_leave_no_survey_and_harm_none(options, tmp_path, capsys):
    wrong = ["survey", "ring:6", "-c", "allgather", "--jobs", "1", *options]
    place = ["-o", str(tmp_path / "found")]
    assert run([*wrong, *place]) == 2
    assert names(tmp_path) == []
    assert run([*SURVEY, *place]) == 0
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert run([*wrong, *place, "--force"]) == 2
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    capsys.readouterr()


@pytest.mark.parametrize("cut", [0, 1, 9, 40])
def test_a_survey_whose_first_line_was_cut_off_begins_anew(tmp_path, cut):
    place = tmp_path / "found"
    assert run([*SURVEY, "-o", str(place)]) == 0
    begun = tmp_path / "begun"
    begun.mkdir()
    first = f"\n{(place / 'journal.jsonl').read_text().splitlines()[0]}"
    (begun / "journal.jsonl").write_text(first[:cut])
    assert run([*SURVEY, "-o", str(begun)]) == 0
    assert (begun / "journal.jsonl").read_bytes() == (place / "journal.jsonl").read_bytes()


def test_a_full_disk_leaves_no_journal_in_the_way(tmp_path, monkeypatch, capsys):
    from colsynth.writing import claim

    def full(*_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(claim.os, "fdopen", full)
    assert run([*SURVEY, "-o", str(tmp_path / "found")]) == 2
    assert "error[CS208]" in capsys.readouterr().err
    monkeypatch.undo()
    assert run([*SURVEY, "-o", str(tmp_path / "found")]) == 0


@pytest.mark.parametrize("command", [SURVEY, FAST])
def test_one_folder_has_one_writer_at_a_time(command, tmp_path, monkeypatch, capsys):
    """The second is refused at once; the first does not notice."""
    place = tmp_path / "place"
    owner, name = (survey, "examine") if command is SURVEY else (Workshop, "measure")
    work, refused = getattr(owner, name), []

    def meanwhile(*arguments, **options):
        monkeypatch.undo()
        command_line = [sys.executable, "-m", "colsynth", *command, "-o", str(place), "--force"]
        refused.append(subprocess.run(command_line, capture_output=True, check=False))
        return work(*arguments, **options)

    monkeypatch.setattr(owner, name, meanwhile)
    assert run([*command, "-o", str(place)]) == 0
    assert refused[0].returncode == 2
    assert b"error[CS250]" in refused[0].stderr
    assert names(tmp_path) == ["place"]
    capsys.readouterr()


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Two bundles with files, for runtimes that find them by different variables."""
    folder = tmp_path_factory.mktemp("bundles")
    case = ["tune", "mi300x", "-c", "allgather", "--algorithms", "forest", "--sizes", "1MiB"]
    for name, runtime in (("one", "rccl"), ("two", "msccl")):
        options = ["-r", runtime, "--budget", "1", "--jobs", "1"]
        assert run([*case, *options, "-o", str(folder / name)]) == 0
    return folder / "one", folder / "two"


def test_the_last_bundle_that_is_sourced_wins_and_says_so(bundles):
    one, two = bundles
    script = f"set -eu; . {one}/env.sh; . {one}/env.sh; . {two}/env.sh; env"
    shown = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env={"PATH": "/bin"}
    )
    found = dict(line.split("=", 1) for line in shown.stdout.splitlines())
    assert found["MSCCL_XML_FILES"].startswith(f"{two}/schedules/")
    assert found["NCCL_ALGO_FILE"].startswith(f"{two}/schedules/")
    assert "MSCCL_ALGO_DIR" not in found
    assert shown.stderr == f"env.sh: {two} replaces {one}\n"


def test_another_shell_is_told_where_each_bundle_is(bundles):
    script = "".join(f"COLSYNTH_BUNDLE={path}; . {path}/env.sh;" for path in reversed(bundles))
    command = ["sh", "-c", f'{script} printf %s "$MSCCL_ALGO_DIR"']
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == f"{bundles[0]}/schedules"


def test_a_shell_that_does_not_know_which_file_it_reads_loads_no_other_bundle(bundles):
    """dash looks in the folder it is in, where another bundle lies; bash knows better."""
    one, two = bundles
    script = f"COLSYNTH_BUNDLE=mine:too; . {one}/env.sh; "
    script += 'printf "%s %s %s" "$?" "${MSCCL_ALGO_DIR:-}" "$COLSYNTH_BUNDLE"; env >&2'
    command = ["sh", "-c", script]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=two)
    assert shown.stdout in ("1  mine:too", f"0 {one}/schedules mine:too")  # bash may be sh
    assert ("set COLSYNTH_BUNDLE" in shown.stderr) == shown.stdout.startswith("1")
    assert "COLSYNTH_HERE" not in shown.stderr
    assert str(two) not in shown.stderr.replace(f"PWD={two}", "")


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("lies", ["alone", "in the other"])
def test_a_copy_outside_its_bundle_ends_a_job(shell, lies, bundles, tmp_path):
    copy = tmp_path / "env.sh"
    copy.write_bytes((bundles[0] / "env.sh").read_bytes())
    if lies == "in the other":
        (tmp_path / "manifest.json").write_bytes((bundles[1] / "manifest.json").read_bytes())
    for command in ([shell, str(copy)], [shell, "-c", f"set -eu; . {copy}; echo loaded"]):
        shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (shown.returncode, shown.stdout) == (1, "")
        assert "cannot find its bundle" in shown.stderr
        assert "only" not in shown.stderr


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_bundle_without_one_of_its_files_changes_nothing(shell, bundles, tmp_path):
    """Jobs would run without it, and hardly anybody would notice."""
    place = tmp_path / "copied"
    shutil.copytree(bundles[0], place)
    script = f"export COLSYNTH_BUNDLE={place}; . {place}/env.sh; env"
    command = [shell, "-c", script]
    assert "MSCCL_" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lost = sorted((place / "schedules").iterdir())[-1]
    lost.unlink()
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert shown.stderr.startswith(f"env.sh: cannot read {lost}\n")
    assert "MSCCL_" not in shown.stdout
    assert "COLSYNTH_FILE" not in shown.stdout
    assert subprocess.run([shell, "-euc", script], capture_output=True, check=False).returncode == 1


def test_a_bundle_that_was_moved_to_where_no_list_can_name_it_says_so(bundles, tmp_path):
    """The runtime would split the path; a directory it would take."""
    found = []
    for bundle in bundles:
        place = tmp_path / f"12:30 {bundle.name}"
        shutil.copytree(bundle, place)
        script = f'. "{place}/env.sh" || exit 1; env'
        command = ["bash", "-c", script]
        shown = subprocess.run(
            command, capture_output=True, text=True, check=False, env={"PATH": "/bin:/usr/bin"}
        )
        found.append(
            (shown.returncode, "MSCCL_" in shown.stdout, "splits its list" in shown.stderr)
        )
    assert found == [(0, True, False), (1, False, True)]


@pytest.mark.parametrize(
    "command",
    [
        [*SURVEY, "-o"],
        [*FAST, "-o"],
        ["export", "a.xml", "-r", "rccl", "--to", "chakra", "-o"],
        ["ranks", "dgx-a100", "--hosts", "hosts.txt", "--for", "slurm", "-o"],
        ["topology", "search", "--gpus", "4", "--ports", "2", "-o"],
        ["topology", "search", "--gpus", "4", "--ports", "2", "--cables"],
    ],
)
def test_stdout_takes_no_directory_and_nothing_beside_an_answer(
    command, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run([*command, "-"]) == 2
    assert "CS219" in capsys.readouterr().err
    assert names(tmp_path) == []
