"""``colsynth explain``: what a code means, why it matters, how to fix it."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Any

import typer

from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.errors import Diagnostic, InputError, close_names

_PARTS = (("meaning", "What it means"), ("why", "Why"), ("fix", "How to fix"))


def explain(
    code: Annotated[
        str,
        typer.Argument(metavar="CODE", help="Such as CS101 or B04.", show_default=False),
    ],
    json: JsonOption = False,
) -> None:
    """Explain the code of a diagnostic or of a verifier's finding."""
    pages = explanations()
    page = pages.get(code.upper())
    if page is None:
        text = _advice(code.upper(), sorted(pages))
        raise InputError(Diagnostic("CS505", f"there is no code {code!r}", help=text))
    if json:
        emit_json({"code": code.upper(), **page})
    else:
        _show(code.upper(), page)


def _advice(code: str, known: list[str]) -> str:
    """Return the nearest code, or those of the same family."""
    if close := close_names(code, known):
        return f"did you mean {close[0]}?"
    family = [other for other in known if other[:1] == code[:1] and len(other) == len(code)]
    return f"there are {', '.join(family)}" if family else "codes look like CS101 or B04"


def explanations() -> dict[str, dict[str, Any]]:
    """Return every page by code, from all files of ``colsynth/explanations``."""
    from colsynth.runtimes.data import read_data

    pages: dict[str, dict[str, Any]] = {}
    folder = files("colsynth").joinpath("explanations")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            pages.update(read_data("explanations", entry.name) or {})
    return pages


def _show(code: str, page: dict[str, Any]) -> None:
    console = answer_console()
    console.print(f"{code}: {page['title']}")
    for key, heading in _PARTS:
        if page.get(key):
            console.print(f"\n{heading}\n{_indented(page[key])}")
    if page.get("severity"):
        rows = "\n".join(f"{runtime}: {level}" for runtime, level in page["severity"].items())
        console.print(f"\nSeverity\n{_indented(rows)}")
    if page.get("example"):
        console.print(f"\nExample\n{_indented(page['example'])}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in str(text).strip().splitlines())
