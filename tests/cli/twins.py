"""Runs two command lines on one target at the same time.

A program of its own, since it forks: both children begin with everything imported, so that they
meet. Reads a list of cases as JSON from stdin, and writes what came of them, as JSON, to a file.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from colsynth.cli.main import run


def started(arguments, name):
    """Fork a process that runs a command line; its stderr goes to a file."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def ended(child):
    """Return the exit code of a process."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder):
    """Return every file below a folder as text, and every empty folder, by path."""
    paths = [
        path for path in sorted(folder.rglob("*")) if path.is_file() or not any(path.iterdir())
    ]
    read = {path: path.read_bytes() if path.is_file() else b"" for path in paths}
    return {str(path.relative_to(folder)): data.decode("latin-1") for path, data in read.items()}


def alone(before, arguments, said):
    """Return what a command writes in a folder like `before`."""
    with TemporaryDirectory() as folder:
        work = shutil.copytree(before, Path(folder) / "work")
        os.chdir(work)
        code = ended(started(arguments, said))
        if code:
            raise SystemExit(f"{arguments} ends with {code}: {Path(said).read_text()}")
        return contents(work)


def together(before, pair, said):
    """Return the codes, words and files of two commands in one folder like `before`."""
    with TemporaryDirectory() as folder:
        work = shutil.copytree(before, Path(folder) / "work")
        os.chdir(work)
        children = [started(arguments, f"{said}{number}") for number, arguments in enumerate(pair)]
        codes = [ended(child) for child in children]
        words = [Path(f"{said}{number}").read_text() for number in range(2)]
        return {"codes": codes, "words": words, "files": contents(work)}


def meet(case, before, said):
    """Return what came of both commands of a case at once, without --force and with it.

    Beside it stands what each writes alone. Where both may replace, something good is there
    already, which the first one wrote.
    """
    wholes = [alone(before, arguments, said) for arguments in case["pair"]]
    plain = {"plain": {"wholes": wholes, **together(before, case["pair"], said)}}
    for path, text in wholes[0].items():
        (before / path).parent.mkdir(parents=True, exist_ok=True)
        (before / path).write_bytes(text.encode("latin-1"))
    pair = [[*arguments, "--force"] for arguments in case["pair"]]
    return {**plain, "force": {"wholes": wholes, **together(before, pair, said)}}


def main():
    """Run all cases."""
    made = []
    # Children inherit what this imports, but for kernels that start threads, which no fork keeps.
    # What they load themselves gives them time to meet.
    run(["compile", "ring:4", "-c", "allgather", "-r", "msccl", "-a", "ring", "-o", os.devnull])
    with TemporaryDirectory() as folder:
        said = str(Path(folder) / "said")
        for number, case in enumerate(json.load(sys.stdin)):
            before = Path(folder) / str(number)
            before.mkdir()
            os.chdir(before)
            for arguments in case["first"]:
                ended(started(arguments, said))
            made.append(meet(case, before, said))
    Path(sys.argv[1]).write_text(json.dumps(made))


if __name__ == "__main__":
    main()
