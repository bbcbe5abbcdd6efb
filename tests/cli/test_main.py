import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from colsynth import __version__
from colsynth.cli import main
from colsynth.cli.main import run
from colsynth.errors import Diagnostic, InputError, LimitError, Span

SCHEDULE = Path(__file__).parents[1] / "corpus" / "xml" / "good-allreduce.xml"


def command(monkeypatch, function):
    """Make `function` the command ``passes`` for one test."""
    import colsynth.cli.passes

    monkeypatch.setattr(colsynth.cli.passes, "passes", function)


def test_help_lists_every_command_with_its_line(capsys):
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, entry in main._COMMANDS.items():
        assert name in shown
        assert entry.help.split()[0] in shown


@pytest.mark.parametrize("name", main._COMMANDS)
def test_every_command_can_be_loaded_and_helps(name, capsys):
    assert run([name, "--help"]) == 0
    assert f"colsynth {name}" in capsys.readouterr().out


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"colsynth {__version__}\n"


def test_no_arguments_show_the_help_as_wrong_usage(capsys):
    assert run([]) == 2
    assert "compile" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cmpile"], "did you mean 'compile'"),
        (["--bogus"], "no such option: --bogus"),
        (["compare", "dgx-a100"], "colsynth compare --help"),
        (["compare", "dgx-a100", "-c", "broadcast", "--root", "two"], "--root"),
        (["topology", "shwo"], "did you mean 'show'"),
    ],
)
def test_wrong_usage_is_diagnosed_on_stderr(arguments, said, capsys):
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error[CS200]" in shown.err
    assert said in shown.err


def test_an_error_is_an_object_with_json(capsys):
    assert run(["bound", "dgx-a100", "-c", "allgater", "--json"]) == 2
    shown = capsys.readouterr()
    error = json.loads(shown.out)["error"]
    assert (error["code"], error["exit_code"], error["span"]) == ("CS213", 2, None)
    assert error["phrase"] in shown.err


@pytest.mark.parametrize(("kind", "code"), [(InputError, 2), (LimitError, 1)])
def test_the_kind_of_an_error_is_the_exit_code(kind, code, monkeypatch, capsys):
    def fail():
        raise kind(Diagnostic("CS000", "no", Span("x.yaml", 3, 7), ("a note",), "an advice"))

    command(monkeypatch, fail)
    assert run(["passes"]) == code
    assert capsys.readouterr().err == (
        "x.yaml:3:7: error[CS000]: no\n  note: a note\n  help: an advice\n"
    )


def test_what_nobody_foresaw_is_a_defect_in_one_line(monkeypatch, capsys):
    def fail():
        raise KeyError("lost\nwords")

    command(monkeypatch, fail)
    monkeypatch.delenv("COLSYNTH_DEBUG", raising=False)
    assert run(["passes"]) == 3
    shown = capsys.readouterr().err
    assert "error[CS900]: unexpected KeyError: 'lost\\nwords'" in shown
    assert "report it" in shown
    assert "Traceback" not in shown


def test_the_traceback_of_a_defect_is_shown_for_debugging(monkeypatch, capsys):
    def fail():
        raise KeyError("lost")

    command(monkeypatch, fail)
    monkeypatch.setenv("COLSYNTH_DEBUG", "1")
    assert run(["passes"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_has_the_exit_code_of_shells(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    command(monkeypatch, interrupt)
    assert run(["passes"]) == 130
    assert capsys.readouterr().out == ""


def test_what_the_system_refuses_is_no_defect(monkeypatch, capsys):
    def full():
        raise OSError(28, "No space left on device")

    command(monkeypatch, full)
    assert run(["passes"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("stdout: error[CS215]: the system refused: No space left")
    assert "help: free some space" in shown


def test_what_the_system_refuses_names_the_file(monkeypatch, capsys):
    def denied():
        raise PermissionError(13, "Permission denied", "/etc/secret")

    command(monkeypatch, denied)
    assert run(["passes"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("/etc/secret: error[CS215]: the system refused: Permission denied")
    assert "help: choose another place, or get the permission" in shown


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_an_answer_that_cannot_be_written_is_noticed():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "colsynth", "passes", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "CS215" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_not_told():
    probe = "import sys; from colsynth.cli.main import main; sys.stdin.read(); main()"
    for arguments in (["passes"], ["passes", "--json"], ["topology", "export", "ring:3000"]):
        process = subprocess.Popen(
            [sys.executable, "-c", probe, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == main.BROKEN_PIPE


def in_shell(line):
    """Run a line with ``colsynth`` for this package's program."""
    program = f"{shlex.quote(sys.executable)} -m colsynth"
    return subprocess.run(
        ["/bin/sh", "-c", line.replace("colsynth", program)], capture_output=True, check=False
    )


def test_an_answer_nobody_can_get_is_an_error():
    done = in_shell("colsynth passes --json >&-")
    assert done.returncode == 2
    assert b"CS215" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_the_exit_code_survives_a_stderr_that_cannot_be_written(stderr):
    assert in_shell(f"colsynth explain nonsense {stderr}").returncode == 2
    assert in_shell(f"colsynth explain CS101 {stderr}").returncode == 0


def test_names_that_are_no_text_are_printed_as_their_bytes(tmp_path):
    name = os.fsencode(tmp_path / "caf") + b"\xe9.xml"
    Path(os.fsdecode(name)).write_bytes(SCHEDULE.read_bytes())
    done = in_shell(f"colsynth env -r rccl {shlex.quote(str(tmp_path))}/*.xml")
    assert done.returncode == 0
    assert b"NCCL_ALGO_FILE='" + name + b"'" in done.stdout


WARNING = """
import sys
import numpy as np
from colsynth.cli import passes
from colsynth.cli.main import main

def warn(*_arguments, **_options):
    np.array([1e300]).astype(np.int64)
    print("done")

passes.emit_json = warn
sys.argv = ["colsynth", "passes", "--json"]
main()
"""


@pytest.mark.parametrize(("options", "shown"), [((), False), (("-W", "default"), True)])
def test_warnings_of_libraries_are_for_those_who_ask(options, shown):
    done = subprocess.run(
        [sys.executable, *options, "-c", WARNING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert ("RuntimeWarning" in done.stderr) is shown
    assert shown or done.stderr == ""
