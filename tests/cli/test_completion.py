"""What a shell is answered when the tab key is pressed, and the scripts that make it ask."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from colsynth.cli import main
from colsynth.cli.main import run

BIN = Path(sys.executable).parent
HEAVY = "numpy", "numba", "networkx", "lxml", "highspy"

CASES = [
    ("com", {"compile", "compare"}),
    ("bound dgx-a", {"dgx-a100"}),
    ("topology show ndv", {"ndv2", "ndv4", "ndv5"}),
    ("simulate x.xml -t torus", {"torus:4x4x4"}),
    ("bound dgx-a100 -c all", {"allgather", "allreduce", "alltoall"}),
    ("tune dgx-a100 -c allreduce,allg", {"allreduce,allgather"}),
    ("verify x.xml --runtime msccl", {"msccl", "msccl-executor", "mscclpp"}),
    ("env x.xml -r r", {"rccl"}),
    ("compile dgx-a100 -a a", {"auto", "allpairs", "allpairs2"}),
    ("survey dgx-a100 -a a", {"allpairs", "allpairs2"}),
    ("compare dgx-a100 --algorithms forest,ri", {"forest,ring"}),
    ("compile dgx-a100 --dump-ir place", {"place-slots"}),
    ("compile dgx-a100 --passes pack-trees,lower-f", {"pack-trees,lower-forest"}),
    ("compile dgx-a100 --protocol LL", {"LL", "LL128"}),
    ("compile dgx-a100 --mode o", {"out-of-place"}),
    ("compile dgx-a100 --tr", {"--trees", "--transit", "--tries"}),
    ("explain CS12", {f"CS12{i}" for i in range(10)}),
    ("explain B0", {f"B0{i}" for i in range(1, 9)}),
    ("--show-completion z", {"zsh"}),
    ("nonsense x", set()),
    ("--version x", set()),
]


def test_a_shell_that_tells_nothing_is_answered_as_for_an_empty_line(monkeypatch, capsys):
    monkeypatch.setenv("_COLSYNTH_COMPLETE", "complete_bash")
    for name in ("COMP_WORDS", "COMP_CWORD", "_TYPER_COMPLETE_ARGS"):
        monkeypatch.setenv(name, "")  # so that what is set is undone
        monkeypatch.delenv(name)
    assert run([]) == 0
    assert "compile" in capsys.readouterr().out.split()


def asked(monkeypatch, capsys, shell, line):
    """Return what the program answers a shell of which `line` has been typed."""
    words = ["colsynth", *line.split(" ")]
    monkeypatch.setenv("_COLSYNTH_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(words))
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert run([]) == 0
    answer = capsys.readouterr()
    assert answer.err == ""
    return answer.out


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_values_are_completed_in_every_shell(line, expected, monkeypatch, capsys):
    in_bash = set(asked(monkeypatch, capsys, "bash", line).split())
    assert in_bash == expected
    in_fish = asked(monkeypatch, capsys, "fish", line).splitlines()
    assert {word.partition("\t")[0] for word in in_fish if word} == expected
    in_zsh = asked(monkeypatch, capsys, "zsh", line)
    assert in_zsh.startswith("_arguments" if expected else "_files")
    for word in expected:
        assert '"' + word.replace(":", r"\\:") + '"' in in_zsh


def test_titles_stand_beside_presets_and_codes(monkeypatch, capsys):
    assert "\tNVIDIA DGX A100" in asked(monkeypatch, capsys, "fish", "bound dgx-a100")
    assert "\tUnknown topology" in asked(monkeypatch, capsys, "fish", "explain CS120")


def test_what_stands_beside_a_word_is_one_line(monkeypatch, capsys):
    """A shell would take the rest for words of its own."""
    for name in main._COMMANDS:
        for start in "-", "":
            for line in asked(monkeypatch, capsys, "fish", f"{name} {start}").splitlines():
                word, _, title = line.partition("\t")
                assert word.startswith(start)
                assert " " not in word
                assert len(title) < 80


def test_completion_loads_nothing_heavy():
    code = (
        "import os, sys\nfrom colsynth.cli.main import run\n"
        "for line in sys.argv[1:]:\n"
        "    os.environ['_TYPER_COMPLETE_ARGS'] = 'colsynth ' + line\n"
        "    run([])\n"
        f"print('loaded:', [m for m in {HEAVY} if m in sys.modules])"
    )
    lines = [line for line, _ in CASES]
    variables = {**os.environ, "_COLSYNTH_COMPLETE": "complete_zsh"}
    done = subprocess.run(
        [sys.executable, "-c", code, *lines],
        env=variables,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.endswith("loaded: []\n")


@pytest.mark.parametrize(
    ("shell", "mark"),
    [
        ("bash", "complete -o default -F"),
        ("zsh", "#compdef colsynth"),
        ("fish", "complete --command"),
    ],
)
def test_every_shell_has_a_script_of_its_own(shell, mark, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run(["--show-completion", shell]) == 0
    script = capsys.readouterr().out
    assert mark in script
    assert f"complete_{shell}" in script
    assert run(["--install-completion", shell]) == 0
    said = capsys.readouterr().out
    (place,) = [path for path in tmp_path.rglob("*colsynth*") if path.is_file()]
    assert str(place) in said
    assert place.read_text().strip() == script.strip()


def test_other_shells_are_refused(capsys):
    assert run(["--show-completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_without_a_name_it_is_the_shell_around_us(monkeypatch, capsys):
    shellingham = pytest.importorskip("shellingham")
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("fish", "/usr/bin/fish"))
    assert run(["--show-completion"]) == 0
    assert "complete_fish" in capsys.readouterr().out

    def nowhere():
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", nowhere)
    assert run(["--show-completion"]) == 2
    assert "requires an argument" in capsys.readouterr().err


IN_SHELLS = {
    "bash": "COMP_WORDS=(colsynth bound dgx-a); COMP_CWORD=2; _colsynth_completion colsynth; "
    'printf "%s\\n" "${COMPREPLY[@]}"',
    "zsh": "",
    "fish": "complete -C 'colsynth bound dgx-a'",
}


@pytest.mark.parametrize("shell", IN_SHELLS)
def test_shells_run_their_scripts(shell, capsys):
    program = shutil.which(shell)
    if program is None or not (BIN / "colsynth").exists():
        pytest.skip(f"there is no {shell}, or colsynth is not installed")
    assert run(["--show-completion", shell]) == 0
    script = capsys.readouterr().out
    if shell == "zsh":  # its completion has no end without a terminal: only see that it is read
        script = f"autoload -Uz compinit; compinit -u -D\n{script}\necho dgx-a100"
    variables = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        [program, "-c", f"{script}\n{IN_SHELLS[shell]}"],
        env=variables,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert [line.partition("\t")[0] for line in done.stdout.split()][:1] == ["dgx-a100"]
