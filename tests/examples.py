"""The console examples of README and guide: found, run, and filled in with what they print.

A block with a name behind its language, such as ``text matrix.txt``, is a file that examples use.

``python -m tests.examples [PAGE...]`` runs every example and writes its real output below it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from colsynth.cli.main import run

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "colsynth" / "guide").glob("*.md")))

_BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
_FILE = re.compile(r"^```\w+ (\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_WIDTH = "80"


def filled(text: str) -> str:
    """Return a page with what its examples print below each, run in order where we stand."""
    for name, content in _FILE.findall(text):
        Path(name).write_text(content)
    return _BLOCK.sub(lambda block: _block(block.group()), text)


def _block(block: str) -> str:
    parts = (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return "".join(f"$ {command}\n{_shown(command, below)}" for command, _, below in parts)


def _shown(command: str, below: str) -> str:
    """Return what a command prints; ``cat FILE`` makes the file that the page shows."""
    program, *names = shlex.split(command)
    if program != "cat":
        return _printed(command)
    Path(names[0]).write_text(below)
    return below


def _printed(command: str) -> str:
    """Return what a command prints: the answer, else the diagnostic; no blanks at line ends."""
    program, *arguments = shlex.split(command)
    if program != "colsynth":
        raise ValueError(f"{command}: examples run colsynth alone")
    answer, messages = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(messages):
        run(arguments)
    text = (answer.getvalue() or messages.getvalue()).rstrip("\n")
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")) if text else ""


def _update(pages: list[Path]) -> None:
    os.environ["COLUMNS"] = _WIDTH
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            new = filled(page.read_text())
        page.write_text(new)
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    _update([Path(name).resolve() for name in sys.argv[1:]] or list(PAGES))
