"""``colsynth explain``: what a code means, why it matters, how to fix it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from colsynth.cli import complete
from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli.codes import explanations, pages_by_room
from colsynth.errors import Diagnostic, InputError, close_names

_PARTS = (("meaning", "What it means"), ("why", "Why"), ("fix", "How to fix"))


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            autocompletion=complete.codes,
            help="Code of a diagnostic (CS101) or of a rule of the verifier (B04).",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Explain the code of a diagnostic or of a verifier's rule; without CODE, list all codes."""
    if code is None:
        _list(json)
        return
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


def _list(json: bool) -> None:
    """Print every code with its title, by room."""
    rows = [
        (room, code, page["title"])
        for room, pages in pages_by_room().items()
        for code, page in pages.items()
    ]
    if json:
        keys = ("room", "code", "title")
        emit_json({"codes": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    table = ruled_table("room", "code", "title")
    before = ""
    for room, code, title in rows:
        if before not in ("", room):
            table.add_section()
        table.add_row("" if room == before else room, code, title)
        before = room
    answer_console().print(table)


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
