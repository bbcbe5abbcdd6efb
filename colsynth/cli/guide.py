"""``colsynth guide``: the pages for users, in the terminal."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

import typer
from rich.markdown import Markdown

from colsynth.cli._common import JsonOption, answer_console, emit_json
from colsynth.errors import Diagnostic, InputError, did_you_mean


def guide(
    page: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAGE]", help="Name of a page, such as runtimes.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show a page of the guide; without PAGE, list them."""
    pages = guide_pages()
    if page is None:
        _list(pages, json)
        return
    text = pages.get(page.removesuffix(".md").lower())
    if text is None:
        advice = did_you_mean(page, pages)
        raise InputError(Diagnostic("CS507", f"there is no guide page {page!r}", help=advice))
    if json:
        emit_json({"page": page, "text": text})
    else:
        _show(text)


def guide_pages() -> dict[str, str]:
    """Return the Markdown text of every page by name, in alphabetical order."""
    entries = sorted(files("colsynth").joinpath("guide").iterdir(), key=lambda entry: entry.name)
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8")
        for entry in entries
        if entry.name.endswith(".md")
    }


def _title(text: str) -> str:
    return text.split("\n", 1)[0].removeprefix("# ")


def _list(pages: dict[str, str], json: bool) -> None:
    titles = {name: _title(text) for name, text in pages.items()}
    if json:
        emit_json({"pages": titles})
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        print(f"{name:<{width}}  {title}")
    print("\ncolsynth guide PAGE shows one of them")


def _show(text: str) -> None:
    """Render the page with a pager on a terminal; elsewhere, write its plain text."""
    console = answer_console()
    if not console.is_terminal:
        print(text, end="")
        return
    with console.pager(styles=True):
        console.print(Markdown(text))
